//! Journal replay at open.
//!
//! A journal can hold more changes than fit in memory. So it is read twice: first it is
//! [surveyed](super::survey), then its changes are applied again, with checkpoints in between.

use std::sync::Arc;

use holdfast_core::store::Change;

use super::Inner;
use super::apply::Applier;
use super::checkpoint::merge_frozen;
use super::commit::{Frozen, extent_of};
use super::file::Run;
use super::load::{SnapshotReader, Ticket};
use super::memtable::{Memtable, TreeCost};
use crate::error::{Error, Result};
use crate::journal::{Map, Position, Record, Replay};
use crate::space::{self, FileRequest, Space};
use crate::tree;

/// Applies the changes of a [surveyed](super::survey::Survey) journal again. No other change is
/// made meanwhile.
///
/// Beyond `most` bytes of changes in memory they are checkpointed, as far as there is room for
/// nodes. A crash then finds a journal that begins after them.
///
/// # Errors
/// Those of the device, and of what is damaged.
pub(super) fn replay(store: &Inner, mut journal: Replay, most: u64) -> Result<()> {
    let mut due = Some(most);
    while let Some(held) = replay_batch(store, &mut journal)? {
        if due.is_none_or(|due| held <= due) {
            continue;
        }
        due = if !is_placed(&store.reader.freeze_barrier.snapshot().active) {
            // The last batch of a commit maps all pages that its earlier batches dirtied.
            Some(held + most / 4)
        } else if checkpoint_replayed(store, journal.position())? {
            Some(most)
        } else {
            None
        };
    }
    Ok(store.space.replayed()?)
}

/// Replays the next batch. Returns the bytes that the active memtable takes then.
fn replay_batch(store: &Inner, journal: &mut Replay) -> Result<Option<u64>> {
    let Some(mut batch) = journal.next_batch()? else {
        return Ok(None);
    };
    let records = batch.rest()?;
    let layers = store.reader.freeze_barrier.snapshot();
    let inodes = replay_records(
        store.reader.snapshot_reader(&layers),
        &store.space,
        &records,
    )?;
    store.inodes.add(inodes);
    Ok(Some(layers.active.memory()))
}

/// Checkpoints what was replayed up to `position`; `false`: there is no room.
fn checkpoint_replayed(store: &Inner, position: Position) -> Result<bool> {
    let _counted = store.counters.checkpoints.begin();
    store.space.begin_checkpoint(position.lsn.0)?;
    let frozen = Frozen {
        memtable: Arc::clone(&store.reader.freeze_barrier.pass().active),
        position,
        inodes: store.inodes(),
        last_ino: store.high_water.latest().0,
        data: Ticket::default(),
    };
    match merge_frozen(store, &frozen) {
        // Only the volume's own ENOSPC: if the host has no room, a write may be half done.
        Err(
            Error::Tree(tree::Error::NoSpace)
            | Error::Space(space::Error::Full { .. } | space::Error::Later { .. }),
        ) => {
            store.space.give_up_checkpoint();
            return Ok(false);
        }
        folded => folded?,
    }
    let next = Arc::new(Memtable::new());
    store
        .reader
        .freeze_barrier
        .close()
        .change(|layers| layers.active = Arc::clone(&next));
    Ok(true)
}

/// Has no file a dirty page?
fn is_placed(memtable: &Memtable) -> bool {
    memtable.dirty_files().into_iter().all(|ino| {
        let waits = memtable.with(ino, |object| {
            object.content().is_some_and(|content| content.dirty() > 0)
        });
        waits != Some(true)
    })
}

/// Applies the changes of one journalled batch; returns the change of the inode count.
fn replay_records(
    snapshot_reader: SnapshotReader<'_>,
    space: &Space,
    records: &[Record<'_>],
) -> Result<i64> {
    let no_place = |_, _: &FileRequest| -> Result<Run> {
        Err(Error::Damaged("the journal asks for space".to_owned()))
    };
    let mut applier = Applier {
        snapshot_reader,
        kept: None,
        prefetched: None,
        place: &no_place,
        cut: Vec::new(),
        freed: Vec::new(),
        inodes: 0,
        not_a_file: None,
    };
    let mut changes: Vec<Change<'_>> = Vec::new();
    let mut maps: Vec<&Map> = Vec::new();
    for record in records {
        match record {
            Record::Change(change) => changes.push(change.clone()),
            Record::Map(map) => maps.push(map),
            Record::Numbers(_) | Record::Overwrite(_) => {}
        }
    }
    applier.make(&changes)?;
    give_back(space, &mut applier)?;
    for map in &maps {
        replay_map(space, &mut applier, map)?;
    }
    let tree_cost = TreeCost::of(&changes) + TreeCost::of_places(maps.len() as u64);
    snapshot_reader.layers.active.count(tree_cost);
    Ok(applier.inodes)
}

fn replay_map(space: &Space, applier: &mut Applier<'_, '_>, map: &Map) -> Result<()> {
    let extent = extent_of(map);
    let run = Run {
        extent,
        generation: map.generation,
        unwritten: map.unwritten,
    };
    // The file may have some of the blocks at that offset already, as unwritten ones.
    for part in applier.parts_elsewhere(map.ino, map.offset, run)? {
        space.mark_used(part)?;
    }
    applier.map(map, run)?;
    give_back(space, applier)
}

fn give_back(space: &Space, applier: &mut Applier<'_, '_>) -> Result<()> {
    for run in std::mem::take(&mut applier.freed) {
        space.mark_free(run.extent)?;
    }
    Ok(())
}
