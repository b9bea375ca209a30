//! Permission checks that operations share, in the order of Linux's checks.

use holdfast_sync::epoch;

use crate::core::Core;
use crate::inode::{Inode, Meta, Numbered as _};
use crate::types::{Access, Caller, Caps, Errno, FileType, Ino, Result, S_ISGID, S_ISUID, S_ISVTX};

/// Checks access to an inode.
///
/// # Errors
/// `EACCES`; `EROFS` for writing on a read-only file system; `EPERM` for writing an immutable
/// inode.
pub(crate) fn may_access(core: &Core, who: &Caller, inode: &Inode, want: Access) -> Result<()> {
    core.alive()?;
    if want.contains(Access::WRITE)
        && matches!(
            inode.kind(),
            FileType::Regular | FileType::Directory | FileType::Symlink
        )
    {
        core.writable()?;
    }
    if want.contains(Access::WRITE) {
        inode.not_immutable()?;
    }
    permitted(who, inode, want)
}

/// Checks that the caller may create a name in this directory. Its names are locked.
///
/// # Errors
/// `ENOENT` for a removed directory, `EACCES`, `EROFS`; `EPERM` if it is immutable.
pub(crate) fn may_create(core: &Core, who: &Caller, dir: &Inode) -> Result<()> {
    core.writable()?;
    if dir.directory()?.names.is_dead() {
        return Err(Errno::ENOENT);
    }
    dir.not_immutable()?;
    permitted(who, dir, Access::WRITE | Access::EXEC)
}

/// Checks that the caller may remove this name, or replace its inode. `as_dir`: as rmdir(2).
///
/// # Errors
/// `EACCES`, `EROFS`. `EPERM` in a sticky directory, and where flags of the directory or the
/// inode forbid it. `ENOTDIR`, `EISDIR`; `EBUSY` for the root.
pub(crate) fn may_delete(
    core: &Core,
    who: &Caller,
    dir: &Inode,
    victim: &Inode,
    as_dir: bool,
) -> Result<()> {
    may_access(core, who, dir, Access::WRITE | Access::EXEC)?;
    dir.allow_change()?;
    victim.allow_change()?;
    if is_sticky(who, dir, victim) {
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

/// Does the sticky bit of `dir` forbid the removal of this name?
fn is_sticky(who: &Caller, dir: &Inode, victim: &Inode) -> bool {
    if who.has(Caps::FOWNER) {
        return false;
    }
    let (perm, owner) = {
        let meta = dir.meta();
        (meta.perm, meta.uid)
    };
    perm & S_ISVTX != 0 && owner != who.uid && victim.meta().uid != who.uid
}

/// Checks the permissions alone.
///
/// # Errors
/// `EACCES`.
#[inline]
fn permitted(who: &Caller, inode: &Inode, want: Access) -> Result<()> {
    // The common case, without an epoch guard.
    if inode.opens_to(who, want) || inode.permits(who, want, &epoch::pin()) {
        Ok(())
    } else {
        Err(Errno::EACCES)
    }
}

/// Is the caller the owner, or capable of acting as the owner?
pub(crate) fn owns(who: &Caller, meta: &Meta) -> bool {
    who.checked || who.uid == meta.uid || who.has(Caps::FOWNER)
}

/// Is the caller in this group, or capable of setting set-group-id bits for others?
pub(crate) fn in_group_or_capable(who: &Caller, gid: u32) -> bool {
    who.has(Caps::FSETID) || who.in_group(gid)
}

/// The bits that a change of owner clears in a file's permissions.
pub(crate) fn set_id_bits_lost(who: &Caller, meta: &Meta) -> u16 {
    let mut lost = meta.perm & S_ISUID;
    if meta.perm & S_ISGID != 0 && (meta.perm & 0o010 != 0 || !in_group_or_capable(who, meta.gid)) {
        lost |= S_ISGID;
    }
    lost
}
