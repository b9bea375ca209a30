use super::Space;
use std::sync::Arc;

/// Blocks reserved and not placed yet. Dropping it gives the rest back.
#[must_use = "a dropped reservation gives its blocks back"]
#[derive(Debug)]
pub struct Reservation {
    space: Arc<Space>,
    blocks: u64,
}

impl Reservation {
    pub(super) fn of(space: Arc<Space>, blocks: u64) -> Self {
        Self { space, blocks }
    }

    /// Blocks reserved and not placed yet.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// A part of the reservation, at most all of it.
    pub fn split(&mut self, blocks: u64) -> Self {
        let blocks = blocks.min(self.blocks);
        self.blocks -= blocks;
        Self::of(Arc::clone(&self.space), blocks)
    }

    /// The blocks as a number, which must become part of a reservation again or be given back.
    #[must_use]
    pub fn into_blocks(mut self) -> u64 {
        std::mem::take(&mut self.blocks)
    }

    /// Adds blocks that were reserved as a number.
    pub(crate) fn take_in(&mut self, blocks: u64) {
        self.blocks += blocks;
    }

    /// Sets the number of blocks; the caller keeps the previous number.
    pub(crate) fn exchange(&mut self, blocks: u64) -> u64 {
        std::mem::replace(&mut self.blocks, blocks)
    }

    /// Gives `blocks` back, at most all: the blocks placed came from a preallocation.
    pub(super) fn release(&mut self, blocks: u64) {
        let blocks = blocks.min(self.blocks);
        self.blocks -= blocks;
        self.space.counter.put_back(blocks);
    }

    /// Subtracts blocks that were placed.
    pub(super) fn place(&mut self, blocks: u64) {
        self.blocks -= blocks;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.space.counter.put_back(self.blocks);
    }
}
