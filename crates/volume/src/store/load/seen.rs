//! What overlays know of an inode, put over what the trees know.

use holdfast_core::store::{InodeRecord, StoredSpace};
use holdfast_types::FileType;

use crate::store::memtable::Object;

/// What is known so far, from the newest layer down.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The attributes, or that it is no more.
    record: Option<Option<InodeRecord>>,
    /// The blocks of a file.
    blocks: Option<u64>,
}

impl Seen {
    /// What the next older layer has of it. Returns whether there was anything.
    pub(super) fn add(&mut self, object: &Object) -> bool {
        let content = object.content();
        if self.record.is_none() {
            let nothing = || object.fresh.then_some(None);
            self.record = object.record.clone().or_else(nothing);
        }
        if self.blocks.is_none() {
            // Nothing below counts where it begins, or ends.
            let none = (object.fresh || object.is_freed()).then_some(0);
            self.blocks = content.map(|content| content.blocks()).or(none);
        }
        self.record.is_some() || self.blocks.is_some()
    }

    /// Is something missing that the trees know?
    pub(super) fn needs_below(&self) -> bool {
        match &self.record {
            None => true,
            Some(None) => false,
            Some(Some(record)) => self.blocks.is_none() && record.kind == FileType::Regular,
        }
    }

    /// The attributes over those that the trees have, if they were needed.
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
