//! Making changes durable.
//!
//! A commit takes a *cut*: no operation is under way at that moment. All that was journalled before
//! belongs to it, and the pages that waited then get places, are written, and their
//! places are journalled as the commit's last batch. So a replay, which takes a commit whole or not
//! at all, finds the bytes of every file as they were at the cut.
//!
//! Bytes that nothing shows without the commit are written before its frames, others behind them. Those are in the frames as
//! well, and the opening of a volume whose process was killed in between writes them again. If they are many they
//! go before the frames: then a process that is killed may leave them later than all else, as a power cut does.
//!
//! *Invariants.* A mapping is journalled, or folded into the trees, only when its data is on the device
//! ([`Announced::assert_durable`](crate::store::load::in_flight::Announced::assert_durable)). Dirty pages that a commit takes are
//! announced, or wait on. A commit that does not come to its end stops the store before its turn is given back.

use std::mem;
use std::sync::Arc;
use std::time::Instant;

use holdfast_core::shrinkers::within_store;
use holdfast_core::store::Lsn;
use holdfast_types::Ino;
use parking_lot::Mutex;

use crate::journal::{self, BeforeCommit, Commit, Map, Overwrite, Position, Record};
use crate::space::{Extent, Reservation};
use crate::store::Inner;
use crate::store::file::extent_map::Run;
use crate::store::file::page::{WriteInFlight, zeros};
use crate::store::load::in_flight::{Ticket, Written};
use crate::store::memtable::Memtable;
use crate::store::memtable::SUBVOLUME;
use crate::store::memtable::layers::Layers;
use crate::store::writeback::allocate::Placer;
use crate::{BLOCK, Error, Result};

/// What a commit does for a store besides writing the journal.
struct Hook<'s> {
    store: &'s Inner,
    /// Is the overlay to be frozen at the cut, for a checkpoint?
    freeze: bool,
    outcome: Mutex<Outcome>,
}

#[derive(Default)]
struct Outcome {
    /// When the commit began, once it has its turn.
    begun: Option<Instant>,
    frozen: Option<Frozen>,
    position: Option<Position>,
    /// What was announced.
    data: Ticket,
    /// What of that, and of what others wrote, was written.
    written: Written,
    error: Option<Error>,
}

/// What a checkpoint folds.
pub(in crate::store) struct Frozen {
    pub(in crate::store) memtable: Arc<Memtable>,
    /// Where a replay begins once it is folded.
    pub(in crate::store) position: Position,
    pub(in crate::store) inodes: u64,
    pub(in crate::store) last_ino: u64,
    /// What must be on the device before anybody is told of its mappings.
    pub(in crate::store) data: Ticket,
}

/// What a commit takes of the pages that wait.
///
/// *Invariant.* A file's mapping has the places of these blocks already, so the blocks are announced whatever comes in
/// between: else who reads there would be shown what was there before.
struct Placed<'s> {
    store: &'s Inner,
    maps: Vec<Map>,
    in_flight: Vec<WriteInFlight>,
}

impl Placed<'_> {
    /// Shows the blocks to readers.
    fn announce(&mut self) -> Ticket {
        let in_flight = mem::take(&mut self.in_flight);
        self.store.blocks().announce(in_flight)
    }

    /// Shows the blocks to readers: first those that are written before the commit's frames, then those that go over other
    /// bytes and are in the frames, if they are few enough and the frames come first.
    fn announce_apart(&mut self, commit: &mut Commit<'_>) -> (Ticket, Ticket) {
        let over = self.in_flight.iter().filter(|it| it.over).count();
        let bytes = over as u64 * (BLOCK as u64 + OVERWRITE_MAX);
        let apart =
            (1..=OVER_MAX).contains(&over) && commit.frames_come_first() && commit.keep_room(bytes);
        let held = match apart {
            true => self.in_flight.extract_if(.., |it| it.over).collect(),
            false => Vec::new(),
        };
        let ahead = self.announce();
        if held.is_empty() {
            return (ahead, ahead);
        }
        (ahead, self.store.blocks().announce(held))
    }
}

impl Drop for Placed<'_> {
    fn drop(&mut self) {
        if !self.in_flight.is_empty() {
            self.announce();
        }
    }
}

/// Blocks that go over other bytes, at most, if the journal is to have them: 4 MiB.
const OVER_MAX: usize = 1024;
/// Bytes that such a block takes in the journal besides its own, at most: it may come in pieces.
const OVERWRITE_MAX: u64 = 256;

