//! Finding a name's inode.

use std::sync::atomic::Ordering;

use crate::FileSystem;
use crate::directory::Entry;
use crate::file_system::Core;
use crate::inode::{DirectoryBody, Inode, Numbered as _};
use crate::node::Node;
use crate::types::{Access, Caller, Errno, Ino, Result, check_component};

impl FileSystem {
    /// The inode that `name` of the directory `dir` leads to; `.` and `..` work.
    ///
    /// # Errors
    /// `ENOTDIR`, `EACCES` without search permission, `ENAMETOOLONG`, `ENOENT`.
    pub fn lookup(&self, who: &Caller, dir: &Node, name: &[u8]) -> Result<Node> {
        if name == b"/" {
            // No name was looked up to get there: nothing had to be searched.
            return Ok(dir.clone());
        }
        let core = &self.core;
        let added = core.added_so_far();
        let body = core.search(who, dir.inode())?;
        let found = match name {
            b"." => Ok(dir.clone()),
            // The parent of a removed directory may be gone as well.
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
    /// The names of a directory that the caller may search.
    ///
    /// # Errors
    /// `ENOTDIR`, `EACCES`, what the store answers.
    pub(crate) fn search<'n>(&self, who: &Caller, dir: &'n Inode) -> Result<&'n DirectoryBody> {
        self.alive()?;
        let body = dir.directory()?;
        self.refresh(dir)?;
        self.may(who, dir, Access::EXEC)?;
        self.names_of(dir, body)?;
        Ok(body)
    }

    /// Names of a directory come into memory for a caller that may search it.
    ///
    /// # Errors
    /// What the store answers.
    #[inline]
    fn names_of(&self, dir: &Inode, body: &DirectoryBody) -> Result<()> {
        dir.touch(&self.reclaim.epochs);
        match self.coherence.is_some() {
            // Of those it is asked for one at first.
            true => Ok(()),
            false => self.load_names(dir, body),
        }
    }

    /// As [`Core::child`], for a name that nobody has checked.
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
    /// `ENOENT`, what the store answers.
    pub(crate) fn child(&self, dir: &Inode, body: &DirectoryBody, name: &[u8]) -> Result<Node> {
        if let Some(shared) = self.shared() {
            return self.child_of_shared(shared, dir, body, name);
        }
        let find = || {
            self.find_name(dir, body, name)?
                .ok_or_else(|| self.absent())
        };
        let mut entry = find()?;
        loop {
            let found = self.node_named(dir, body, name, entry);
            if let Ok(node) = &found
                && !self.pinned
                && node.inode().meta().home.1 == 0
            {
                // Loaded by number: only now it is known under which name.
                let mut meta = node.inode().write();
                // Else it was moved meanwhile.
                if meta.home.1 == 0 {
                    meta.home = (dir.ino(), entry.cookie);
                }
            }
            if found != Err(Errno::ESTALE) {
                return found;
            }
            // The name went, or leads elsewhere, since it was found; else it leads nowhere.
            let mut again = find()?;
            if again == entry {
                // Or it is the whiteout of a rename that is not over yet.
                body.names.wait();
                let found = self.node(entry.ino);
                again = find()?;
                if again == entry || found != Err(Errno::ESTALE) {
                    return found.map_err(dangling);
                }
            }
            entry = again;
        }
    }
}

impl Core {
    /// Brings the inode of a name into memory before the names are locked: the lock is not held over the read, and others may
    /// [come along](Core::load_named). Over a store that pins everything it is there.
    ///
    /// # Errors
    /// What the store answers for the name. If the inode cannot be read, its next load tells why.
    pub(super) fn bring_named(&self, dir: &Inode, body: &DirectoryBody, name: &[u8]) -> Result<()> {
        if self.pinned {
            return Ok(());
        }
        if let Some(entry) = self.find_name(dir, body, name)?
            && !self.has_inode(entry.ino)
            && let Ok(node) = self.load_named(dir, body, name, entry)
        {
            self.put(node);
        }
        Ok(())
    }

    /// The inode that a name leads to. If it is not in memory others may [come along](Core::load_named).
    #[inline]
    fn node_named(
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

/// A name that leads to no inode is corruption of the store, not staleness of a handle.
pub(crate) fn dangling(error: Errno) -> Errno {
    if error == Errno::ESTALE {
        Errno::EUCLEAN
    } else {
        error
    }
}
