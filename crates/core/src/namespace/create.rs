//! Creating inodes: files, directories, symbolic links, devices, unnamed files.

use super::{NewInode, dangling};
use crate::FileSystem;
use crate::by_number::find_node;
use crate::core::Core;
use crate::events::notify_name;
use crate::inode::{DirectoryBody, Inode, Numbered as _};
use crate::namespace::load::count_name;
use crate::namespace::lock::{is_full_of_directories, lock_name};
use crate::namespace::lookup::{find_child, search};
use crate::namespace::new_inode::{
    allocate_inode, assign_number, commit_new_inode, intent_to_make,
};
use crate::namespace::publish::{publish_inode, unpublish_inode};
use crate::namespace::refused::{refused, refused_new};
use crate::node::Node;
use crate::notify::notify_entry;
use crate::permission::may_create;
use crate::quota::Check;
use crate::reclaim::metadata::{added_so_far, shrink_inodes_since};
use crate::shared::child::ask_for_child;
use crate::transaction::{Begun, Transaction, begin, release_kept};
use crate::types::{
    Caller, Caps, Errno, FileType, NAME_MAX, OpenFlags, PATH_MAX, Result, S_ISVTX, check_new_name,
    is_special,
};
use crate::watch::EventMask;

/// How often a name may appear and disappear between lookup and creation.
const ROUNDS: u32 = 16;

