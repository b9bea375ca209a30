//! Looking up names.

use std::sync::atomic::Ordering;

use crate::FileSystem;
use crate::by_number::find_node;
use crate::core::{Core, no_entry};
use crate::directory::Entry;
use crate::inode::{DirectoryBody, Inode, Numbered as _};
use crate::inodes::find::node_in_memory;
use crate::namespace::find::find_name;
use crate::namespace::load::load_names;
use crate::namespace::window::load_named;
use crate::node::Node;
use crate::permission::may_access;
use crate::reclaim::metadata::{added_so_far, shrink_inodes_since};
use crate::shared::child::child_of_shared;
use crate::shared::refresh_inode;
use crate::types::{Access, Caller, Errno, Ino, Result, check_component};

impl FileSystem {
    /// The inode of `name` in the directory `dir`; `.` and `..` work.
    ///
    /// # Errors
    /// `ENOTDIR`, `EACCES` without search permission, `ENAMETOOLONG`, `ENOENT`.
    pub fn lookup(&self, who: &Caller, dir: &Node, name: &[u8]) -> Result<Node> {
        hop!();
        if name == b"/" {
            // `dir` is the root of the path; search permission is not needed.
            return Ok(dir.clone());
        }
        let core = &self.core;
        let added = added_so_far(core);
        let body = search(core, who, dir.inode())?;
        let found = match name {
            b"." => Ok(dir.clone()),
            // The parent of a removed directory may have been freed.
            b".." => match find_node(core, Ino(body.parent.load(Ordering::Relaxed))) {
                Err(Errno::ESTALE) => Err(Errno::ENOENT),
                found => found,
            },
            _ => find_named(core, dir.inode(), body, name),
        };
        shrink_inodes_since(core, added);
        found
    }
}

/// The names of a directory, after the check of the caller's search permission.
///
/// # Errors
/// `ENOTDIR`, `EACCES`, the store's.
pub(crate) fn search<'n>(core: &Core, who: &Caller, dir: &'n Inode) -> Result<&'n DirectoryBody> {
    hop!();
    core.alive()?;
    let body = dir.directory()?;
    refresh_inode(core, dir)?;
    may_access(core, who, dir, Access::EXEC)?;
    dir.touch(&core.reclaim.epochs);
    // A directory that others change is asked for one name first.
    if core.coherence.is_none() {
        load_names(core, dir, body)?;
    }
    Ok(body)
}

/// As [`find_child`], for an unchecked name.
///
/// # Errors
/// The same, and `ENAMETOOLONG`, `EINVAL`.
fn find_named(core: &Core, dir: &Inode, body: &DirectoryBody, name: &[u8]) -> Result<Node> {
    check_component(name)?;
    find_child(core, dir, body, name)
}

/// The inode of a name.
///
/// # Errors
/// `ENOENT`, the store's.
pub(crate) fn find_child(
    core: &Core,
    dir: &Inode,
    body: &DirectoryBody,
    name: &[u8],
) -> Result<Node> {
    hop!();
    if let Some(shared) = core.shared() {
        return child_of_shared(core, shared, dir, body, name);
    }
    let find = || find_name(core, dir, body, name)?.ok_or_else(|| no_entry(core));
    let mut entry = find()?;
    loop {
        let found = node_named(core, dir, body, name, entry);
        if let Ok(node) = &found
            && !node.inode().has_home()
        {
            // The inode was loaded by number, without its name.
            let mut meta = node.inode().write();
            // Rechecked under the lock: a rename may have set it meanwhile.
            if meta.home.1 == 0 {
                meta.home = (dir.ino(), entry.cookie);
            }
        }
        if found != Err(Errno::ESTALE) {
            return found;
        }
        // The name was removed or replaced after it was found; otherwise it is dangling.
        let mut retried = find()?;
        if retried == entry {
            // It may also be the whiteout of a rename in progress.
            body.names.wait();
            let found = find_node(core, entry.ino);
            retried = find()?;
            if retried == entry || found != Err(Errno::ESTALE) {
                return found.map_err(dangling);
            }
        }
        entry = retried;
    }
}

/// The inode of an entry. If it is loaded, others may be [read
/// ahead](crate::namespace::window::load_named).
#[inline]
pub(super) fn node_named(
    core: &Core,
    dir: &Inode,
    body: &DirectoryBody,
    name: &[u8],
    entry: Entry,
) -> Result<Node> {
    match node_in_memory(core, entry.ino)? {
        Some(node) => Ok(node),
        None => load_named(core, dir, body, name, entry),
    }
}

/// A name without an inode is corruption of the store, not a stale handle.
pub(crate) fn dangling(error: Errno) -> Errno {
    if error == Errno::ESTALE {
        Errno::EUCLEAN
    } else {
        error
    }
}
