//! Extended attributes and access control lists.

use super::ThroughStore;
use super::take_in::Changed;
use crate::acl::{self, ACL_ACCESS, Acl};
use crate::node::Node;
use crate::permission::in_group_or_capable;
use crate::store::Operation;
use crate::types::{Caller, Errno, Result, S_ISGID, XattrSet};

impl ThroughStore<'_> {
    /// Gives an extended attribute a value.
    ///
    /// # Errors
    /// What the store answers.
    pub(crate) fn put_xattr(
        self,
        who: &Caller,
        node: &Node,
        name: &[u8],
        value: &[u8],
        how: XattrSet,
    ) -> Result<()> {
        let set = Operation::SetXattr {
            ino: node.ino(),
            name,
            value,
            how,
            perm: None,
            kept: true,
        };
        self.change(who, node, &set, Changed::Rest)
    }

    /// Removes an extended attribute.
    ///
    /// # Errors
    /// `ENODATA`; what the store answers.
    pub(crate) fn remove_xattr(self, who: &Caller, node: &Node, name: &[u8]) -> Result<()> {
        let ino = node.ino();
        let remove = Operation::RemoveXattr { ino, name };
        self.change(who, node, &remove, Changed::Rest)
    }

    /// Sets an access control list, which was given as this value, or removes it.
    ///
    /// # Errors
    /// What the store answers.
    pub(crate) fn keep_acl(
        self,
        who: &Caller,
        node: &Node,
        name: &[u8],
        acl: Option<&Acl>,
    ) -> Result<()> {
        let Some(acl) = acl else {
            return match self.remove_xattr(who, node, name) {
                // There is none.
                Err(Errno::ENODATA) => Ok(()),
                removed => removed,
            };
        };
        let value = acl::to_xattr(acl);
        let meta = node.inode().meta();
        let is_access = name == ACL_ACCESS;
        let perm = is_access.then(|| {
            let perm = meta.perm & 0o7000 | acl::mode_of(acl);
            match in_group_or_capable(who, meta.gid) {
                true => perm,
                false => perm & !S_ISGID,
            }
        });
        let set = Operation::SetXattr {
            ino: node.ino(),
            name,
            value: &value,
            how: XattrSet::Any,
            perm,
            kept: !is_access || acl::equivalent_mode(acl).is_none(),
        };
        self.change(who, node, &set, Changed::Rest)
    }
}
