//! Applying one operation's changes, in memory and in the journal.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use holdfast_core::store::{Change, Lsn, PageOf};
use holdfast_types::{FileType, Ino};

use super::evict::without_last_attributes;
use super::prefetched::{Prefetched, make};
use super::transaction::Applier;
use crate::error::Result;
use crate::journal::Record;
use crate::space::FileRequest;
use crate::store::Inner;
use crate::store::commit::extent_of;
use crate::store::file::Run;
use crate::store::memtable::{Layers, SUBVOLUME, TreeCost};

/// Applies one operation's changes, in memory and in the journal. `kept`: cached pages that
/// already hold what is written. `reserved`: blocks reserved for pages without extents.
pub(in crate::store) fn apply(
    store: &Inner,
    batch: &[Change<'_>],
    kept: Option<&PageOf<'_>>,
    tree_cost: TreeCost,
    reserved: u64,
) -> Result<Lsn> {
    hop!();
    let unused = Cell::new(reserved);
    let made = make(&store.reader, &store.stop, |layers, prefetched| {
        apply_in(store, layers, batch, kept, tree_cost, &unused, prefetched)
    });
    // The unused part of the reservation.
    store.space.unreserve(unused.take());
    made
}

/// As [`apply`], inside the barrier.
fn apply_in(
    store: &Inner,
    layers: &Layers,
    batch: &[Change<'_>],
    kept: Option<&PageOf<'_>>,
    tree_cost: TreeCost,
    unused: &Cell<u64>,
    prefetched: &Prefetched<'_>,
) -> Result<Lsn> {
    hop!();
    let (last, batch) = without_last_attributes(batch);
    let place = |ino: Ino, request: &FileRequest| {
        let extent = if unused.get() > 0 {
            store
                .pool
                .page_reservations
                .place_from(unused, |reservation| {
                    store.preallocations.place(ino, request, Some(reservation))
                })?
        } else {
            // Overwritten dirty pages leave their reservations unused.
            let more = store.space.reserve(request.length);
            let mut more =
                more.unwrap_or_else(|_| store.pool.page_reservations.draw(request.length));
            let placed = store.preallocations.place(ino, request, Some(&mut more));
            store.pool.page_reservations.add(more.into_blocks());
            placed?
        };
        #[cfg(test)]
        store.recorder.placed(extent.length);
        Ok(Run {
            extent,
            generation: store.next_generation(),
            unwritten: true,
        })
    };
    let mut applier = Applier {
        snapshot_reader: store.reader.snapshot_reader(layers),
        kept,
        prefetched: Some(prefetched),
        place: &place,
        cut: Vec::new(),
        freed: Vec::new(),
        inodes: 0,
        not_a_file: last
            .filter(|inode| inode.kind != FileType::Regular)
            .map(|inode| inode.ino),
    };
    let records = applier.make(batch)?;
    layers.active.count(tree_cost);
    // Dirty pages without extents keep their reservation until a commit.
    store.pool.page_reservations.add(unused.take());
    let lsn = match records.is_empty() {
        true => store.journal.before_next_cut(),
        false => store.journal.append(SUBVOLUME, &records)?,
    };
    for record in &records {
        if let Record::Map(map) = record {
            store.space.record(extent_of(map), lsn.0)?;
        }
    }
    for (ino, block) in &applier.cut {
        store.preallocations.cut(*ino, *block);
    }
    for run in &applier.freed {
        store.space.free_data(run.extent, lsn.0)?;
    }
    for change in batch {
        if let Change::Free { ino } = change {
            store.preallocations.forget(*ino);
        }
        // Relaxed: a commit, which needs the exact value, has closed the barrier.
        if let Change::Create { inode, .. } = change {
            store.max_ino.fetch_max(inode.ino.0, Ordering::Relaxed);
        }
    }
    if applier.inodes != 0 {
        store.inodes.add(applier.inodes);
    }
    Ok(lsn)
}
