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
use crate::store::commit::{Frozen, freeze};
use crate::store::load::Blocks;
use crate::store::memtable::{Layers, Roots};
use crate::superblock::{SLOTS, Superblock};
use crate::tree::NodeSize;

/// Merges all changes so far into the trees.
pub(in crate::store) fn checkpoint(store: &Inner) -> Result<()> {
    let _one = store.checkpointing.lock();
    store.stop.running()?;
    let _counted = store.counters.checkpoints.begin();
    let _within = within_store();
    // Stops the store on failure: a second checkpoint would replace the frozen memtable that
    // this one did not merge.
    store.stop.whole("a checkpoint", || {
        let frozen = freeze(store)?;
        merge_frozen(store, &frozen)
    })
}

/// Merges the frozen memtable. Only nodes need space for that.
pub(in crate::store) fn merge_frozen(store: &Inner, frozen: &Frozen) -> Result<()> {
    let generation = store.next_generation();
    let roots = merge(store, frozen, generation)?;
    let bitmaps = store.space.dirty_bitmaps(generation);
    let pieces: Vec<(u64, &[u8])> = bitmaps
        .blocks
        .iter()
        .map(|(block, bytes)| (*block, &bytes[..]))
        .collect();
    let blocks = store.reader.blocks();
    blocks.write_batch(&pieces)?;
    blocks.flush()?;
    blocks.in_flight.assert_durable(frozen.data);
    let before = store.superblock.lock().clone();
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
    write_superblock(blocks, &superblock, &SLOTS)?;
    store.succeed(superblock);
    store.pool.note_height(&roots);
    store.reader.freeze_barrier.close().change(|layers| {
        layers.roots = roots;
        layers.frozen = None;
    });
    // From here on the replaced nodes are in no layer, and older snapshots are outdated.
    store.reader.freeze_barrier.about_to_reuse();
    // Both slots have this generation, so no open uses an older one.
    store.space.checkpointed(generation)?;
    store.journal.trim(frozen.position);
    store.preallocations.age();
    store.pool.reset_low_watermark();
    Ok(())
}

/// Writes the superblock to these slots, one after the other, so that one of them is always valid.
pub(in crate::store) fn write_superblock(
    blocks: &Blocks,
    superblock: &Superblock,
    slots: &[u64],
) -> Result<()> {
    for slot in slots {
        blocks.write(*slot, &superblock.encode(*slot))?;
        blocks.flush()?;
    }
    Ok(())
}

/// Merges a frozen memtable into the trees; returns their new roots.
fn merge(store: &Inner, frozen: &Frozen, generation: u64) -> Result<Roots> {
    match merge_with_nodes(store, frozen, generation, NodeSize::STANDARD) {
        // There may be space, but no four contiguous blocks.
        Err(error) if error.errno() == Errno::ENOSPC => {
            merge_with_nodes(store, frozen, generation, NodeSize::SMALLEST)
        }
        merged => merged,
    }
}

/// As [`merge`]. A failure has allocated nothing.
fn merge_with_nodes(
    store: &Inner,
    frozen: &Frozen,
    generation: u64,
    node_size: NodeSize,
) -> Result<Roots> {
    // Only checkpoints change roots, so the barrier need not be held.
    let layers = Layers::over(store.reader.freeze_barrier.pass().roots);
    let nodes = NewNodes::new(store, generation);
    let merge = TreeMerge {
        snapshot_reader: store.reader.snapshot_reader(&layers),
        inos: frozen.memtable.numbers(),
        memtable: &frozen.memtable,
        hasher: &store.reader.hasher,
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
