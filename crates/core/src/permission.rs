//! Who may do what: the checks that operations share, in the order in which Linux makes them.

use holdfast_sync::epoch;

use crate::file_system::Core;
use crate::inode::{Inode, Meta, Numbered as _};
use crate::types::{Access, Caller, Caps, Errno, FileType, Ino, Result, S_ISGID, S_ISUID, S_ISVTX};

impl Core {
    /// May `who` do this to the inode?
    ///
    /// # Errors
    /// `EACCES`; `EROFS` for writing what a read-only file system holds; `EPERM` for writing what is immutable.
    pub(crate) fn may(&self, who: &Caller, inode: &Inode, want: Access) -> Result<()> {
        self.alive()?;
        if want.contains(Access::WRITE)
            && matches!(
                inode.kind(),
                FileType::Regular | FileType::Directory | FileType::Symlink
            )
        {
            self.writable()?;
        }
        if want.contains(Access::WRITE) {
            inode.not_immutable()?;
        }
        permitted(who, inode, want)
    }

    /// May `who` make a name in this directory, whose names are locked?
    ///
    /// # Errors
    /// `ENOENT` for a removed directory, `EACCES`, `EROFS`; `EPERM` if it is immutable.
    pub(crate) fn may_create(&self, who: &Caller, dir: &Inode) -> Result<()> {
        self.writable()?;
        if dir.directory()?.names.is_dead() {
            return Err(Errno::ENOENT);
        }
        dir.not_immutable()?;
        permitted(who, dir, Access::WRITE | Access::EXEC)
    }

    /// May `who` remove this name (or put another inode in its place)? `as_dir`: as rmdir(2).
    ///
    /// # Errors
    /// `EACCES`, `EROFS`; `EPERM` in a sticky directory, and where flags of the directory or the inode forbid it; `ENOTDIR`, `EISDIR`; `EBUSY` for the root.
    pub(crate) fn may_delete(
        &self,
        who: &Caller,
        dir: &Inode,
        victim: &Inode,
        as_dir: bool,
    ) -> Result<()> {
        self.may(who, dir, Access::WRITE | Access::EXEC)?;
        dir.allow_change()?;
        victim.allow_change()?;
        if self.is_sticky(who, dir, victim) {
            return Err(Errno::EPERM);
        }
        match (as_dir, victim.kind().is_dir()) {
            (true, false) => return Err(Errno::ENOTDIR),
            (false, true) => return Err(Errno::EISDIR),
            _ => {}
        }
        if victim.ino() == Ino::ROOT {
            return Err(Errno::EBUSY);
        }
        if dir.directory()?.names.is_dead() {
            return Err(Errno::ENOENT);
        }
        Ok(())
    }

    /// Does the sticky bit of `dir` keep `who` from removing this name?
    fn is_sticky(&self, who: &Caller, dir: &Inode, victim: &Inode) -> bool {
        if who.has(Caps::FOWNER) {
            return false;
        }
        let (perm, owner) = {
            let meta = dir.meta();
            (meta.perm, meta.uid)
        };
        perm & S_ISVTX != 0 && owner != who.uid && victim.meta().uid != who.uid
    }
}

/// Do the permissions allow it?
///
/// # Errors
/// `EACCES`.
#[inline]
fn permitted(who: &Caller, inode: &Inode, want: Access) -> Result<()> {
    // Mostly no guard is needed.
    if inode.opens_to(who, want) || inode.permits(who, want, &epoch::pin()) {
        Ok(())
    } else {
        Err(Errno::EACCES)
    }
}

/// Is `who` the owner, or may act as one?
pub(crate) fn owns(who: &Caller, meta: &Meta) -> bool {
    who.checked || who.uid == meta.uid || who.has(Caps::FOWNER)
}

/// Is `who` in this group, or allowed to keep set-group-id bits of others?
pub(crate) fn in_group_or_capable(who: &Caller, gid: u32) -> bool {
    who.has(Caps::FSETID) || who.in_group(gid)
}

/// The bits that a change of owner takes from a file's permissions.
pub(crate) fn set_id_bits_lost(who: &Caller, meta: &Meta) -> u16 {
    let mut lost = meta.perm & S_ISUID;
    if meta.perm & S_ISGID != 0 && (meta.perm & 0o010 != 0 || !in_group_or_capable(who, meta.gid)) {
        lost |= S_ISGID;
    }
    lost
}
