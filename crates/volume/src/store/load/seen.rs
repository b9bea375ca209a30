//! Merging what the memtables know of an inode with the trees.

use holdfast_core::store::{InodeRecord, StoredSpace};
use holdfast_types::FileType;

use crate::store::memtable::Object;

/// The knowledge of the layers so far, from the newest down.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The attributes; `Some(None)` if it was freed.
    record: Option<Option<InodeRecord>>,
    /// The block count of a file.
    blocks: Option<u64>,
}

impl Seen {
    /// Adds the next older layer.
    pub(super) fn add(&mut self, object: &Object) {
        let content = object.content();
        if self.record.is_none() {
            let nothing = || object.fresh.then_some(None);
            self.record = object.record.clone().or_else(nothing);
        }
        if self.blocks.is_none() {
            // A new or freed inode has nothing below.
            let none = (object.fresh || object.is_freed()).then_some(0);
            self.blocks = content.map(|content| content.blocks()).or(none);
        }
    }

    /// Is anything missing that the trees know?
    pub(super) fn needs_below(&self) -> bool {
        match &self.record {
            None => true,
            Some(None) => false,
            Some(Some(record)) => self.blocks.is_none() && record.kind == FileType::Regular,
        }
    }

    /// The attributes, given those of the trees, if they were needed.
    pub(super) fn over(self, below: Option<InodeRecord>) -> Option<InodeRecord> {
        let below_takes = below
            .as_ref()
            .and_then(|below| below.space.pages(below.size));
        let mut record = self.record.unwrap_or(below)?;
        record.space = match self.blocks.or(below_takes) {
            Some(blocks) if record.kind == FileType::Regular => {
                StoredSpace::of(blocks, record.size)
            }
            _ => StoredSpace::UNKNOWN,
        };
        Some(record)
    }
}
