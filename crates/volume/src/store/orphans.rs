//! Orphans: inodes with `nlink == 0`, freed at the next open.

use std::collections::BTreeSet;

use holdfast_core::store::{Change, Class, Intent};
use holdfast_types::Ino;

use super::Inner;
use super::apply::apply;
use super::load::StoreReader;
use super::memtable::TreeCost;
use super::reserve::reserve;
use crate::error::Result;

/// Frees the orphans of the last use.
pub(super) fn end_orphans(store: &Inner) -> Result<()> {
    for ino in orphans(&store.reader)? {
        let end = [Change::Free { ino }];
        let intent = Intent {
            class: Class::GivingBack,
            ..Intent::of(&end)
        };
        let held = reserve(store, &intent)?;
        apply(store, &end, None, TreeCost::of(&end), 0)?;
        store.pool.uncharge(held.records, held.journal);
    }
    Ok(())
}

fn orphans(reader: &StoreReader) -> Result<BTreeSet<Ino>> {
    let layers = reader.freeze_barrier.pass();
    let snapshot_reader = reader.snapshot_reader(&layers);
    let mut suspects: BTreeSet<Ino> = layers.active.numbers().into_iter().collect();
    let mut cursor = snapshot_reader.orphans().range(None)?;
    while let Some((ino, _)) = cursor.next()? {
        suspects.insert(ino);
    }
    let mut orphans = BTreeSet::new();
    for ino in suspects {
        // It may have been linked or freed since.
        if snapshot_reader
            .inode(ino)?
            .is_some_and(|inode| inode.nlink == 0)
        {
            orphans.insert(ino);
        }
    }
    Ok(orphans)
}
