//! The changes of one object.

use std::collections::BTreeMap;

use holdfast_core::store::InodeRecord;

use super::names::Names;
use crate::store::file::Content;
use holdfast_sync::collections::map_bytes;

/// The changes of one inode and all that belongs to it.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct Object {
    /// The attributes; `Some(None)` if it was freed; `None` if unchanged.
    pub(in crate::store) record: Option<Option<InodeRecord>>,
    /// What few objects have.
    rest: Option<Box<Rest>>,
    /// No lower layer has this number: these changes are all there is.
    pub(in crate::store) fresh: bool,
}

/// Changes besides attributes.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct Rest {
    /// The target of a new symbolic link.
    pub(in crate::store) target: Option<Box<[u8]>>,
    /// Extended attributes that changed; `None` if removed.
    pub(in crate::store) xattrs: Xattrs,
    /// A file's content, if it changed.
    pub(in crate::store) content: Option<Box<Content>>,
    /// A directory's changed names.
    pub(in crate::store) names: Option<Box<Names>>,
    /// The memory when last measured.
    measured: Measured,
}

/// Bytes of memory, and the number of items then.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    bytes: usize,
    things: usize,
}

/// Memory is measured again after more items than this, and this part of them, came or went.
const FEW: usize = 2;
const PART: usize = 8;

pub(in crate::store) type Xattrs = BTreeMap<Box<[u8]>, Option<Box<[u8]>>>;

type Xattr = (Box<[u8]>, Option<Box<[u8]>>);

impl Object {
    pub(in crate::store) fn rest(&self) -> Option<&Rest> {
        self.rest.as_deref()
    }

    pub(in crate::store) fn rest_mut(&mut self) -> &mut Rest {
        self.rest.get_or_insert_default()
    }

    pub(in crate::store) fn content(&self) -> Option<&Content> {
        self.rest()?.content.as_deref()
    }

    pub(in crate::store) fn content_mut(&mut self) -> Option<&mut Content> {
        self.rest.as_mut()?.content.as_deref_mut()
    }

    #[inline]
    pub(in crate::store) fn set_record(&mut self, record: &InodeRecord) {
        self.record = Some(Some(record.clone()));
    }

    pub(in crate::store) fn names(&self) -> Option<&Names> {
        self.rest()?.names.as_deref()
    }

    pub(in crate::store) fn names_mut(&mut self) -> &mut Names {
        self.rest_mut().names.get_or_insert_default()
    }

    /// Frees it. Its records in the trees are found there; removed names are known only here.
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

    /// Bytes of memory besides its own, when last measured.
    #[inline]
    pub(super) fn measured(&self) -> usize {
        self.rest().map_or(0, |rest| rest.measured.bytes)
    }

    /// Measures its memory again, if much has changed since; returns the bytes.
    #[inline]
    pub(super) fn measure(&mut self) -> usize {
        self.rest.as_mut().map_or(0, |rest| rest.measure())
    }

    pub(in crate::store) fn is_freed(&self) -> bool {
        matches!(self.record, Some(None))
    }
}

impl Rest {
    fn measure(&mut self) -> usize {
        let before = self.measured;
        let things = self.things();
        if before.bytes == 0 || things.abs_diff(before.things) > FEW + before.things / PART {
            self.measured = Measured {
                bytes: self.bytes(),
                things,
            };
        }
        self.measured.bytes
    }

    /// The number of allocations, approximately; cheap.
    fn things(&self) -> usize {
        let content = self.content.as_ref().map_or(0, |content| content.things());
        let names = self.names.as_ref().map_or(0, |names| names.len());
        content + names + self.xattrs.len()
    }

    /// Bytes of memory, including its own.
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
