//! What changed of one object.

use std::collections::BTreeMap;

use holdfast_core::store::InodeRecord;

use super::names::Names;
use crate::store::file::content::Content;

/// What changed of one inode and all that belongs to it.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct Object {
    /// Its attributes, or that it is no more; `None`: as below.
    pub(in crate::store) record: Option<Option<InodeRecord>>,
    /// What few have.
    rest: Option<Box<Rest>>,
    /// Nothing below has this number: what is here is all.
    pub(in crate::store) fresh: bool,
}

/// What is there beside attributes.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct Rest {
    /// The target of a new symbolic link.
    pub(in crate::store) target: Option<Box<[u8]>>,
    /// Extended attributes that changed; `None`: gone.
    pub(in crate::store) xattrs: Xattrs,
    /// A file's bytes, if they changed.
    pub(in crate::store) content: Option<Box<Content>>,
    /// A directory's names, as far as they changed.
    pub(in crate::store) names: Option<Box<Names>>,
}

/// Extended attributes that changed.
pub(in crate::store) type Xattrs = BTreeMap<Box<[u8]>, Option<Box<[u8]>>>;

impl Object {
    /// What is there beside attributes.
    pub(in crate::store) fn rest(&self) -> Option<&Rest> {
        self.rest.as_deref()
    }

    /// What is there beside attributes, to be changed.
    pub(in crate::store) fn rest_mut(&mut self) -> &mut Rest {
        self.rest.get_or_insert_default()
    }

    /// A file's bytes, if they changed.
    pub(in crate::store) fn content(&self) -> Option<&Content> {
        self.rest()?.content.as_deref()
    }

    /// A file's bytes, if they changed, to change them again.
    pub(in crate::store) fn content_mut(&mut self) -> Option<&mut Content> {
        self.rest.as_mut()?.content.as_deref_mut()
    }

    /// These are its attributes from now on.
    #[inline]
    pub(in crate::store) fn set_record(&mut self, record: &InodeRecord) {
        self.record = Some(Some(record.clone()));
    }

    /// The names, if they changed.
    pub(in crate::store) fn names(&self) -> Option<&Names> {
        self.rest()?.names.as_deref()
    }

    /// The names, to be changed.
    pub(in crate::store) fn names_mut(&mut self) -> &mut Names {
        self.rest_mut().names.get_or_insert_default()
    }

    /// It is no more. What the trees have of it is found there; which names went is known only here.
    pub(in crate::store) fn end(&mut self) {
        let names = self.rest.take().and_then(|rest| rest.names);
        *self = Self {
            record: Some(None),
            ..Self::default()
        };
        if names.is_some() {
            self.rest_mut().names = names;
        }
    }

    /// Is it no more?
    pub(in crate::store) fn is_freed(&self) -> bool {
        matches!(self.record, Some(None))
    }
}
