//! Attributes of one moment, and their change in one moment.

use holdfast_sync::epoch;
use parking_lot::MutexGuard;
use std::ops::{Deref, DerefMut};

use super::{ExtraAttrs, Meta, Object};
use crate::acl::Acl;

/// Attributes and what few inodes have, of one moment.
#[derive(Clone, Copy)]
pub(crate) struct View<'g> {
    pub(crate) meta: Meta,
    pub(crate) extra_attrs: Option<&'g ExtraAttrs>,
}

impl<'g> View<'g> {
    pub(crate) fn acl(&self) -> Option<&'g Acl> {
        self.extra_attrs?.acl.as_ref()
    }

    pub(crate) fn default_acl(&self) -> Option<&'g Acl> {
        self.extra_attrs?.default_acl.as_ref()
    }
}

impl Object {
    /// Locks the attributes for a change, which readers see when the result is dropped.
    pub(crate) fn write(&self) -> MetaWrite<'_> {
        let lock = self.cell().lock();
        MetaWrite {
            object: self,
            meta: self.cell().load(),
            extra_attrs: None,
            _lock: lock,
        }
    }
}

/// A change of attributes under way. It ends, for all readers at once, when this is dropped.
pub(crate) struct MetaWrite<'i> {
    object: &'i Object,
    meta: Meta,
    /// The new state of what few inodes have, if that changes.
    extra_attrs: Option<Box<ExtraAttrs>>,
    _lock: MutexGuard<'i, ()>,
}

impl MetaWrite<'_> {
    /// What few inodes have, as it is now: `look` sees it.
    pub(crate) fn with_extra_attrs<R>(&self, look: impl FnOnce(Option<&ExtraAttrs>) -> R) -> R {
        match &self.extra_attrs {
            Some(changed) => look(Some(changed)),
            None => look(self.object.extra_attrs(&epoch::pin())),
        }
    }

    /// What few inodes have, to be changed.
    pub(crate) fn extra_attrs(&mut self) -> &mut ExtraAttrs {
        if self.extra_attrs.is_none() {
            self.extra_attrs =
                Some(Box::new(self.with_extra_attrs(|extra_attrs| {
                    extra_attrs.cloned().unwrap_or_default()
                })));
        }
        self.extra_attrs.get_or_insert_default()
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
        let extra_attrs = self.extra_attrs.take();
        self.object.cell().publish(&self.meta, || {
            if extra_attrs.is_some() {
                self.object
                    .extension_or_new()
                    .extra_attrs
                    .replace(extra_attrs);
            }
        });
    }
}
