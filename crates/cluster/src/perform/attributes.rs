//! Changes of attributes. Those of a file that is dirty wait for its content.

use super::make::ACLS;
use crate::meta::{Change, Request};
use crate::store::ClusterStore;
use holdfast_core::store::{Attributes, Done};
use holdfast_types::{FileFlags, Ino, Result, XattrSet};

impl ClusterStore {
    pub(super) fn set_attributes(&self, ino: Ino, set: &Attributes<'_>) -> Result<Done> {
        let change = Change {
            perm: set.perm,
            uid: set.uid,
            gid: set.gid,
            atime: set.atime,
            mtime: set.mtime,
            flags: None,
            project: None,
            acl: set.acl.map(Into::into),
            drops_capability: set.drops_capability,
        };
        self.change_attributes(ino, change)
    }

    pub(super) fn set_flags(
        &self,
        ino: Ino,
        flags: Option<FileFlags>,
        project: Option<u32>,
    ) -> Result<Done> {
        let change = Change {
            flags,
            project,
            ..Change::default()
        };
        self.change_attributes(ino, change)
    }

    /// An access control list need not exist.
    pub(super) fn remove_xattr(&self, ino: Ino, name: &[u8], perm: Option<u16>) -> Result<Done> {
        let is_acl = ACLS.contains(&name);
        let name = name.into();
        let request = match is_acl {
            true => Request::SetXattr {
                ino,
                name,
                value: None,
                how: XattrSet::Any,
                perm,
            },
            false => Request::RemoveXattr { ino, name },
        };
        self.ask_about(ino, request)
    }

    fn change_attributes(&self, ino: Ino, change: Change) -> Result<Done> {
        match self.answers.files.set_attributes(ino, &change) {
            Some(written) => Ok(self.written(written)),
            None => self.ask_about(ino, Request::SetAttributes { ino, change }),
        }
    }
}
