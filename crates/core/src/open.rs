//! Open files: opening, creating, closing.
//!
//! An open file is a use of its inode: the content stays until the last one is closed, whatever
//! becomes of the names. Dropping an [`OpenFile`] closes it.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

use crate::FileSystem;
use crate::clock;
use crate::file_system::Core;
use crate::inode::{Inode, Numbered as _, kept_values};
use crate::locks::{LockOwner, LockSpace};
use crate::namespace::{NewInode, dangling};
use crate::node::Node;
use crate::permission::owns;
use crate::quota::Check;
use crate::readdir::Listing;
use crate::registry::Opened;
use crate::through::Created;
use crate::types::{Access, Caller, Errno, FileType, OpenFlags, Result, check_new_name};
use crate::watch::EventMask;

/// Flags that fcntl(2) can change on an open file.
const CHANGEABLE: OpenFlags = OpenFlags::APPEND
    .union(OpenFlags::NONBLOCK)
    .union(OpenFlags::DIRECT)
    .union(OpenFlags::NOATIME);

/// An open file description: what open(2) makes, with its own access mode and identity.
pub struct OpenFile {
    /// Before `opened`: who sees no open file any more sees what became of its inode.
    node: Node,
    opened: Opened,
    flags: AtomicI32,
    /// Are watches told of it?
    seen: bool,
    /// Need it not be told of the store's failure (any more)?
    heard: AtomicBool,
    /// Does a store that is written through hear of its end?
    through: bool,
    /// Dealt when it is first asked for; 0 until then.
    owner: AtomicU64,
    /// A listing that began here ends with this cookie; [`Listing::NO_END`] before one begins.
    pub(crate) listing_end: AtomicU64,
}

impl OpenFile {
    /// The inode.
    #[inline]
    #[must_use]
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Access mode and flags.
    #[inline]
    #[must_use]
    pub fn flags(&self) -> OpenFlags {
        OpenFlags::from_bits_retain(self.flags.load(Ordering::Relaxed))
    }

    /// Changes APPEND, NONBLOCK, DIRECT and NOATIME to be as in `flags`; the rest stays.
    pub fn set_flags(&self, flags: OpenFlags) {
        let old = self.flags();
        let new = old.difference(CHANGEABLE) | flags.intersection(CHANGEABLE);
        self.flags.store(new.bits(), Ordering::Relaxed);
    }

    /// Is it to be told of the store's failure? Once.
    pub(crate) fn is_first_to_hear(&self) -> bool {
        // Relaxed: of several callers one is told.
        !self.heard.swap(true, Ordering::Relaxed)
    }

    /// Its identity as an owner of flock(2) and open-file-description locks.
    #[must_use]
    pub fn owner(&self) -> LockOwner {
        let held = self.owner.load(Ordering::Acquire);
        if held != 0 {
            return LockOwner(held);
        }
        let fresh = self.opened.place().deal_owner();
        let order = (Ordering::AcqRel, Ordering::Acquire);
        let first = self.owner.compare_exchange(0, fresh, order.0, order.1);
        LockOwner(first.map_or_else(|first| first, |_| fresh))
    }
}

impl Drop for OpenFile {
    #[inline]
    fn drop(&mut self) {
        // If nobody ever asked who it is, it holds nothing.
        if *self.owner.get_mut() != 0 || self.through || self.opened.place().is_watched() {
            self.tell_end();
        }
    }
}

impl OpenFile {
    /// Was a store that is written through told that it is open for writing?
    pub(crate) fn is_written_through(&self) -> bool {
        self.through && self.writes()
    }

    /// Is it a regular file that is open for writing?
    fn writes(&self) -> bool {
        self.flags().writable() && self.node.kind() == FileType::Regular
    }

    /// Lets go of its locks, and tells watchers and the store.
    #[cold]
    fn tell_end(&self) {
        // Without its file system there is nobody who would wait for a lock, or hear of it.
        let Some(core) = self.opened.place().core() else {
            return;
        };
        let owner = self.owner.load(Ordering::Relaxed);
        if owner != 0 {
            core.release_locks(&self.node, LockOwner(owner), LockSpace::Flock);
            core.release_locks(&self.node, LockOwner(owner), LockSpace::Ofd);
        }
        if self.seen && !self.flags().contains(OpenFlags::PATH) {
            let mask = if self.flags().writable() {
                EventMask::CLOSE_WRITE
            } else {
                EventMask::CLOSE_NOWRITE
            };
            core.notify_event(self.node.inode(), mask);
        }
        if let (true, Some(through)) = (self.through, core.through()) {
            through.close(self.node.ino(), self.is_written_through());
        }
    }
}

impl fmt::Debug for OpenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenFile")
            .field("node", &self.node)
            .field("flags", &self.flags())
            .finish()
    }
}

impl FileSystem {
    /// Opens an inode.
    ///
    /// # Errors
    /// `EACCES`, `EROFS`; `EISDIR` to write a directory; `ENOTDIR` with DIRECTORY; `ELOOP` for a
    /// symbolic link, `ENXIO` for a fifo, socket or device (unless only PATH is asked for);
    /// `EPERM` for NOATIME by a stranger, for writing what is immutable, and for anything but appending to what is only
    /// appended to.
    pub fn open(&self, who: &Caller, node: &Node, flags: OpenFlags) -> Result<OpenFile> {
        self.open_node(who, node.clone(), flags)
    }