impl FileSystem {
    /// Creates a regular file, fifo, socket or device.
    ///
    /// # Errors
    /// `EEXIST`, `ENOENT` in a removed directory, `EACCES`, `EROFS`, `ENOSPC`, `EDQUOT`,
    /// `ENAMETOOLONG`. `EPERM` for a device without `CAP_MKNOD` or for a directory; `EINVAL` for a
    /// symbolic link.
    pub fn mknod(
        &self,
        who: &Caller,
        dir: &Node,
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

    /// Creates a directory.
    ///
    /// # Errors
    /// As [`FileSystem::mknod`]; `EMLINK` when `dir` holds too many directories.
    pub fn mkdir(&self, who: &Caller, dir: &Node, name: &[u8], perm: u16) -> Result<Node> {
        let new_inode = NewInode::of(FileType::Directory, perm & (0o777 | S_ISVTX));
        self.make(who, dir, name, new_inode)
    }

    /// Creates a symbolic link.
    ///
    /// # Errors
    /// As [`FileSystem::mknod`]; `ENOENT` for an empty target, `ENAMETOOLONG` for one of 4096
    /// bytes or more.
    pub fn symlink(&self, who: &Caller, dir: &Node, name: &[u8], target: &[u8]) -> Result<Node> {
        check_target(target)?;
        let new_inode = NewInode {
            target: Some(target),
            ..NewInode::of(FileType::Symlink, 0o777)
        };
        self.make(who, dir, name, new_inode)
    }

    fn make(&self, who: &Caller, dir: &Node, name: &[u8], new_inode: NewInode<'_>) -> Result<Node> {
        if is_special(name) {
            return Err(Errno::EEXIST);
        }
        let (core, dir) = (&self.core, dir.inode());
        let added = added_so_far(core);
        let body = search(core, who, dir)?;
        check_new_name(name)?;
        let (node, _) = create_entry(
            core,
            who,
            (dir, body),
            name,
            new_inode,
            OpenFlags::EXCLUSIVE,
        )?;
        notify_entry(core, who, dir.ino(), name);
        shrink_inodes_since(core, added);
        Ok(node)
    }
}

/// Validates the target of a symbolic link.
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

/// Creates an inode with a name. If the name exists and `flags` have no EXCLUSIVE, returns its
/// inode; the flag tells whether it was created. A store that is written through opens it as
/// well if `flags` say so.
pub(crate) fn create_entry(
    core: &Core,
    who: &Caller,
    (dir, body): (&Inode, &DirectoryBody),
    name: &[u8],
    new_inode: NewInode<'_>,
    flags: OpenFlags,
) -> Result<(Node, bool)> {
    hop!();
    let exclusive = flags.contains(OpenFlags::EXCLUSIVE);
    let intent = || intent_to_make(dir, Some(name), &new_inode);
    for _ in 0..ROUNDS {
        let begun = begin(core, intent, |through| {
            may_make(core, who, dir, new_inode)?;
            through.make(who, dir, Some(name), new_inode, flags.writable())
        });
        let error = match begun {
            Ok(Begun::Done(performed)) => {
                let node = performed.take_in_made((dir, body), name, flags.writable())?;
                let is_dir = new_inode.kind.is_dir();
                notify_name(core, dir.ino(), EventMask::CREATE, name, is_dir, 0);
                return Ok((node, true));
            }
            Ok(Begun::Decide(transaction)) => {
                return make_in_memory(
                    core,
                    who,
                    transaction,
                    (dir, body),
                    name,
                    new_inode,
                    exclusive,
                );
            }
            Err(error) => not_made(core, who, (dir, body), name, new_inode, error),
        };
        if error != Errno::EEXIST || exclusive {
            return Err(error);
        }
        if let Some(found) = ask_child(core, dir, body, name)? {
            return Ok((found, false));
        }
    }
    Err(Errno::EEXIST)
}

/// Creates the inode and its name in memory, and commits that.
fn make_in_memory(
    core: &Core,
    who: &Caller,
    mut transaction: Transaction<'_>,
    (dir, body): (&Inode, &DirectoryBody),
    name: &[u8],
    new_inode: NewInode<'_>,
    exclusive: bool,
) -> Result<(Node, bool)> {
    hop!();
    let mut names = lock_name(core, dir, body, name)?;
    match names.get(name) {
        Some(_) if exclusive => return Err(Errno::EEXIST),
        // Referenced under the lock, or it could be removed again.
        Some(entry) => return Ok((find_node(core, entry.ino).map_err(dangling)?, false)),
        None => may_make(core, who, dir, new_inode)?,
    }
    let now = dir.time_of_change();
    let cookie = names.next_cookie();
    let inode = allocate_inode(core, who, dir, now, cookie, new_inode)?;
    debug_assert!(name.len() <= NAME_MAX);
    let is_dir = new_inode.kind.is_dir();
    let ino = assign_number(core, &mut names, new_inode.kind);
    // The inode precedes its name: a lookup that finds the name finds the inode.
    let node = publish_inode(core, ino, inode, Check::of(who), transaction.reservation())?;
    let transaction = transaction.lock([dir]);
    names.changed(dir, 1, i32::from(is_dir), now);
    // The store precedes the name, so that the inode cannot be changed before the store has it.
    let named = Some((name, cookie));
    let committed = commit_new_inode(transaction, dir, &node, new_inode.target, named);
    let named = committed.and_then(|()| {
        let inserted = names.insert(name, cookie, ino, new_inode.kind);
        inserted.inspect_err(|_| release_kept(core, name.len()))
    });
    if let Err(error) = named {
        names.changed(dir, 0, -i32::from(is_dir), now);
        unpublish_inode(core, node);
        return Err(error);
    }
    count_name(core, &names, name);
    notify_name(core, dir.ino(), EventMask::CREATE, name, is_dir, 0);
    Ok((node, true))
}

/// Why nothing was created: the caller's permission and an existing name precede the store's
/// lack of space.
fn not_made(
    core: &Core,
    who: &Caller,
    (dir, body): (&Inode, &DirectoryBody),
    name: &[u8],
    new_inode: NewInode<'_>,
    error: Errno,
) -> Errno {
    let denied = may_make(core, who, dir, new_inode).err();
    match denied.or((error == Errno::ENOSPC).then_some(error)) {
        Some(error) => refused_new(core, (dir, body), name, error),
        None => {
            refused(core, dir, body, name, error);
            error
        }
    }
}

/// The inode of a name, which a store that others change is asked for. `None`: there is none.
fn ask_child(core: &Core, dir: &Inode, body: &DirectoryBody, name: &[u8]) -> Result<Option<Node>> {
    if let Some(shared) = core.shared() {
        return ask_for_child(core, shared, dir, body, name);
    }
    match find_child(core, dir, body, name) {
        Err(Errno::ENOENT) => Ok(None),
        found => found.map(Some),
    }
}

/// Checks that the caller may create this in a directory. The caller holds the lock of the
/// names.
#[inline]
fn may_make(core: &Core, who: &Caller, dir: &Inode, new_inode: NewInode<'_>) -> Result<()> {
    hop!();
    may_create(core, who, dir)?;
    // A whiteout (0:0) is not a real device.
    if new_inode.kind.is_device()
        && !(new_inode.kind == FileType::CharDevice && new_inode.rdev == 0)
        && !who.has(Caps::MKNOD)
    {
        return Err(Errno::EPERM);
    }
    if new_inode.kind.is_dir() && is_full_of_directories(core, dir) {
        return Err(Errno::EMLINK);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::clock;
    use crate::store::{MemoryLimits, MemoryStore};
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
            // The lock's holder changes the directory meanwhile.
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
