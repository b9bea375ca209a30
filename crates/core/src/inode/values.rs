//! Extended attributes as values, ACLs included, and the bytes that a store in memory counts for
//! them.

use holdfast_sync::epoch;
use std::sync::Arc;

use super::{ExtraAttrs, Inode};
use crate::acl::{self, ACL_ACCESS, ACL_DEFAULT, Acl};
use crate::store::kept_bytes;

/// The value of an extended attribute or ACL.
pub(crate) fn value(extra_attrs: Option<&ExtraAttrs>, name: &[u8]) -> Option<Arc<[u8]>> {
    let extra_attrs = extra_attrs?;
    let to_value = |acl: &Option<Acl>| acl.as_ref().map(|acl| acl::to_xattr(acl).into());
    match name {
        ACL_ACCESS => to_value(&extra_attrs.acl),
        ACL_DEFAULT => to_value(&extra_attrs.default_acl),
        _ => extra_attrs.xattrs.get(name).cloned(),
    }
}

/// Bytes that a store in memory counts for an inode's extended attributes and target.
pub(crate) fn kept_values(inode: &Inode) -> u64 {
    let target = inode.target().map_or(0, |target| kept_bytes(target.len()));
    if !inode.may_have_extra_attrs() {
        return target;
    }
    let guard = epoch::pin();
    let extra_attrs = inode.view(&guard).extra_attrs;
    let kept = |(name, value): (&[u8], &[u8])| kept_bytes(name.len() + value.len());
    let values = extra_attrs.into_iter().flat_map(|it| &it.xattrs);
    let values = values.map(|(name, value)| kept((name, value)));
    let acls = [ACL_ACCESS, ACL_DEFAULT].into_iter();
    let acls = acls.filter_map(|name| Some(kept((name, &value(extra_attrs, name)?))));
    target + values.chain(acls).sum::<u64>()
}
