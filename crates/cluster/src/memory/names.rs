//! Names are made and removed.

use super::state::{Inode, Named, Nameless};
use super::transaction::Transaction;
use crate::meta::{Answer, NewInode};
use holdfast_types::{Errno, FileType, Ino, Result};

impl Transaction<'_> {
    /// # Errors
    /// Those of [`Request::Make`](crate::meta::Request::Make).
    pub(super) fn make(mut self, dir: Ino, name: &[u8], new: &NewInode) -> Result<Answer> {
        self.check_free(dir, name)?;
        self.check_new(new)?;
        let entry = Some((new.ino, new.kind));
        self.instantiate(dir, name, new)?;
        Ok(self.done(entry, None))
    }

    /// # Errors
    /// Those of [`Request::MakeUnnamed`](crate::meta::Request::MakeUnnamed).
    pub(super) fn make_unnamed(mut self, dir: Ino, new: &NewInode) -> Result<Answer> {
        self.state.named_directory(dir)?;
        self.check_new(new)?;
        if new.kind != FileType::Regular {
            return Err(Errno::EINVAL);
        }
        let mut inode = Inode::new(new, dir, self.now);
        inode.nameless = Some(Nameless::Yet);
        inode.keepers.insert(self.session);
        self.add(inode);
        Ok(self.done(Some((new.ino, new.kind)), None))
    }

    /// # Errors
    /// Those of [`Request::Link`](crate::meta::Request::Link).
    pub(super) fn link(mut self, ino: Ino, dir: Ino, name: &[u8], cookie: u64) -> Result<Answer> {
        let inode = self.state.inode(ino)?;
        let kind = inode.stored.kind;
        if inode.is_dir() {
            return Err(Errno::EPERM);
        }
        if matches!(inode.nameless, Some(Nameless::Since(_))) {
            return Err(Errno::ENOENT);
        }
        let nlink = inode.stored.nlink.checked_add(1).ok_or(Errno::EMLINK)?;
        self.check_free(dir, name)?;
        self.check_cookie(dir, cookie)?;
        self.put_name(dir, name, Named { cookie, ino, kind })?;
        let inode = self.touch(ino)?;
        (inode.stored.nlink, inode.stored.parent) = (nlink, dir);
        if inode.nameless.take().is_some() {
            inode.keepers.clear();
        }
        Ok(self.done(Some((ino, kind)), None))
    }

    /// # Errors
    /// Those of [`Request::Remove`](crate::meta::Request::Remove).
    pub(super) fn remove(mut self, dir: Ino, name: &[u8], directory: bool) -> Result<Answer> {
        let named = self.find(dir, name)?;
        self.check_removable(named.ino, directory)?;
        self.take_name(dir, name)?;
        self.uncount_name(named.ino, dir)?;
        Ok(self.done(Some((named.ino, named.kind)), None))
    }

    /// A new inode gets its first name, which is free.
    pub(super) fn instantiate(&mut self, dir: Ino, name: &[u8], new: &NewInode) -> Result<()> {
        let mut inode = Inode::new(new, dir, self.now);
        inode.stored.nlink = 1;
        if inode.is_dir() {
            inode.stored.nlink = 2;
            self.count_directory(dir, true)?;
        }
        let named = Named {
            cookie: new.ino.0,
            ino: new.ino,
            kind: new.kind,
        };
        self.put_name(dir, name, named)?;
        self.add(inode);
        Ok(())
    }

    /// Where a name leads.
    pub(super) fn find(&self, dir: Ino, name: &[u8]) -> Result<Named> {
        let names = &self.state.directory(dir)?.names;
        names.get(name).copied().ok_or(Errno::ENOENT)
    }

    /// Can this directory get this name?
    fn check_free(&self, dir: Ino, name: &[u8]) -> Result<()> {
        let dir = self.state.named_directory(dir)?;
        if dir.names.contains_key(name) {
            return Err(Errno::EEXIST);
        }
        if name.is_empty() {
            return Err(Errno::EINVAL);
        }
        Ok(())
    }

    /// Is this number free?
    pub(super) fn check_new(&self, new: &NewInode) -> Result<()> {
        let dealt = (1..self.state.next_number).contains(&new.ino.0);
        match dealt && !self.state.inodes.contains_key(&new.ino) {
            true => Ok(()),
            false => Err(Errno::EINVAL),
        }
    }

    /// Can a name of this directory get this cookie?
    pub(super) fn check_cookie(&self, dir: Ino, cookie: u64) -> Result<()> {
        let free = !self.state.directory(dir)?.cookies.contains_key(&cookie);
        match free && (1..self.state.next_number).contains(&cookie) {
            true => Ok(()),
            false => Err(Errno::EINVAL),
        }
    }

    /// Can this inode lose a name, as a directory or as anything else?
    pub(super) fn check_removable(&self, ino: Ino, directory: bool) -> Result<()> {
        let inode = self.state.inode(ino)?;
        match (directory, inode.is_dir()) {
            (true, false) => Err(Errno::ENOTDIR),
            (false, true) => Err(Errno::EISDIR),
            (true, true) if !inode.names.is_empty() => Err(Errno::ENOTEMPTY),
            _ => Ok(()),
        }
    }
}
