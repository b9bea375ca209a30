//! A consistent view of an inode's attributes, and their atomic change.

use holdfast_sync::epoch;
use parking_lot::MutexGuard;
use std::ops::{Deref, DerefMut};

use super::{ExtraAttrs, Meta, Object};

impl Object {
    /// Locks the attributes for a change, which becomes visible when the result is dropped.
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

/// A change of attributes in progress; dropping it publishes the change atomically.
pub(crate) struct MetaWrite<'i> {
    object: &'i Object,
    meta: Meta,
    /// The new extra attributes, if they change.
    extra_attrs: Option<Box<ExtraAttrs>>,
    _lock: MutexGuard<'i, ()>,
}

impl MetaWrite<'_> {
    /// Calls `look` with the current extra attributes.
    pub(crate) fn with_extra_attrs<R>(&self, look: impl FnOnce(Option<&ExtraAttrs>) -> R) -> R {
        match &self.extra_attrs {
            Some(changed) => look(Some(changed)),
            None => look(self.object.extra_attrs(&epoch::pin())),
        }
    }

    /// The extra attributes, for a change.
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
    /// Publishes the whole change at once.
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
