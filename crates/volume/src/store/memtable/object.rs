//! What changed of one object.

use std::collections::BTreeMap;

use holdfast_core::store::InodeRecord;

use super::names::Names;
use crate::store::file::content::Content;
use holdfast_sync::collections::map_bytes;

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
    /// What it took when it was weighed last.
    weighed: Weight,
}

/// Bytes of memory, and how many things there were then that take some.
#[derive(Clone, Copy, Debug, Default)]
struct Weight {
    bytes: usize,
    things: usize,
}

/// An object is weighed again once more things than so many, and this part of all, came or went.
const FEW: usize = 2;
const PART: usize = 8;

/// Extended attributes that changed.
pub(in crate::store) type Xattrs = BTreeMap<Box<[u8]>, Option<Box<[u8]>>>;

/// One of them.
type Xattr = (Box<[u8]>, Option<Box<[u8]>>);

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

    /// Bytes of memory that it took, beside its own, when it was weighed last.
    #[inline]
    pub(super) fn weighed(&self) -> usize {
        self.rest().map_or(0, |rest| rest.weighed.bytes)
    }

    /// Weighs it, if much of it has come or gone since, and gives the bytes.
    #[inline]
    pub(super) fn weigh(&mut self) -> usize {
        self.rest.as_mut().map_or(0, |rest| rest.weigh())
    }

    /// Is it no more?
    pub(in crate::store) fn is_freed(&self) -> bool {
        matches!(self.record, Some(None))
    }
}

impl Rest {
    fn weigh(&mut self) -> usize {
        let before = self.weighed;
        let things = self.things();
        if before.bytes == 0 || things.abs_diff(before.things) > FEW + before.things / PART {
            self.weighed = Weight {
                bytes: self.bytes(),
                things,
            };
        }
        self.weighed.bytes
    }

    /// How many things there are that take memory, about; with few steps.
    fn things(&self) -> usize {
        let content = self.content.as_ref().map_or(0, |content| content.things());
        let names = self.names.as_ref().map_or(0, |names| names.len());
        content + names + self.xattrs.len()
    }

    /// Bytes of memory, its own included.
    fn bytes(&self) -> usize {
        let target = self.target.as_ref().map_or(0, |target| target.len());
        let xattrs = self.xattrs.iter().map(|(name, value)| {
            let value = value.as_ref().map_or(0, |value| value.len());
            name.len() + value
        });
        let map = map_bytes::<Xattr>(self.xattrs.len());
        let content = self.content.as_ref().map_or(0, |content| content.memory());
        let names = self.names.as_ref().map_or(0, |names| names.memory());
        size_of::<Self>() + target + map + xattrs.sum::<usize>() + content + names
    }
}
