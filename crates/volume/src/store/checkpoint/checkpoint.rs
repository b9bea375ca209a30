//! Folding what changed into the trees.
//!
//! One sorted merge for each tree, into new nodes; then the bitmaps that changed, then the
//! superblock, which switches to all of it at once. Until then a crash finds the old trees and the
//! journal. Changes go on meanwhile, in a new overlay.

use holdfast_core::shrinkers::within_store;
use holdfast_types::{Errno, Time};
use std::time::SystemTime;

use super::merge::Fold;
use super::nodes::NewNodes;
use crate::Result;
use crate::store::Inner;
use crate::store::commit::Frozen;
use crate::store::memtable::layers::{Layers, Roots};
use crate::superblock::{self, Superblock};
use crate::tree::Shape;

impl Inner {
    /// Folds everything that changed so far into the trees.
    pub(in crate::store) fn checkpoint(&self) -> Result<()> {
        let _one = self.checkpointing.lock();
        self.running()?;
        let _counted = self.tallies.checkpoints.begin();
        let _within = within_store();
        // A second one would put its frozen changes in the place of those that this one did not fold.
        self.whole("a checkpoint", || {
            let frozen = self.freeze()?;
            self.fold(&frozen)
        })
    }

    /// Folds what is frozen; nodes alone need room for that.
    pub(in crate::store) fn fold(&self, frozen: &Frozen) -> Result<()> {
        let generation = self.next_generation();
        let roots = self.merge(frozen, generation)?;
        let bitmaps = self.space.dirty_bitmaps(generation);
        let pieces: Vec<(u64, &[u8])> = bitmaps
            .blocks
            .iter()
            .map(|(block, bytes)| (*block, &bytes[..]))
            .collect();
        self.blocks().write_batch(&pieces)?;
        self.blocks().flush()?;
        self.blocks().assert_durable(frozen.data);
        let before = self.superblock.lock().clone();
        let superblock = Superblock {
            generation,
            written: Time::from(SystemTime::now()),
            journal_position: frozen.position,
            last_ino: frozen.last_ino,
            inodes: frozen.inodes,
            seal: bitmaps.seal,
            roots: roots.in_superblock(),
            orphans: roots.orphans,
            ..before
        };
        self.write_superblock(&superblock)?;
        self.succeed(superblock);
        self.note_height(&roots);
        self.freeze_barrier.close().change(|layers| {
            layers.roots = roots;
            layers.frozen = None;
        });
        // From here on the replaced nodes are in no layer, and readers of older ones are told so.
        self.freeze_barrier.about_to_reuse();
        // Both slots have this generation now, so nobody goes back to an older one.
        self.space.checkpointed(generation)?;
        self.journal.trim(frozen.position);
        self.ahead.age();
        self.look_for_room_again();
        Ok(())
    }

    /// Writes the superblock to both slots, one after the other: one of them is whole in any moment.
    pub(in crate::store) fn write_superblock(&self, superblock: &Superblock) -> Result<()> {
        for slot in superblock::SLOTS {
            self.blocks().write(slot, &superblock.encode(slot))?;
            self.blocks().flush()?;
        }
        Ok(())
    }

    /// Merges a frozen overlay into the trees; returns their new roots.
    fn merge(&self, frozen: &Frozen, generation: u64) -> Result<Roots> {
        match self.merge_in_shape(frozen, generation, Shape::STANDARD) {
            // There may be room, but no four blocks of it in a row.
            Err(error) if error.errno() == Errno::ENOSPC => {
                self.merge_in_shape(frozen, generation, Shape::SMALLEST)
            }
            merged => merged,
        }
    }

    /// As [`Self::merge`]. What fails has taken nothing.
    fn merge_in_shape(&self, frozen: &Frozen, generation: u64, shape: Shape) -> Result<Roots> {
        // Only checkpoints change roots, so these stay, and nobody is kept from working.
        let layers = Layers::over(self.freeze_barrier.pass().roots);
        let nodes = NewNodes::new(self, generation);
        let fold = Fold {
            snapshot_reader: self.snapshot_reader(&layers),
            runs: frozen.memtable.runs(),
            memtable: &frozen.memtable,
            hasher: &self.hasher,
            nodes: &nodes,
            shape,
        };
        match fold.all() {
            Ok(roots) => nodes.finish().map(|()| roots),
            Err(error) => {
                nodes.abandon();
                Err(error)
            }
        }
    }
}
