//! How many nodes the trees have, and how high they are.

use std::sync::atomic::Ordering;

use super::Inner;
use super::load::StoreReader;
use super::memtable::Roots;
use crate::error::Result;
use crate::tree::Root;

/// Notes the heights and (upper bounds of) the node counts of the trees at open.
pub(super) fn note_trees(store: &Inner) {
    let roots = store.reader.freeze_barrier.pass().roots;
    let nodes = match takes_few_reads(&roots) {
        true => count_nodes(&store.reader),
        false => {
            let most = roots.each().into_iter().flatten().map(most_nodes);
            most.fold(0, u64::saturating_add)
        }
    };
    store.pool.nodes.store(nodes, Ordering::Relaxed);
    store.pool.note_height(&roots);
}

/// Reads what the first requests did not need: the bitmaps, and the node counts of the trees.
///
/// # Errors
/// If the bitmaps are unreadable or damaged. That stops the store.
pub(super) fn read_the_rest(store: &Inner) -> Result<()> {
    let ready = store.space.ready();
    ready.map_err(|error| store.stop.fail(error.into()))?;
    // Checkpoints change the counts.
    let _one = store.checkpointing.lock();
    let roots = store.reader.freeze_barrier.pass().roots;
    if !takes_few_reads(&roots) {
        store
            .pool
            .nodes
            .store(count_nodes(&store.reader), Ordering::Relaxed);
    }
    Ok(())
}

/// The number of nodes of all trees; an upper bound for a damaged tree.
fn count_nodes(reader: &StoreReader) -> u64 {
    let layers = reader.freeze_barrier.snapshot();
    let snapshot_reader = reader.snapshot_reader(&layers);
    let counts = [
        snapshot_reader.inodes().nodes(),
        snapshot_reader.entries().nodes(),
        snapshot_reader.hashes().nodes(),
        snapshot_reader.data().nodes(),
        snapshot_reader.orphans().nodes(),
    ];
    let roots = layers.roots.each();
    let counts = counts.into_iter().zip(roots);
    counts
        .map(|(count, root)| count.unwrap_or_else(|_| root.map_or(0, most_nodes)))
        .fold(0, u64::saturating_add)
}

/// Does counting the nodes take at most one read a tree?
fn takes_few_reads(roots: &Roots) -> bool {
    let levels = roots.each().into_iter().flatten();
    levels.map(|root| root.level).max() <= Some(1)
}

/// An upper bound of the nodes of a tree.
fn most_nodes(root: Root) -> u64 {
    match root.level {
        0 => 1,
        _ => root.records.saturating_add(1),
    }
}
