//! openat(2): opening by path, made if it is not there.

use super::rcu_walk::BorrowedAt;
use super::walk::Walk;
use crate::FileSystem;
use crate::node::Node;
use crate::open::OpenFile;
use crate::types::{Caller, Errno, FileType, OpenFlags, Result, is_special};

impl FileSystem {
    /// Opens what a path leads to, as openat(2): `perm` is for a file that CREATE or TMPFILE
    /// makes.
    ///
    /// # Errors
    /// Those of [`FileSystem::resolve`], [`FileSystem::open`], [`FileSystem::create`] and
    /// [`FileSystem::tmpfile`]; `EINVAL` for CREATE with DIRECTORY; `EISDIR` for CREATE where
    /// slashes follow; `ELOOP` for a symbolic link with NOFOLLOW.
    pub fn open_at(
        &self,
        who: &Caller,
        base: &Node,
        path: &[u8],
        flags: OpenFlags,
        perm: u16,
    ) -> Result<OpenFile> {
        self.core
            .again_if_gone(|| self.open_path(who, base, path, flags, perm))
    }

    fn open_path(
        &self,
        who: &Caller,
        base: &Node,
        path: &[u8],
        flags: OpenFlags,
        perm: u16,
    ) -> Result<OpenFile> {
        let follow = !flags.contains(OpenFlags::NOFOLLOW);
        if flags.contains(OpenFlags::PATH) {
            let kept = OpenFlags::PATH | OpenFlags::DIRECTORY | OpenFlags::NOFOLLOW;
            let node = self.resolve(who, base, path, follow)?;
            return self.open_node(who, node, flags.intersection(kept));
        }
        if flags.is_tmpfile() {
            if flags.contains(OpenFlags::CREATE) || !flags.writable() {
                return Err(Errno::EINVAL);
            }
            let dir = self.resolve(who, base, path, follow)?;
            return self.tmpfile(who, &dir, perm, flags);
        }
        if !flags.contains(OpenFlags::CREATE) {
            let node = self.resolve(who, base, path, follow)?;
            return self.open_node(who, node, flags);
        }
        if flags.contains(OpenFlags::DIRECTORY) {
            return Err(Errno::EINVAL);
        }
        let made = self.at_parent(who, base, path, |at| self.create_at(who, at, flags, perm));
        match made {
            Err(Errno::ELOOP) if follow && !flags.contains(OpenFlags::EXCLUSIVE) => {
                self.create_through_links(who, base, path, flags, perm)
            }
            made => made,
        }
    }

    /// Opens the file of the last name of a path, made if it is not there.
    ///
    /// # Errors
    /// `ELOOP` if it is a symbolic link.
    fn create_at(
        &self,
        who: &Caller,
        at: BorrowedAt<'_, '_>,
        flags: OpenFlags,
        perm: u16,
    ) -> Result<OpenFile> {
        if is_special(at.name) {
            return Err(match flags.contains(OpenFlags::EXCLUSIVE) {
                true => Errno::EEXIST,
                false => Errno::EISDIR,
            });
        }
        if at.trailing_slash {
            return Err(Errno::EISDIR);
        }
        self.create_in(who, at.dir, at.name, perm, flags)
    }

    /// As [`open_path`](Self::open_path) with CREATE, where the last name is a symbolic link.
    fn create_through_links(
        &self,
        who: &Caller,
        base: &Node,
        path: &[u8],
        flags: OpenFlags,
        perm: u16,
    ) -> Result<OpenFile> {
        let mut walk = Walk::new(self, base, path)?;
        loop {
            let at = walk.parent(self, who)?;
            match self.create_at(who, at.spot(), flags, perm) {
                Err(Errno::ELOOP) => {}
                made => return made,
            }
            match self.lookup(who, &at.dir, &at.name) {
                Ok(link) if link.kind() == FileType::Symlink => walk.through(self, &link, at)?,
                // Another thread replaced or removed the link.
                Ok(_) | Err(Errno::ENOENT) => return self.create_at(who, at.spot(), flags, perm),
                Err(error) => return Err(error),
            }
        }
    }
}
