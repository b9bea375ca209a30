//! Making inodes: files, directories, symbolic links, devices, unnamed files.

use holdfast_sync::epoch::{self, Guard};
use std::sync::atomic::Ordering;

use super::NewInode;
use crate::FileSystem;
use crate::directory::Names;
use crate::file_system::Core;
use crate::inode::{Inode, Numbered as _, kept_values};
use crate::node::Node;
use crate::quota::Check;
use crate::store::{Reservation, kept_bytes};
use crate::types::{
    Caller, Caps, Errno, FileType, NAME_MAX, PATH_MAX, Result, S_ISVTX, check_new_name, is_special,
};
use crate::watch::EventMask;

impl FileSystem {
    /// Makes a regular file, fifo, socket or device with this name.
    ///
    /// # Errors
    /// `EEXIST`, `ENOENT` in a removed directory, `EACCES`, `EROFS`, `ENOSPC`, `EDQUOT`, `ENAMETOOLONG`;
    /// `EPERM` for a device without `CAP_MKNOD` or for a directory; `EINVAL` for a symbolic link.
    pub fn mknod(
        &self,
        who: &Caller,
        dir: &Node,
        name: &[u8],
        kind: FileType,
        perm: u16,
        rdev: u64,
    ) -> Result<Node> {
        self.core
            .make_node(who, dir.inode(), name, kind, perm, rdev)
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// As [`FileSystem::mknod`]; `EMLINK` when `dir` holds too many directories.
    pub fn mkdir(&self, who: &Caller, dir: &Node, name: &[u8], perm: u16) -> Result<Node> {
        self.core.make_directory(who, dir.inode(), name, perm)
    }

    /// Makes a symbolic link.
    ///
    /// # Errors
    /// As [`FileSystem::mknod`]; `ENOENT` for an empty target, `ENAMETOOLONG` for one of 4096
    /// bytes or more.
    pub fn symlink(&self, who: &Caller, dir: &Node, name: &[u8], target: &[u8]) -> Result<Node> {
        self.core.make_symlink(who, dir.inode(), name, target)
    }
}

/// Can this be the target of a symbolic link?
///
/// # Errors
/// `ENOENT` if empty, `ENAMETOOLONG` from 4096 bytes on, `EINVAL` for a NUL in it.
pub(crate) fn check_target(target: &[u8]) -> Result<()> {
    if target.is_empty() {
        return Err(Errno::ENOENT);
    }
    if target.len() >= PATH_MAX {
        return Err(Errno::ENAMETOOLONG);
    }
    if target.contains(&0) {
        return Err(Errno::EINVAL);
    }
    Ok(())
}

impl Core {
    /// See [`FileSystem::mknod`].
    pub(crate) fn make_node(
        &self,
        who: &Caller,
        dir: &Inode,
        name: &[u8],
        kind: FileType,
        perm: u16,
        rdev: u64,
    ) -> Result<Node> {
        match kind {
            FileType::Directory => return Err(Errno::EPERM),
            FileType::Symlink => return Err(Errno::EINVAL),
            _ => {}
        }
        let rdev = if kind.is_device() { rdev } else { 0 };
        let new_inode = NewInode {
            rdev,
            ..NewInode::of(kind, perm)
        };
        self.make(who, dir, name, new_inode)
    }

    /// See [`FileSystem::mkdir`].
    pub(crate) fn make_directory(
        &self,
        who: &Caller,
        dir: &Inode,
        name: &[u8],
        perm: u16,
    ) -> Result<Node> {
        let new_inode = NewInode::of(FileType::Directory, perm & (0o777 | S_ISVTX));
        self.make(who, dir, name, new_inode)
    }

    /// See [`FileSystem::symlink`].
    pub(crate) fn make_symlink(
        &self,
        who: &Caller,
        dir: &Inode,
        name: &[u8],
        target: &[u8],
    ) -> Result<Node> {
        check_target(target)?;
        let new_inode = NewInode {
            target: Some(target),
            ..NewInode::of(FileType::Symlink, 0o777)
        };
        self.make(who, dir, name, new_inode)
    }

    /// Makes an inode and its name.
    fn make(
        &self,
        who: &Caller,
        dir: &Inode,
        name: &[u8],
        new_inode: NewInode<'_>,
    ) -> Result<Node> {
        if is_special(name) {
            return Err(Errno::EEXIST);
        }
        let added = self.added_so_far();
        let body = self.search(who, dir)?;
        check_new_name(name)?;
        if let Some(through) = self.through() {
            let node = through.make(who, (dir, body), name, new_inode, false)?;
            self.notify_entry(who, dir.ino(), name);
            self.shrink_inodes_since(added);
            return Ok(node);
        }
        let reserved = self.reserve_new_inode(dir, Some(name), &new_inode);
        let node = {
            let mut names = self.lock_name(dir, body, name)?;
            if names.seek(name).is_some() {
                return Err(Errno::EEXIST);
            }
            self.make_in(who, dir, &mut names, name, new_inode, reserved)?
        };
        self.notify_entry(who, dir.ino(), name);
        self.shrink_inodes_since(added);
        Ok(node)
    }

