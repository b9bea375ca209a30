//! What the journal knows and the trees do not, brought back into memory.
//!
//! A journal can hold more changes than there is memory for: it was written with more. So it is read twice. First it is
//! [surveyed](super::survey); then its changes are made again, and trees are written in the midst of that.

use std::sync::Arc;

use holdfast_core::store::Change;

use crate::journal::{Map, Position, Record, Replay};
use crate::space::{self, FileRequest, Space};
use crate::store::Inner;
use crate::store::apply::transaction::Applier;
use crate::store::commit::{Frozen, extent_of};
use crate::store::file::extent_map::Run;
use crate::store::load::SnapshotReader;
use crate::store::load::in_flight::Ticket;
use crate::store::memtable::{Growth, Memtable};
use crate::{Error, Result, tree};

impl Inner {
    /// Makes the changes of a journal again that was [surveyed](super::survey::Survey). Nothing else happens to the volume meanwhile.
    ///
    /// `most`: bytes of changes that may be in memory. Beyond that they are brought into the trees, as far as there is
    /// room for nodes: a crash then finds a journal that begins behind them.
    ///
    /// # Errors
    /// The device's; of what is damaged.
    pub(super) fn replay(&self, mut journal: Replay, most: u64) -> Result<()> {
        let mut due = Some(most);
        while let Some(held) = self.replay_batch(&mut journal)? {
            if due.is_none_or(|due| held <= due) {
                continue;
            }
            due = if !is_placed(&self.freeze_barrier.snapshot().active) {
                // The commit has places for all of it, behind what it changed.
                Some(held + most / 4)
            } else if self.fold_replayed(journal.position())? {
                Some(most)
            } else {
                None
            };
        }
        Ok(self.space.replayed()?)
    }

    /// Replays the next batch; gives the bytes of changes that are in memory then, about.
    fn replay_batch(&self, journal: &mut Replay) -> Result<Option<u64>> {
        let Some(mut batch) = journal.next_batch()? else {
            return Ok(None);
        };
        let records = batch.rest()?;
        let layers = self.freeze_barrier.snapshot();
        let inodes = replay(self.snapshot_reader(&layers), &self.space, &records)?;
        self.inodes.add(inodes);
        Ok(Some(layers.active.memory()))
    }

    /// Brings what was replayed up to a position into the trees; `false`: there is no room for that.
    fn fold_replayed(&self, position: Position) -> Result<bool> {
        let _counted = self.tallies.checkpoints.begin();
        self.space.begin_checkpoint(position.lsn.0)?;
        let frozen = Frozen {
            memtable: Arc::clone(&self.freeze_barrier.pass().active),
            position,
            inodes: self.inodes(),
            last_ino: self.high_water.latest().0,
            data: Ticket::default(),
        };
        match self.fold(&frozen) {
            // Of the volume's: where a host has no room a write may be half made.
            Err(
                Error::Tree(tree::Error::NoSpace)
                | Error::Space(space::Error::Full { .. } | space::Error::Later { .. }),
            ) => {
                self.space.give_up_checkpoint();
                return Ok(false);
            }
            folded => folded?,
        }
        let next = Arc::new(Memtable::new());
        self.freeze_barrier
            .close()
            .change(|layers| layers.active = Arc::clone(&next));
        Ok(true)
    }
}

/// Does no page wait for a place?
fn is_placed(memtable: &Memtable) -> bool {
    memtable.dirty_files().into_iter().all(|ino| {
        let waits = memtable.with(ino, |object| {
            object
                .content()
                .is_some_and(|content| content.dirty().pages > 0)
        });
        waits != Some(true)
    })
}

/// Makes the changes of a journalled batch again; returns how many inodes came, less those that went.
fn replay(
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
        ends: None,
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
    let growth = Growth::of(&changes) + Growth::of_places(maps.len() as u64);
    snapshot_reader.layers.active.count(growth);
    Ok(applier.inodes)
}

fn replay_map(space: &Space, applier: &mut Applier<'_, '_>, map: &Map) -> Result<()> {
    let extent = extent_of(map);
    let run = Run {
        extent,
        birth: map.birth,
        unwritten: map.unwritten,
    };
    // Blocks that the file has there already were only written for the first time.
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
