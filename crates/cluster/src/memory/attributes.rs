//! Attributes, extended ones among them.

use super::state::Inode;
use super::transaction::Transaction;
use crate::meta::{Answer, Change};
use holdfast_types::{Errno, Ino, Result, SetTime, XattrSet};

const ACL_ACCESS: &[u8] = b"system.posix_acl_access";
const CAPABILITY: &[u8] = b"security.capability";

impl Transaction<'_> {
    /// # Errors
    /// `ESTALE`: the inode does not exist.
    pub(super) fn set_attributes(mut self, ino: Ino, change: &Change) -> Result<Answer> {
        self.touch(ino)?.change(change);
        Ok(self.done(None, None))
    }

    /// # Errors
    /// `ESTALE`: the inode does not exist. `EEXIST`, `ENODATA` by `how`.
    pub(super) fn set_xattr(
        mut self,
        ino: Ino,
        name: &[u8],
        value: Option<&[u8]>,
        how: XattrSet,
        perm: Option<u16>,
    ) -> Result<Answer> {
        match (how, self.state.inode(ino)?.xattrs.contains_key(name)) {
            (XattrSet::Create, true) => return Err(Errno::EEXIST),
            (XattrSet::Replace, false) => return Err(Errno::ENODATA),
            _ => {}
        }
        let inode = self.touch(ino)?;
        match value {
            Some(value) => drop(inode.xattrs.insert(name.into(), value.into())),
            None => drop(inode.xattrs.remove(name)),
        }
        inode.stored.perm = perm.unwrap_or(inode.stored.perm);
        Ok(self.done(None, None))
    }

    /// # Errors
    /// `ESTALE`: the inode does not exist. `ENODATA`.
    pub(super) fn remove_xattr(mut self, ino: Ino, name: &[u8]) -> Result<Answer> {
        if !self.state.inode(ino)?.xattrs.contains_key(name) {
            return Err(Errno::ENODATA);
        }
        self.touch(ino)?.xattrs.remove(name);
        Ok(self.done(None, None))
    }
}

impl Inode {
    /// Changes attributes at the time `ctime`.
    pub(super) fn change(&mut self, change: &Change) {
        let chown = change.uid.is_some() || change.gid.is_some();
        if change.drops_capability || chown && !self.is_dir() {
            self.xattrs.remove(CAPABILITY);
        }
        if let Some(acl) = &change.acl {
            self.xattrs.insert(ACL_ACCESS.into(), acl.clone());
        }
        let record = &mut self.stored;
        let at = |time| match time {
            SetTime::Now => record.ctime,
            SetTime::At(time) => time,
        };
        let (atime, mtime) = (change.atime.map(at), change.mtime.map(at));
        record.atime = atime.unwrap_or(record.atime);
        record.mtime = mtime.unwrap_or(record.mtime);
        record.perm = change.perm.unwrap_or(record.perm);
        record.uid = change.uid.unwrap_or(record.uid);
        record.gid = change.gid.unwrap_or(record.gid);
        record.flags = change.flags.unwrap_or(record.flags);
        record.project = change.project.unwrap_or(record.project);
    }
}
