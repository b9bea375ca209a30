//! Finding places for the blocks of one file.

use std::sync::Arc;

use holdfast_types::Ino;

use crate::Result;
use crate::space::{Extent, FileRequest, Preallocations, Reservation};
use crate::store::Inner;
use crate::store::file::delayed_allocation::Places;
use crate::store::file::extent_map::Run;

/// The places of a file of a volume, as if never written.
pub(in crate::store) struct Placer<'s> {
    store: &'s Inner,
    ino: Ino,
    promise: &'s mut Reservation,
    birth: u64,
    pieces: Option<Arc<Preallocations>>,
    /// What was found, and is to be [recorded](crate::space::Space::record).
    pub(in crate::store) fresh: Vec<Extent>,
}

impl<'s> Placer<'s> {
    /// For this file, out of a promise.
    pub(in crate::store) fn new(store: &'s Inner, ino: Ino, promise: &'s mut Reservation) -> Self {
        Self {
            store,
            ino,
            promise,
            birth: store.next_generation(),
            pieces: store.ahead.pieces(ino),
            fresh: Vec::new(),
        }
    }

    fn run(&mut self, extent: Extent) -> Run {
        #[cfg(test)]
        self.store.ledger.placed(extent.length);
        self.fresh.push(extent);
        Run {
            extent,
            birth: self.birth,
            unwritten: true,
        }
    }
}

impl Places for Placer<'_> {
    fn aside(&mut self, logical: u64, blocks: u64) -> Option<Run> {
        let pieces = self.pieces.as_ref()?;
        let promise = Some(&mut *self.promise).filter(|promise| promise.blocks() > 0);
        let extent = pieces.set_aside(logical, blocks, promise)?;
        Some(self.run(extent))
    }

    fn find(&mut self, request: &FileRequest) -> Result<Run> {
        let extent = self
            .store
            .ahead
            .place(self.ino, request, Some(self.promise))?;
        if self.pieces.is_none() {
            self.pieces = self.store.ahead.pieces(self.ino);
        }
        Ok(self.run(extent))
    }
}
