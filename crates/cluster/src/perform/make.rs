//! New inodes.

use crate::meta::{NewInode, Request};
use crate::store::ClusterStore;
use holdfast_core::store::{Done, New};
use holdfast_types::{Caller, Ino, Result};

/// The names of the access control lists of [`New::acls`].
pub(super) const ACLS: [&[u8]; 2] = [b"system.posix_acl_access", b"system.posix_acl_default"];

impl ClusterStore {
    /// Creates an inode, with this name if it gets one.
    pub(super) fn make(
        &self,
        caller: &Caller,
        dir: Ino,
        name: Option<&[u8]>,
        new: &New<'_>,
        open: bool,
    ) -> Result<Done> {
        let inode = self.new_inode(caller, dir, new)?;
        let ino = inode.ino;
        let done = self.ask(match name {
            Some(name) => Request::Make {
                dir,
                name: name.into(),
                new: inode,
            },
            None => {
                self.session.keeps(ino);
                Request::MakeUnnamed { dir, new: inode }
            }
        });
        let done = done.inspect_err(|_| self.session.forgotten(ino))?;
        if open {
            self.open_to_write(ino)?;
        }
        Ok(done)
    }

    /// A new inode in a directory.
    pub(super) fn new_inode(&self, caller: &Caller, dir: Ino, new: &New<'_>) -> Result<NewInode> {
        let acls = new.acls.iter().zip(ACLS);
        Ok(NewInode {
            ino: self.numbers.in_directory(dir)?,
            kind: new.kind,
            perm: new.perm,
            uid: caller.uid,
            gid: new.gid,
            rdev: new.rdev,
            flags: new.flags,
            project: new.project,
            target: new.target.map(Into::into),
            xattrs: acls
                .filter_map(|(acl, name)| Some((name.into(), (*acl)?.into())))
                .collect(),
        })
    }
}
