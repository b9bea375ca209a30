//! Extended attributes as values, ACLs included: what is told of them, and what a store in memory counts.

use holdfast_sync::epoch;
use std::sync::Arc;

use super::{Inode, Rare};
use crate::acl::{self, ACL_ACCESS, ACL_DEFAULT, Acl};
use crate::store::kept_bytes;

/// The value under this name, an ACL's included.
pub(crate) fn value(rare: Option<&Rare>, name: &[u8]) -> Option<Arc<[u8]>> {
    let rare = rare?;
    let shape = |acl: &Option<Acl>| acl.as_ref().map(|acl| acl::to_xattr(acl).into());
    match name {
        ACL_ACCESS => shape(&rare.acl),
        ACL_DEFAULT => shape(&rare.default_acl),
        _ => rare.xattrs.get(name).cloned(),
    }
}

/// What an ACL takes of a store that counts such things.
pub(crate) fn kept_acl(rare: Option<&Rare>, name: &[u8]) -> u64 {
    let acl = rare.and_then(|rare| match name {
        ACL_ACCESS => rare.acl.as_ref(),
        _ => rare.default_acl.as_ref(),
    });
    acl.map_or(0, |acl| kept_bytes(name.len() + acl::to_xattr(acl).len()))
}

/// What an inode's extended attributes and target take of a store that counts such things.
pub(crate) fn kept_values(inode: &Inode) -> u64 {
    let target = inode.target().map_or(0, |target| kept_bytes(target.len()));
    if !inode.may_be_rare() {
        return target;
    }
    let guard = epoch::pin();
    let rare = inode.view(&guard).rare;
    let values = rare.into_iter().flat_map(|rare| &rare.xattrs);
    let values = values.map(|(name, value)| kept_bytes(name.len() + value.len()));
    target + values.sum::<u64>() + kept_acl(rare, ACL_ACCESS) + kept_acl(rare, ACL_DEFAULT)
}
