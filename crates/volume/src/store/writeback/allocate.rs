//! Allocating blocks for one file's dirty pages.

use std::sync::Arc;

use holdfast_types::Ino;

use crate::error::Result;
use crate::space::{Extent, FileRequest, Preallocations, Reservation};
use crate::store::Inner;
use crate::store::file::{BlockAllocator, Run};

/// Allocates unwritten extents for one file during a commit.
pub(in crate::store) struct FileAllocator<'s> {
    store: &'s Inner,
    ino: Ino,
    reservation: &'s mut Reservation,
    generation: u64,
    pieces: Option<Arc<Preallocations>>,
    /// What was allocated, to be [recorded](crate::space::Space::record).
    pub(in crate::store) fresh: Vec<Extent>,
}

impl<'s> FileAllocator<'s> {
    /// For a file, out of `reservation`.
    pub(in crate::store) fn new(
        store: &'s Inner,
        ino: Ino,
        reservation: &'s mut Reservation,
    ) -> Self {
        Self {
            store,
            ino,
            reservation,
            generation: store.next_generation(),
            pieces: store.preallocations.pieces(ino),
            fresh: Vec::new(),
        }
    }

    fn run(&mut self, extent: Extent) -> Run {
        #[cfg(test)]
        self.store.recorder.placed(extent.length);
        self.fresh.push(extent);
        Run {
            extent,
            generation: self.generation,
            unwritten: true,
        }
    }
}

impl BlockAllocator for FileAllocator<'_> {
    fn preallocated(&mut self, logical: u64, blocks: u64) -> Option<Run> {
        let pieces = self.pieces.as_ref()?;
        let reservation =
            Some(&mut *self.reservation).filter(|reservation| reservation.blocks() > 0);
        let extent = pieces.take_preallocated(logical, blocks, reservation)?;
        Some(self.run(extent))
    }

    fn find(&mut self, request: &FileRequest) -> Result<Run> {
        hop!();
        let extent = self
            .store
            .preallocations
            .place(self.ino, request, Some(self.reservation))?;
        if self.pieces.is_none() {
            self.pieces = self.store.preallocations.pieces(self.ino);
        }
        Ok(self.run(extent))
    }
}
