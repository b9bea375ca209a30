//! Attributes of one moment, and their change in one moment.

use holdfast_sync::epoch;
use parking_lot::MutexGuard;
use std::ops::{Deref, DerefMut};

use super::{Meta, Object, Rare};
use crate::acl::Acl;

/// Attributes and what few inodes have, of one moment.
#[derive(Clone, Copy)]
pub(crate) struct View<'g> {
    pub(crate) meta: Meta,
    pub(crate) rare: Option<&'g Rare>,
}

impl<'g> View<'g> {
    pub(crate) fn acl(&self) -> Option<&'g Acl> {
        self.rare?.acl.as_ref()
    }

    pub(crate) fn default_acl(&self) -> Option<&'g Acl> {
        self.rare?.default_acl.as_ref()
    }
}

impl Object {
    /// Locks the attributes for a change, which readers see when the result is dropped.
    pub(crate) fn write(&self) -> MetaWrite<'_> {
        let lock = self.cell().lock();
        MetaWrite {
            object: self,
            meta: self.cell().load(),
            rare: None,
            _lock: lock,
        }
    }
}

/// A change of attributes under way. It ends, for all readers at once, when this is dropped.
pub(crate) struct MetaWrite<'i> {
    object: &'i Object,
    meta: Meta,
    /// The new state of what few inodes have, if that changes.
    rare: Option<Box<Rare>>,
    _lock: MutexGuard<'i, ()>,
}

impl MetaWrite<'_> {
    /// What few inodes have, as it is now: `look` sees it.
    pub(crate) fn with_rare<R>(&self, look: impl FnOnce(Option<&Rare>) -> R) -> R {
        match &self.rare {
            Some(changed) => look(Some(changed)),
            None => look(self.object.rare(&epoch::pin())),
        }
    }

    /// What few inodes have, to be changed.
    pub(crate) fn rare(&mut self) -> &mut Rare {
        if self.rare.is_none() {
            self.rare = Some(Box::new(
                self.with_rare(|rare| rare.cloned().unwrap_or_default()),
            ));
        }
        self.rare.get_or_insert_default()
    }
}

impl Deref for MetaWrite<'_> {
    type Target = Meta;

    fn deref(&self) -> &Meta {
        &self.meta
    }
}

impl DerefMut for MetaWrite<'_> {
    fn deref_mut(&mut self) -> &mut Meta {
        &mut self.meta
    }
}

impl Drop for MetaWrite<'_> {
    /// Readers see all that has changed at once.
    fn drop(&mut self) {
        let rare = self.rare.take();
        self.object.cell().publish(&self.meta, || {
            if rare.is_some() {
                self.object.extension_or_new().rare.replace(rare);
            }
        });
    }
}