    /// Makes an inode and its name, which the caller knows to be free under the lock it holds. `reserved`: what
    /// [`Core::reserve_new_inode`] said before.
    pub(crate) fn make_in(
        &self,
        who: &Caller,
        dir: &Inode,
        names: &mut Names<'_>,
        name: &[u8],
        new_inode: NewInode<'_>,
        reserved: Result<Reservation<'_>>,
    ) -> Result<Node> {
        self.may_make(who, dir, new_inode)?;
        let mut reservation = reserved?;
        let now = dir.time_of_change();
        let cookie = names.next_cookie();
        let inode = self.allocate_inode(who, dir, now, cookie, new_inode)?;
        debug_assert!(name.len() <= NAME_MAX);
        let is_dir = new_inode.kind.is_dir();
        let ino = self.number(names, new_inode.kind);
        // The inode first: who finds the name finds it.
        let node = self.publish(ino, inode, Check::of(who), &mut reservation)?;
        let turn = self.log_order([dir]);
        names.changed(dir, 1, i32::from(is_dir), now);
        // The store before the name: nobody changes the inode before the store knows it.
        let recorded = if self.pinned {
            Ok(())
        } else {
            let named = Some((name, cookie, turn));
            self.record_new_inode(&mut reservation, dir, &node, new_inode.target, named)
        };
        let named = recorded.and_then(|()| names.insert(name, cookie, ino, new_inode.kind));
        if let Err(error) = named {
            names.changed(dir, 0, -i32::from(is_dir), now);
            reservation.keep_only(kept_values(node.inode()));
            self.unpublish(node);
            return Err(error);
        }
        if self.pinned {
            let kept = kept_bytes(name.len()) + kept_values(node.inode());
            reservation.keep_only(kept);
        }
        self.count_name(names, name);
        self.notify_name(dir.ino(), EventMask::CREATE, name, is_dir, 0);
        Ok(node)
    }

    /// May `who` make this in a directory, whose names are locked?
    #[inline]
    pub(crate) fn may_make(
        &self,
        who: &Caller,
        dir: &Inode,
        new_inode: NewInode<'_>,
    ) -> Result<()> {
        self.may_create(who, dir)?;
        // A whiteout (0:0) is no device that anybody could open.
        if new_inode.kind.is_device()
            && !(new_inode.kind == FileType::CharDevice && new_inode.rdev == 0)
            && !who.has(Caps::MKNOD)
        {
            return Err(Errno::EPERM);
        }
        if new_inode.kind.is_dir() && self.is_full_of_directories(dir) {
            return Err(Errno::EMLINK);
        }
        Ok(())
    }

    /// A guard for a section that waits for nothing, so that those inside cost nothing: over a
    /// store that pins everything. Any other may be asked, and must be waited for without one.
    /// With an observer there is somebody to be waited for, too.
    #[inline]
    pub(crate) fn calm(&self) -> Option<Guard> {
        (self.pinned && !self.observed.load(Ordering::Relaxed)).then(epoch::pin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::clock;
    use crate::store::{MemoryLimits, MemoryStore};
    use crate::types::OpenFlags;
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    /// Longer than any kernel's tick.
    const LONG: Duration = Duration::from_millis(40);

    #[test]
    fn who_waited_for_the_names_makes_the_file_when_he_has_them() {
        let store = Arc::new(MemoryStore::new(MemoryLimits::default()));
        let fs = FileSystem::new(store, Options::default()).unwrap();
        let (who, root) = (Caller::root(), fs.root());
        let create = || {
            let flags = OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::WRITE_ONLY;
            fs.open_at(&who, &root, b"file", flags, 0o644).unwrap()
        };
        let (file, since) = thread::scope(|scope| {
            let names = root.inode().directory().unwrap().names.write();
            let waiting = scope.spawn(create);
            thread::sleep(LONG);
            // Whoever has them changes the directory meanwhile.
            let since = clock::now();
            root.inode().write().modified(since);
            drop(names);
            (waiting.join().unwrap(), since)
        });
        let (dir, file) = (root.inode().meta(), file.node().inode().meta());
        assert!(dir.mtime >= since && dir.ctime >= since, "it went back");
        let times = [file.atime, file.mtime, file.ctime, file.btime];
        assert_eq!(times, [dir.mtime; 4]);
    }
}