impl Inner {
    /// Makes everything up to a stamp durable; everything so far without one.
    pub(in crate::store) fn make_durable(&self, upto: Option<Lsn>) -> Result<()> {
        self.running()?;
        let _within = within_store();
        let hook = Hook::new(self, false);
        let committed = self.journal.commit(upto, &hook);
        hook.settle(committed)?;
        Ok(())
    }

    /// Hands everything so far to the device, so that it outlives this process; a crash of the host loses it unless a
    /// commit comes before. What was removed stays in use until then.
    pub(in crate::store) fn write_behind(&self) -> Result<()> {
        self.running()?;
        let _within = within_store();
        let hook = Hook::new(self, false);
        let written = self.journal.write(&hook);
        hook.settle(written)?;
        Ok(())
    }

    /// Is all that was changed with the device's cache, or `durable`? Then the next change is told by
    /// [`when_roused`](crate::journal::Journal::when_roused).
    ///
    /// A write to a page that changes no attribute is in no batch. Its file had its times of change from the same tick of the
    /// clock then: ask some ticks behind the last change.
    pub(in crate::store) fn rests(&self, durable: bool) -> bool {
        self.journal.rests(durable) && !self.freeze_barrier.pass().active.has_dirty_files()
    }

    /// Lets what was removed so far be free: that is durable then, and no checkpoint under way keeps it.
    pub(in crate::store) fn let_go(&self) -> Result<()> {
        self.running()?;
        let _within = within_store();
        let _none = self.checkpointing.lock();
        let hook = Hook::new(self, false);
        // Not as one of several: what another's commit frees is durable before it is free.
        let committed = self.journal.commit_now(&hook);
        hook.settle(committed)?;
        Ok(())
    }

    /// Commits, and freezes what changed up to then.
    pub(in crate::store) fn freeze(&self) -> Result<Frozen> {
        self.running()?;
        let hook = Hook::new(self, true);
        let committed = self.journal.commit_now(&hook);
        let outcome = hook.settle(committed)?;
        let (Some(mut frozen), Some(position)) = (outcome.frozen, outcome.position) else {
            return Err(Error::Stopped("a commit came to no end".to_owned()));
        };
        frozen.position = position;
        Ok(frozen)
    }

    /// What was announced with this ticket, as the journal has it: blocks, places in them, and bytes.
    fn overwrites(&self, ticket: Ticket) -> Vec<(u64, usize, Vec<u8>)> {
        let mut over = Vec::new();
        self.blocks().each_announced(ticket, &mut |in_flight| {
            if in_flight.is_all() {
                let mut page = zeros();
                in_flight.changed.show_in(&mut page);
                over.push((in_flight.block, 0, page.to_vec()));
            } else {
                let mut piece = |at, bytes: &[u8]| over.push((in_flight.block, at, bytes.to_vec()));
                in_flight.changed.each_piece(&mut piece);
            }
        });
        over
    }

    /// Gives places to all pages that wait. Nobody changes anything meanwhile.
    fn place_dirty(&self, layers: &Layers, cut: Lsn) -> Result<Placed<'_>> {
        let mut placed = Placed {
            store: self,
            maps: Vec::new(),
            in_flight: Vec::new(),
        };
        let mut promise = self.promises.take();
        for ino in layers.active.take_dirty_files() {
            self.place_file(layers, ino, cut, &mut promise, &mut placed)?;
        }
        // No page waits any more.
        drop(promise);
        self.patience.learn(&placed.in_flight);
        Ok(placed)
    }

    /// Gives places to those of one file.
    fn place_file(
        &self,
        layers: &Layers,
        ino: Ino,
        cut: Lsn,
        promise: &mut Reservation,
        placed: &mut Placed<'_>,
    ) -> Result<()> {
        let mut shard = layers.active.shard(ino);
        let Some(mut object) = shard.get_mut(ino) else {
            return Ok(());
        };
        let Some(content) = object.content_mut() else {
            return Ok(());
        };
        let before = content.dirty();
        placed.in_flight.reserve(before.pages);
        let mut places = Placer::new(self, ino, promise);
        let maps = &mut placed.maps;
        let mut mapped = |offset, run: Run| {
            maps.push(Map {
                ino,
                offset,
                start: run.extent.start,
                blocks: run.extent.length,
                birth: run.birth,
                unwritten: false,
            });
        };
        let taken = content.take_dirty(&mut places, &mut mapped, &mut placed.in_flight);
        layers.active.count_dirty(ino, before, content.dirty());
        taken?;
        Ok(self.space.record_all(&places.fresh, cut.0)?)
    }
}

impl<'s> Hook<'s> {
    fn new(store: &'s Inner, freeze: bool) -> Self {
        Self {
            store,
            freeze,
            outcome: Mutex::default(),
        }
    }

