//! Open files: opening, creating, closing.
//!
//! An open file is a reference to its inode: the content stays until the last one is closed, even
//! if the inode is unlinked. Dropping an [`OpenFile`] closes it.

use crate::open_file::OpenFile;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

use crate::coherence::Coherence;
use crate::core::Core;
use crate::events::notify_event;
use crate::inode::{Inode, Numbered as _};
use crate::io::resize::resize_file;
use crate::listing::Listing;
use crate::lock_operations::release_locks;
use crate::locks::{LockOwner, LockSpace};
use crate::losses::Losses;
use crate::namespace::NewInode;
use crate::namespace::create::create_entry;
use crate::namespace::lookup::{find_child, search};
use crate::namespace::new_inode::{allocate_inode, commit_new_inode, intent_to_make};
use crate::namespace::publish::publish_inode;
use crate::node::Node;
use crate::notify::{notify_entry, notify_inode};
use crate::permission::{may_access, owns};
use crate::quota::Check;
use crate::reclaim::metadata::{added_so_far, shrink_inodes_since};
use crate::registry::Opened;
use crate::shared::{or_gone, refresh_inode};
use crate::transaction::{Begun, Transaction, begin};
use crate::types::{Access, Caller, Errno, FileType, OpenFlags, Result, check_new_name};
use crate::watch::EventMask;
use crate::{FileSystem, clock};

impl Drop for OpenFile {
    #[inline]
    fn drop(&mut self) {
        // Without an owner number it holds no locks.
        if *self.owner.get_mut() != 0 || self.kept || self.opened.place().is_watched() {
            self.notify_close();
        }
    }
}

impl OpenFile {
    /// Releases its locks, and notifies watchers and the store.
    #[cold]
    fn notify_close(&self) {
        // After the end of its file system there is no waiter, watcher or store.
        let Some(core) = self.opened.place().core() else {
            return;
        };
        let owner = self.owner.load(Ordering::Relaxed);
        if owner != 0 {
            release_locks(&core, &self.node, LockOwner(owner), LockSpace::Flock);
            release_locks(&core, &self.node, LockOwner(owner), LockSpace::Ofd);
        }
        if self.seen && !self.flags().contains(OpenFlags::PATH) {
            let mask = if self.flags().writable() {
                EventMask::CLOSE_WRITE
            } else {
                EventMask::CLOSE_NOWRITE
            };
            notify_event(&core, self.node.inode(), mask);
        }
        if self.kept {
            core.store.close_inode(self.node.ino(), self.is_writer());
        }
    }
}

impl FileSystem {
    /// Opens an inode.
    ///
    /// # Errors
    /// `EACCES`, `EROFS`; `EISDIR` to write a directory; `ENOTDIR` with DIRECTORY. `ELOOP` for a
    /// symbolic link, `ENXIO` for a fifo, socket or device (unless only PATH is asked for). `EPERM`
    /// for NOATIME unless owner, for writing an immutable inode, and for writing an append-only
    /// inode without APPEND.
    pub fn open(&self, who: &Caller, node: &Node, flags: OpenFlags) -> Result<OpenFile> {
        self.open_node(who, node.clone(), flags)
    }