    /// Opens an inode for one operation of a front end whose callers open files without it: access was checked
    /// then, and watches are told of the operation alone.
    ///
    /// # Errors
    /// `EROFS`, `EISDIR`, `ELOOP`, `ENXIO` as [`FileSystem::open`].
    pub fn open_unseen(&self, node: Node, flags: OpenFlags) -> Result<OpenFile> {
        let who = Caller {
            checked: true,
            ..Caller::root()
        };
        self.core.alive()?;
        if flags.writable() {
            self.core.writable()?;
        }
        // What the inode's flags forbid each operation asks for itself.
        self.core.may_open(&who, &node, OpenFlags::empty())?;
        if flags.writable() && node.kind().is_dir() {
            return Err(Errno::EISDIR);
        }
        let mut file = self.open_file(node, flags);
        file.seen = false;
        if file.writes() {
            self.open_through(&who, &mut file)?;
        }
        Ok(file)
    }

    /// Tells a store that is written through of an open file.
    ///
    /// # Errors
    /// What the store answers.
    #[inline]
    fn open_through(&self, who: &Caller, file: &mut OpenFile) -> Result<()> {
        if let Some(through) = self.core.through() {
            file.through = through.open(who, &file.node, file.writes())?;
        }
        Ok(())
    }

    /// As [`FileSystem::open`], for a use that becomes the open file's.
    pub(crate) fn open_node(&self, who: &Caller, node: Node, flags: OpenFlags) -> Result<OpenFile> {
        let core = &self.core;
        core.alive()?;
        core.refresh(node.inode())?;
        if flags.contains(OpenFlags::DIRECTORY) && !node.kind().is_dir() {
            return Err(Errno::ENOTDIR);
        }
        if flags.contains(OpenFlags::PATH) {
            let mut file = self.open_file(node, flags);
            self.open_through(who, &mut file)?;
            return Ok(file);
        }
        let truncate = flags.contains(OpenFlags::TRUNCATE) && node.kind() == FileType::Regular;
        core.may_open(who, &node, flags)?;
        let mut through = None;
        if core.through.is_some() {
            // Before it is truncated: an open file can be, whatever its permissions are.
            let mut file = self.open_file(node.clone(), flags);
            file.seen = false;
            self.open_through(who, &mut file)?;
            through = Some(file);
        }
        if truncate {
            core.writable()?;
            core.resize(who, &node, 0, true)?;
            core.notify_inode(who, node.ino(), true);
        }
        if let Some(mut file) = through {
            file.seen = true;
            core.notify_event(node.inode(), EventMask::OPEN);
            return Ok(file);
        }
        Ok(self.opened(node, flags))
    }

    /// Opens the regular file of this name, made if it is not there. A symbolic link is not
    /// followed (`ELOOP`): [`FileSystem::open_at`] follows.
    ///
    /// # Errors
    /// Those of [`FileSystem::open`] and [`FileSystem::mknod`]; `EEXIST` with EXCLUSIVE;
    /// `EISDIR` for a directory.
    pub fn create(
        &self,
        who: &Caller,
        dir: &Node,
        name: &[u8],
        perm: u16,
        flags: OpenFlags,
    ) -> Result<OpenFile> {
        self.create_in(who, dir.inode(), name, perm, flags)
    }

    /// See [`FileSystem::create`].
    pub(crate) fn create_in(
        &self,
        who: &Caller,
        dir: &Inode,
        name: &[u8],
        perm: u16,
        flags: OpenFlags,
    ) -> Result<OpenFile> {
        let core = &self.core;
        let added = core.added_so_far();
        let body = core.search(who, dir)?;
        match check_new_name(name) {
            Err(Errno::EEXIST) if !flags.contains(OpenFlags::EXCLUSIVE) => {
                return Err(Errno::EISDIR);
            }
            checked => checked?,
        }
        if let Some(through) = core.through() {
            let node = match through.create(who, (dir, body), name, perm, flags)? {
                Created::Found(node) if node.kind().is_dir() => return Err(Errno::EISDIR),
                Created::Found(node) => return self.open_node(who, node, flags),
                Created::Made(node) => node,
            };
            core.notify_entry(who, dir.ino(), name);
            core.shrink_inodes_since(added);
            return self.made_through(who, node, flags);
        }
        let exclusive = flags.contains(OpenFlags::EXCLUSIVE);
        let known = if exclusive {
            // Seldom there, and looked for under the lock in any case.
            Err(Errno::ENOENT)
        } else {
            core.child(dir, body, name)
        };
        let existing = match known {
            Err(Errno::ENOENT) => {
                let new_inode = NewInode::of(FileType::Regular, perm);
                let reserved = core.reserve_new_inode(dir, Some(name), &new_inode);
                let (node, made) = {
                    let mut names = core.lock_name(dir, body, name)?;
                    match names.seek(name) {
                        Some(_) if exclusive => return Err(Errno::EEXIST),
                        // Somebody was faster. Under the lock, or it could be gone again.
                        Some(entry) => (core.node(entry.ino).map_err(dangling)?, false),
                        None => {
                            let made =
                                core.make_in(who, dir, &mut names, name, new_inode, reserved)?;
                            (made, true)
                        }
                    }
                };
                if made {
                    core.notify_entry(who, dir.ino(), name);
                    core.shrink_inodes_since(added);
                    return Ok(self.opened(node, flags));
                }
                node
            }
            found => found?,
        };
        if existing.kind().is_dir() {
            return Err(Errno::EISDIR);
        }
        self.open_node(who, existing, flags)
    }