    fn cut(&self, commit: &mut Commit<'_>) -> Result<()> {
        let store = self.store;
        // Not behind the gate, where others would have to wait for it.
        store.space.ready()?;
        let mark;
        let (placed, ahead, all) = {
            let mut layers = store.freeze_barrier.close();
            // What stopped the store since this was asked may have left a change half made.
            store.running()?;
            let cut = commit.cut();
            let mut placed = store.place_dirty(&layers, cut)?;
            let (ahead, all) = placed.announce_apart(commit);
            mark = store.high_water.next_mark(Ino(store.met.get()), cut);
            if self.freeze {
                store.space.begin_checkpoint(cut.0)?;
                let (memtable, next) = (Arc::clone(&layers.active), Arc::new(Memtable::new()));
                memtable.seal();
                layers.change(|layers| {
                    layers.active = Arc::clone(&next);
                    layers.frozen = Some(Arc::clone(&memtable));
                });
                self.outcome.lock().frozen = Some(Frozen {
                    memtable,
                    position: Position::default(),
                    inodes: store.inodes(),
                    last_ino: store.high_water.latest().0,
                    data: all,
                });
            }
            (placed, ahead, all)
        };
        store.progress.step();
        let mut over = Vec::new();
        if commit.frames_come_first() {
            store.blocks().write_out(ahead)?;
            store.blocks().assert_written(ahead);
            if ahead.is_before(all) {
                over = store.overwrites(all);
                commit.tells_of_bytes();
            }
            if store.blocks().is_unflushed() {
                commit.tells_of_bytes();
            }
        } else {
            let written = store.blocks().write_out(all)?;
            if store.blocks().is_unflushed() {
                commit.flush()?;
            }
            store.blocks().flushed(written);
            store.blocks().assert_durable(all);
        }
        self.outcome.lock().data = all;
        let maps = placed.maps.iter().copied().map(Record::Map);
        let over = over.iter().map(|(block, from, data)| {
            Record::Overwrite(Overwrite {
                block: *block,
                from: *from,
                data,
            })
        });
        let records: Vec<Record<'_>> = maps.chain(mark.map(Record::Numbers)).chain(over).collect();
        commit.append_records(SUBVOLUME, &records)?;
        Ok(())
    }

    /// Writes what goes over other bytes.
    fn write_over(&self) -> Result<()> {
        let data = self.outcome.lock().data;
        let written = self.store.blocks().write_out(data)?;
        self.store.blocks().assert_written(data);
        self.outcome.lock().written = written;
        Ok(())
    }

    /// What the commit did. One that failed has stopped the store.
    fn settle(self, committed: journal::Result<()>) -> Result<Outcome> {
        let mut outcome = self.outcome.into_inner();
        match (outcome.error.take(), committed) {
            (Some(error), _) => Err(error),
            (None, Ok(())) => Ok(outcome),
            // Another's failed.
            (None, Err(journal::Error::Failed)) => {
                self.store.running()?;
                Err(journal::Error::Failed.into())
            }
            (None, Err(error)) => Err(error.into()),
        }
    }
}

impl BeforeCommit for Hook<'_> {
    fn before(&self, commit: &mut Commit<'_>) -> journal::Result<()> {
        self.outcome.lock().begun = Some(Instant::now());
        self.cut(commit).map_err(|error| {
            self.outcome.lock().error = Some(error);
            journal::Error::Failed
        })
    }

    fn written(&self) -> journal::Result<()> {
        self.write_over().map_err(|error| {
            self.outcome.lock().error = Some(error);
            journal::Error::Failed
        })
    }

    fn flushed(&self) {
        let outcome = self.outcome.lock();
        self.store.blocks().flushed(outcome.written);
        self.store.blocks().assert_durable(outcome.data);
    }

    fn after(&self, position: Position) {
        let freed = self.store.space.committed(position.lsn.0);
        let mut outcome = self.outcome.lock();
        if let Some(begun) = outcome.begun {
            self.store.tallies.commits.add(begun.elapsed());
        }
        outcome.position = Some(position);
        outcome.error = freed.err().map(|error| self.store.stop(error.into()));
    }

    fn failed(&self, reason: Option<&journal::Error>) {
        let outcome = self.outcome.lock();
        match (&outcome.error, reason) {
            (Some(error), _) => self.store.fail(error),
            (None, Some(error)) => self.store.fail(&error.clone().into()),
            (None, None) => self.store.fail(&Error::Panicked("a commit")),
        }
    }
}

/// The extent of a map record.
pub(in crate::store) fn extent_of(map: &Map) -> Extent {
    Extent::new(map.start, map.blocks)
}
