//! Extended attributes as values, ACLs included: what is told of them, and what a store in memory counts.

use holdfast_sync::epoch;
use std::sync::Arc;

use super::{ExtraAttrs, Inode};
use crate::acl::{self, ACL_ACCESS, ACL_DEFAULT, Acl};
use crate::store::kept_bytes;

/// The value under this name, an ACL's included.
pub(crate) fn value(extra_attrs: Option<&ExtraAttrs>, name: &[u8]) -> Option<Arc<[u8]>> {
    let extra_attrs = extra_attrs?;
    let rename_lock = |acl: &Option<Acl>| acl.as_ref().map(|acl| acl::to_xattr(acl).into());
    match name {
        ACL_ACCESS => rename_lock(&extra_attrs.acl),
        ACL_DEFAULT => rename_lock(&extra_attrs.default_acl),
        _ => extra_attrs.xattrs.get(name).cloned(),
    }
}

/// What an ACL takes of a store that counts such things.
pub(crate) fn kept_acl(extra_attrs: Option<&ExtraAttrs>, name: &[u8]) -> u64 {
    let acl = extra_attrs.and_then(|extra_attrs| match name {
        ACL_ACCESS => extra_attrs.acl.as_ref(),
        _ => extra_attrs.default_acl.as_ref(),
    });
    acl.map_or(0, |acl| kept_bytes(name.len() + acl::to_xattr(acl).len()))
}

/// What an inode's extended attributes and target take of a store that counts such things.
pub(crate) fn kept_values(inode: &Inode) -> u64 {
    let target = inode.target().map_or(0, |target| kept_bytes(target.len()));
    if !inode.may_have_extra_attrs() {
        return target;
    }
    let guard = epoch::pin();
    let extra_attrs = inode.view(&guard).extra_attrs;
    let values = extra_attrs
        .into_iter()
        .flat_map(|extra_attrs| &extra_attrs.xattrs);
    let values = values.map(|(name, value)| kept_bytes(name.len() + value.len()));
    target
        + values.sum::<u64>()
        + kept_acl(extra_attrs, ACL_ACCESS)
        + kept_acl(extra_attrs, ACL_DEFAULT)
}
