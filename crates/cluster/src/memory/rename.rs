//! Names are moved.

use super::state::Named;
use super::transaction::Transaction;
use crate::meta::{Answer, NewInode};
use holdfast_types::{Errno, Ino, RenameFlags, Result};

impl Transaction<'_> {
    /// # Errors
    /// Those of [`Request::Rename`](crate::meta::Request::Rename).
    pub(super) fn rename(
        mut self,
        from: (Ino, &[u8]),
        to: (Ino, &[u8]),
        flags: RenameFlags,
        cookie: u64,
        whiteout: Option<&NewInode>,
    ) -> Result<Answer> {
        let source = self.find(from.0, from.1)?;
        let target = self.check_rename(from, to, source, flags)?;
        let entry = Some((source.ino, source.kind));
        if target.is_some_and(|target| target.ino == source.ino) {
            return Ok(self.done(entry, None));
        }
        let exchange = flags.contains(RenameFlags::EXCHANGE);
        self.check_cookie(to.0, cookie)?;
        if exchange {
            self.check_cookie(from.0, cookie.saturating_add(1))?;
        }
        if flags.contains(RenameFlags::WHITEOUT) {
            self.check_new(whiteout.ok_or(Errno::EINVAL)?)?;
        }
        self.take_name(from.0, from.1)?;
        if let Some(target) = target {
            self.take_name(to.0, to.1)?;
            if exchange {
                let cookie = cookie + 1;
                self.move_to(from, to.0, Named { cookie, ..target })?;
            } else {
                self.uncount_name(target.ino, to.0)?;
            }
        }
        self.move_to(to, from.0, Named { cookie, ..source })?;
        if let (true, Some(new)) = (flags.contains(RenameFlags::WHITEOUT), whiteout) {
            self.instantiate(from.0, from.1, new)?;
        }
        Ok(self.done(entry, target.map(|target| (target.ino, target.kind))))
    }

    /// Returns where the second name leads.
    fn check_rename(
        &self,
        from: (Ino, &[u8]),
        to: (Ino, &[u8]),
        source: Named,
        flags: RenameFlags,
    ) -> Result<Option<Named>> {
        let exchange = flags.contains(RenameFlags::EXCHANGE);
        if exchange && flags != RenameFlags::EXCHANGE {
            return Err(Errno::EINVAL);
        }
        self.state.inode(source.ino)?;
        let target = self.state.named_directory(to.0)?.names.get(to.1).copied();
        match target {
            Some(_) if flags.contains(RenameFlags::NOREPLACE) => return Err(Errno::EEXIST),
            None if exchange => return Err(Errno::ENOENT),
            _ => {}
        }
        if self.state.is_above(source.ino, to.0) {
            return Err(Errno::EINVAL);
        }
        if let Some(target) = target {
            if exchange && self.state.is_above(target.ino, from.0) {
                return Err(Errno::EINVAL);
            }
            if !exchange && target.ino != source.ino {
                self.check_removable(target.ino, source.kind.is_dir())?;
            }
        }
        Ok(target)
    }

    /// An inode gets a name, which is free, for one that it lost in a directory.
    fn move_to(&mut self, to: (Ino, &[u8]), from: Ino, named: Named) -> Result<()> {
        self.put_name(to.0, to.1, named)?;
        let inode = self.touch(named.ino)?;
        inode.stored.parent = to.0;
        if inode.is_dir() && to.0 != from {
            self.count_directory(from, false)?;
            self.count_directory(to.0, true)?;
        }
        Ok(())
    }
}
