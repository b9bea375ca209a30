//! Looking up names.

use std::sync::atomic::Ordering;

use crate::FileSystem;
use crate::core::Core;
use crate::directory::Entry;
use crate::inode::{DirectoryBody, Inode, Numbered as _};
use crate::node::Node;
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
        let added = core.added_so_far();
        let body = core.search(who, dir.inode())?;
        let found = match name {
            b"." => Ok(dir.clone()),
            // The parent of a removed directory may have been freed.
            b".." => match core.node(Ino(body.parent.load(Ordering::Relaxed))) {
                Err(Errno::ESTALE) => Err(Errno::ENOENT),
                found => found,
            },
            _ => core.named(dir.inode(), body, name),
        };
        core.shrink_inodes_since(added);
        found
    }
}

impl Core {
    /// The names of a directory, after the check of the caller's search permission.
    ///
    /// # Errors
    /// `ENOTDIR`, `EACCES`, the store's.
    pub(crate) fn search<'n>(&self, who: &Caller, dir: &'n Inode) -> Result<&'n DirectoryBody> {
        hop!();
        self.alive()?;
        let body = dir.directory()?;
        self.refresh(dir)?;
        self.may(who, dir, Access::EXEC)?;
        dir.touch(&self.reclaim.epochs);
        // A directory that others change is asked for one name first.
        if self.coherence.is_none() {
            self.load_names(dir, body)?;
        }
        Ok(body)
    }

    /// As [`Core::child`], for an unchecked name.
    ///
    /// # Errors
    /// The same, and `ENAMETOOLONG`, `EINVAL`.
    pub(crate) fn named(&self, dir: &Inode, body: &DirectoryBody, name: &[u8]) -> Result<Node> {
        check_component(name)?;
        self.child(dir, body, name)
    }

    /// The inode of a name.
    ///
    /// # Errors
    /// `ENOENT`, the store's.
    pub(crate) fn child(&self, dir: &Inode, body: &DirectoryBody, name: &[u8]) -> Result<Node> {
        hop!();
        if let Some(shared) = self.shared() {
            return self.child_of_shared(shared, dir, body, name);
        }
        let find = || {
            self.find_name(dir, body, name)?
                .ok_or_else(|| self.no_entry())
        };
        let mut entry = find()?;
        loop {
            let found = self.node_named(dir, body, name, entry);
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
                let found = self.node(entry.ino);
                retried = find()?;
                if retried == entry || found != Err(Errno::ESTALE) {
                    return found.map_err(dangling);
                }
            }
            entry = retried;
        }
    }
}

impl Core {
    /// The inode of an entry. If it is loaded, others may be [read ahead](Core::load_named).
    #[inline]
    pub(super) fn node_named(
        &self,
        dir: &Inode,
        body: &DirectoryBody,
        name: &[u8],
        entry: Entry,
    ) -> Result<Node> {
        match self.node_in_memory(entry.ino)? {
            Some(node) => Ok(node),
            None => self.load_named(dir, body, name, entry),
        }
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