    /// Makes a file without a name in the file system of `dir`; with EXCLUSIVE it can never get
    /// one, else [`FileSystem::link`] gives it its first.
    ///
    /// # Errors
    /// As [`FileSystem::create`]; `EINVAL` unless it is to be written.
    pub fn tmpfile(
        &self,
        who: &Caller,
        dir: &Node,
        perm: u16,
        flags: OpenFlags,
    ) -> Result<OpenFile> {
        let core = &self.core;
        if !flags.writable() {
            return Err(Errno::EINVAL);
        }
        let dir = dir.inode();
        let body = dir.directory()?;
        core.may(who, dir, Access::WRITE | Access::EXEC)?;
        if body.names.is_dead() {
            return Err(Errno::ENOENT);
        }
        let new_inode = NewInode::of(FileType::Regular, perm);
        if let Some(through) = core.through() {
            let linkable = !flags.contains(OpenFlags::EXCLUSIVE);
            let node = through.make_unnamed(who, dir, new_inode, linkable)?;
            return self.made_through(who, node, flags);
        }
        let mut reservation = core.reserve_new_inode(dir, None, &new_inode)?;
        let inode = core.allocate_inode(who, dir, clock::change(), 0, new_inode)?;
        // Nobody has locked the names, and it may get one anywhere.
        let ino = core.numbers.deal();
        {
            let mut meta = inode.write();
            meta.nlink = 0;
            meta.linkable = !flags.contains(OpenFlags::EXCLUSIVE);
        }
        let node = core.publish(ino, inode, Check::of(who), &mut reservation)?;
        // Not its end: `node` is a use.
        drop(node.inode().mark_freeing());
        if core.pinned {
            reservation.keep_only(kept_values(node.inode()));
        } else {
            core.record_new_inode(&mut reservation, dir, &node, None, None)?;
        }
        Ok(self.opened(node, flags))
    }
}

impl Core {
    fn may_open(&self, who: &Caller, node: &Node, flags: OpenFlags) -> Result<()> {
        let mut want = Access::empty();
        want.set(Access::READ, flags.readable());
        // Truncation asks for it even where there is nothing to truncate.
        let truncate = flags.contains(OpenFlags::TRUNCATE);
        want.set(Access::WRITE, flags.writable() || truncate);
        match node.kind() {
            FileType::Symlink => return Err(Errno::ELOOP),
            FileType::Directory if want.contains(Access::WRITE) => return Err(Errno::EISDIR),
            FileType::CharDevice | FileType::BlockDevice if self.policy.nodev() => {
                return Err(Errno::EACCES);
            }
            _ => {}
        }
        self.may(who, node.inode(), want)?;
        let appends = flags.contains(OpenFlags::APPEND) && !truncate;
        if want.contains(Access::WRITE) && !appends {
            node.inode().allow_change()?;
        }
        if flags.contains(OpenFlags::NOATIME) && !owns(who, &node.inode().meta()) {
            return Err(Errno::EPERM);
        }
        match node.kind() {
            FileType::Regular | FileType::Directory => Ok(()),
            _ => Err(Errno::ENXIO),
        }
    }
}

impl FileSystem {
    // Inlined, as are its callees: the value is built in the place where it stays.
    #[inline(always)]
    fn opened(&self, node: Node, flags: OpenFlags) -> OpenFile {
        self.core.notify_event(node.inode(), EventMask::OPEN);
        self.open_file(node, flags)
    }

    /// A file that a store which is written through has just made, and opened if it is to be written.
    ///
    /// # Errors
    /// `ESTALE`: others have removed it already. What the store answers.
    fn made_through(&self, who: &Caller, node: Node, flags: OpenFlags) -> Result<OpenFile> {
        let mut file = self.opened(node, flags);
        file.through = file.writes();
        if !file.through {
            self.open_through(who, &mut file)?;
        }
        Ok(file)
    }

    #[inline(always)]
    fn open_file(&self, node: Node, flags: OpenFlags) -> OpenFile {
        let kept = flags.difference(OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::TRUNCATE);
        let epochs = &self.core.reclaim.epochs;
        node.inode().touch_with_content(epochs);
        OpenFile {
            listing_end: AtomicU64::new(Listing::NO_END),
            opened: Opened::at(self.core.registration.place()),
            node,
            flags: AtomicI32::new(kept.bits()),
            seen: true,
            heard: AtomicBool::new(self.core.failure.is_latched()),
            through: false,
            owner: AtomicU64::new(0),
        }
    }
}
