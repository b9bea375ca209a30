//! Attributes, and what goes with a change of content.

use super::take_in::Changed;
use super::{ThroughStore, itself};
use crate::acl;
use crate::attributes::{event_of, perm_of_mode, perm_of_owner};
use crate::inode::Meta;
use crate::node::Node;
use crate::store::{Attributes, Operation};
use crate::types::{Caller, FileFlags, FileType, Result, SetAttr};
use crate::watch::EventMask;
use crate::xattr::CAPABILITY;
use holdfast_sync::epoch;

impl ThroughStore<'_> {
    /// Changes all attributes but the length.
    ///
    /// # Errors
    /// What the store answers.
    pub(crate) fn set(self, who: &Caller, node: &Node, set: &SetAttr) -> Result<()> {
        let inode = node.inode();
        let meta = inode.meta();
        let perm = perm_after(who, node.kind(), &meta, set);
        let acl = perm.and_then(|perm| {
            let guard = epoch::pin();
            let mut acl = inode.view(&guard).acl()?.clone();
            acl::chmod(&mut acl, perm);
            Some(acl::to_xattr(&acl))
        });
        let operation = Operation::SetAttributes {
            ino: node.ino(),
            set: Attributes {
                perm,
                uid: set.uid,
                gid: set.gid,
                atime: set.atime,
                mtime: set.mtime,
                acl: acl.as_deref(),
            },
        };
        self.change(who, node, &operation, Changed::Rest)?;
        if (set.uid.is_some() || set.gid.is_some()) && !node.kind().is_dir() {
            self.drop_capability(node)?;
        }
        self.core.notify_event(inode, event_of(set));
        Ok(())
    }

    /// Sets file flags and the project, as far as they are given.
    ///
    /// # Errors
    /// What the store answers.
    pub(crate) fn set_flags(
        self,
        who: &Caller,
        node: &Node,
        flags: Option<FileFlags>,
        project: Option<u32>,
    ) -> Result<()> {
        let operation = Operation::SetFlags {
            ino: node.ino(),
            flags,
            project,
        };
        self.change(who, node, &operation, Changed::Nothing)?;
        self.core.notify_event(node.inode(), EventMask::ATTRIB);
        Ok(())
    }

    /// Clears a regular file's capabilities and these of its mode bits.
    ///
    /// # Errors
    /// What the store answers.
    pub(crate) fn clear_privileges(self, node: &Node, bits: u16) -> Result<()> {
        let perm = node.inode().meta().perm;
        if perm & bits != 0 {
            let operation = Operation::SetAttributes {
                ino: node.ino(),
                set: Attributes {
                    perm: Some(perm & !bits),
                    ..Attributes::default()
                },
            };
            self.change(&itself(), node, &operation, Changed::Nothing)?;
        }
        self.drop_capability(node)
    }

    fn drop_capability(self, node: &Node) -> Result<()> {
        let has = {
            let guard = epoch::pin();
            let extra_attrs = node.inode().view(&guard).extra_attrs;
            extra_attrs.is_some_and(|extra_attrs| extra_attrs.xattrs.contains_key(CAPABILITY))
        };
        if !has {
            return Ok(());
        }
        let remove = Operation::RemoveXattr {
            ino: node.ino(),
            name: CAPABILITY,
        };
        self.change(&itself(), node, &remove, Changed::Rest)
    }

    /// Has the store change an inode, and takes in what became of it.
    ///
    /// # Errors
    /// What the store answers.
    pub(super) fn change(
        self,
        who: &Caller,
        node: &Node,
        operation: &Operation<'_>,
        changed: Changed,
    ) -> Result<()> {
        let done = self.perform(who, operation)?;
        let (touched, at) = self.touched(&done, node.ino())?;
        self.take_in(node.inode(), &touched, at, changed)
    }

    /// Gives a regular file another length.
    ///
    /// # Errors
    /// What the store answers.
    pub(crate) fn resize(self, who: &Caller, node: &Node, size: u64) -> Result<()> {
        self.core.drop_privileges(who, node)?;
        let ino = node.ino();
        let resize = Operation::Resize { ino, size };
        self.change(who, node, &resize, Changed::Content)?;
        self.core.notify_event(node.inode(), EventMask::MODIFY);
        Ok(())
    }
}

/// The permission bits that have to be set: those that were asked for, and what another owner takes away. `None`: they stay.
fn perm_after(who: &Caller, kind: FileType, meta: &Meta, set: &SetAttr) -> Option<u16> {
    let mut after = *meta;
    if set.uid.is_some() || set.gid.is_some() {
        after.perm = perm_of_owner(who, kind, meta, set);
        after.uid = set.uid.unwrap_or(meta.uid);
        after.gid = set.gid.unwrap_or(meta.gid);
    }
    match set.perm {
        Some(_) if kind == FileType::Symlink => None,
        Some(perm) => Some(perm_of_mode(who, perm, after.gid)),
        None => Some(after.perm).filter(|perm| *perm != meta.perm),
    }
}
