//! Checkpoints: merging changes into the trees.
//!
//! One sorted merge a tree, into new nodes; then the changed bitmaps; then the superblock, which
//! switches to all of it at once. Until then a crash finds the old trees and the journal. Changes
//! go on meanwhile, in a new memtable.

use holdfast_core::shrinkers::within_store;
use holdfast_types::{Errno, Time};
use std::time::SystemTime;

use super::merge::TreeMerge;
use super::nodes::NewNodes;
use crate::error::Result;
use crate::store::Inner;
use crate::store::commit::Frozen;
use crate::store::memtable::layers::{Layers, Roots};
use crate::superblock::{self, Superblock};
use crate::tree::NodeSize;

impl Inner {
    /// Merges all changes so far into the trees.
    pub(in crate::store) fn checkpoint(&self) -> Result<()> {
        let _one = self.checkpointing.lock();
        self.running()?;
        let _counted = self.counters.checkpoints.begin();
        let _within = within_store();
        // Stops the store on failure: a second checkpoint would replace the frozen memtable that
        // this one did not merge.
        self.whole("a checkpoint", || {
            let frozen = self.freeze()?;
            self.merge_frozen(&frozen)
        })
    }

    /// Merges the frozen memtable. Only nodes need space for that.
    pub(in crate::store) fn merge_frozen(&self, frozen: &Frozen) -> Result<()> {
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
        self.blocks().in_flight.assert_durable(frozen.data);
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
        // From here on the replaced nodes are in no layer, and older snapshots are outdated.
        self.freeze_barrier.about_to_reuse();
        // Both slots have this generation, so no open uses an older one.
        self.space.checkpointed(generation)?;
        self.journal.trim(frozen.position);
        self.preallocations.age();
        self.reset_low_watermark();
        Ok(())
    }

    /// Writes the superblock to both slots, one after the other, so that one of them is always
    /// valid.
    pub(in crate::store) fn write_superblock(&self, superblock: &Superblock) -> Result<()> {
        for slot in superblock::SLOTS {
            self.blocks().write(slot, &superblock.encode(slot))?;
            self.blocks().flush()?;
        }
        Ok(())
    }

    /// Merges a frozen memtable into the trees; returns their new roots.
    fn merge(&self, frozen: &Frozen, generation: u64) -> Result<Roots> {
        match self.merge_with_nodes(frozen, generation, NodeSize::STANDARD) {
            // There may be space, but no four contiguous blocks.
            Err(error) if error.errno() == Errno::ENOSPC => {
                self.merge_with_nodes(frozen, generation, NodeSize::SMALLEST)
            }
            merged => merged,
        }
    }

    /// As [`Self::merge`]. A failure has allocated nothing.
    fn merge_with_nodes(
        &self,
        frozen: &Frozen,
        generation: u64,
        node_size: NodeSize,
    ) -> Result<Roots> {
        // Only checkpoints change roots, so the barrier need not be held.
        let layers = Layers::over(self.freeze_barrier.pass().roots);
        let nodes = NewNodes::new(self, generation);
        let merge = TreeMerge {
            snapshot_reader: self.snapshot_reader(&layers),
            inos: frozen.memtable.numbers(),
            memtable: &frozen.memtable,
            hasher: &self.hasher,
            nodes: &nodes,
            node_size,
        };
        match merge.all() {
            Ok(roots) => nodes.finish().map(|()| roots),
            Err(error) => {
                nodes.abandon();
                Err(error)
            }
        }
    }
}