    /// Opens an inode for one operation of a front end with stateless opens: access was checked
    /// earlier, and watches see only the operation.
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
        // Each operation checks the inode's flags itself.
        may_open(&self.core, &who, &node, OpenFlags::empty())?;
        if flags.writable() && node.kind().is_dir() {
            return Err(Errno::EISDIR);
        }
        let mut file = self.open_file(node, flags);
        file.seen = false;
        if file.is_writer() {
            self.keep_open(&who, &mut file)?;
        }
        Ok(file)
    }

    /// Asks the store to keep the inode of a file that is open for writing, or that others may
    /// remove.
    ///
    /// # Errors
    /// `ESTALE`: it has gone, so the lookup has to be repeated. The store's.
    #[inline]
    fn keep_open(&self, who: &Caller, file: &mut OpenFile) -> Result<()> {
        let (core, writes) = (&self.core, file.is_writer());
        let is_shared = |it: &Coherence| writes || it.is_dated();
        if core.coherence.as_deref().is_some_and(is_shared) {
            let kept = core.store.open_inode(who, file.node.ino(), writes);
            file.kept = kept.map_err(|error| or_gone(core, error))?;
        }
        Ok(())
    }

    /// As [`FileSystem::open`]; the open file takes over the reference `node`.
    pub(crate) fn open_node(&self, who: &Caller, node: Node, flags: OpenFlags) -> Result<OpenFile> {
        let core = &self.core;
        core.alive()?;
        refresh_inode(core, node.inode())?;
        if flags.contains(OpenFlags::DIRECTORY) && !node.kind().is_dir() {
            return Err(Errno::ENOTDIR);
        }
        if flags.contains(OpenFlags::PATH) {
            let mut file = self.open_file(node, flags);
            self.keep_open(who, &mut file)?;
            return Ok(file);
        }
        let truncate = flags.contains(OpenFlags::TRUNCATE) && node.kind() == FileType::Regular;
        may_open(core, who, &node, flags)?;
        // Precedes the truncation: an open file can be truncated whatever its permissions are.
        let mut file = self.open_file(node, flags);
        file.seen = false;
        self.keep_open(who, &mut file)?;
        if truncate {
            let node = &file.node;
            core.writable()?;
            resize_file(core, who, node, 0, true)?;
            notify_inode(core, who, node.ino(), true);
        }
        file.seen = true;
        notify_event(core, file.node.inode(), EventMask::OPEN);
        Ok(file)
    }

    /// Opens the regular file of this name, creating it if it does not exist. A symbolic link is
    /// not followed (`ELOOP`): [`FileSystem::open_at`] follows.
    ///
    /// # Errors
    /// Those of [`FileSystem::open`] and [`FileSystem::mknod`]; `EEXIST` with EXCLUSIVE; `EISDIR`
    /// for a directory.
    pub fn create(
        &self,
        who: &Caller,
        dir: &Node,
        name: &[u8],
        perm: u16,
        flags: OpenFlags,
    ) -> Result<OpenFile> {
        hop!();
        let (core, dir) = (&self.core, dir.inode());
        let added = added_so_far(core);
        let body = search(core, who, dir)?;
        match check_new_name(name) {
            Err(Errno::EEXIST) if !flags.contains(OpenFlags::EXCLUSIVE) => {
                return Err(Errno::EISDIR);
            }
            checked => checked?,
        }
        let known = if flags.contains(OpenFlags::EXCLUSIVE) || core.through.is_some() {
            // It rarely exists, and is looked up under the lock or by the store in any case.
            Err(Errno::ENOENT)
        } else {
            find_child(core, dir, body, name)
        };
        let (node, created) = match known {
            Err(Errno::ENOENT) => {
                let new_inode = NewInode::of(FileType::Regular, perm);
                create_entry(core, who, (dir, body), name, new_inode, flags)?
            }
            found => (found?, false),
        };
        if created {
            notify_entry(core, who, dir.ino(), name);
            shrink_inodes_since(core, added);
            return self.opened_new(who, node, flags);
        }
        if node.kind().is_dir() {
            return Err(Errno::EISDIR);
        }
        self.open_node(who, node, flags)
    }

    /// Creates a file without a name in the file system of `dir`. [`FileSystem::link`] can give it
    /// its first name, unless EXCLUSIVE is set.
    ///
    /// # Errors
    /// As [`FileSystem::create`]; `EINVAL` unless it is opened for writing.
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
        may_access(core, who, dir, Access::WRITE | Access::EXEC)?;
        if body.names.is_dead() {
            return Err(Errno::ENOENT);
        }
        let new_inode = NewInode {
            linkable: !flags.contains(OpenFlags::EXCLUSIVE),
            ..NewInode::of(FileType::Regular, perm)
        };
        let begun = begin(
            core,
            || intent_to_make(dir, None, &new_inode),
            |through| through.make(who, dir, None, new_inode, true),
        );
        let node = match begun? {
            Begun::Done(performed) => performed.take_in_unnamed(new_inode.linkable)?,
            Begun::Decide(transaction) => make_unnamed(core, who, transaction, dir, new_inode)?,
        };
        self.opened_new(who, node, flags)
    }
}

/// Creates a file without a name in memory, and commits that.
fn make_unnamed(
    core: &Core,
    who: &Caller,
    mut transaction: Transaction<'_>,
    dir: &Inode,
    new_inode: NewInode<'_>,
) -> Result<Node> {
    let inode = allocate_inode(core, who, dir, clock::change(), 0, new_inode)?;
    // The names are not locked, so no chunk of `dir` can be used; the file may be linked
    // anywhere.
    let ino = core.numbers.assign();
    {
        let mut meta = inode.write();
        meta.nlink = 0;
        meta.linkable = new_inode.linkable;
    }
    let node = publish_inode(core, ino, inode, Check::of(who), transaction.reservation())?;
    // `node` is a reference, so the inode is not freed here.
    drop(node.inode().mark_freeing());
    commit_new_inode(transaction.lock([]), dir, &node, None, None)?;
    Ok(node)
}

fn may_open(core: &Core, who: &Caller, node: &Node, flags: OpenFlags) -> Result<()> {
    let mut want = Access::empty();
    want.set(Access::READ, flags.readable());
    // Truncation needs write permission even if there is nothing to truncate.
    let truncate = flags.contains(OpenFlags::TRUNCATE);
    want.set(Access::WRITE, flags.writable() || truncate);
    match node.kind() {
        FileType::Symlink => return Err(Errno::ELOOP),
        FileType::Directory if want.contains(Access::WRITE) => return Err(Errno::EISDIR),
        FileType::CharDevice | FileType::BlockDevice if core.policy.nodev() => {
            return Err(Errno::EACCES);
        }
        _ => {}
    }
    may_access(core, who, node.inode(), want)?;
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

impl FileSystem {
    /// Opens a file that was just created. A store that is written through has opened it with its
    /// creation if it is opened for writing.
    ///
    /// # Errors
    /// `ESTALE`: others have removed it already. The store's.
    // Inlined, as is its callee, so that the value is built in place.
    #[inline(always)]
    fn opened_new(&self, who: &Caller, node: Node, flags: OpenFlags) -> Result<OpenFile> {
        notify_event(&self.core, node.inode(), EventMask::OPEN);
        let mut file = self.open_file(node, flags);
        file.kept = self.core.through.is_some() && file.is_writer();
        if !file.kept {
            self.keep_open(who, &mut file)?;
        }
        Ok(file)
    }

    #[inline(always)]
    fn open_file(&self, node: Node, flags: OpenFlags) -> OpenFile {
        hop!();
        let kept = flags.difference(OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::TRUNCATE);
        let epochs = &self.core.reclaim.epochs;
        node.inode().touch_with_content(epochs);
        let losses = self.core.coherence.as_ref().map(|it| &it.losses);
        OpenFile {
            listing_end: AtomicU64::new(Listing::NO_END),
            opened: Opened::at(self.core.registration.place()),
            node,
            flags: AtomicI32::new(kept.bits()),
            seen: true,
            reported: AtomicBool::new(self.core.failure.is_latched()),
            losses: AtomicU64::new(losses.map_or(0, Losses::count)),
            kept: false,
            owner: AtomicU64::new(0),
        }
    }
}
