//! Making changes durable.
//!
//! A commit defines a *commit point*: a moment without a batch in progress. Everything journalled
//! before belongs to the commit. The pages that are dirty then get blocks and are written, and
//! their extents are journalled as the commit's last batch. Replay takes a commit as a whole or not
//! at all, so it finds the data of every file as it was at the commit point.
//!
//! Newly allocated blocks are written before the log frames, overwritten blocks after them. The
//! overwrites are journalled as well, and replay repeats them after a process was killed in
//! between. If they are many they are not journalled but written before the frames: then a killed
//! process, as a power cut, may leave them newer than the rest.
//!
//! *Invariants.* An extent is journalled, or merged into the trees, only when its data is on the
//! device ([`InFlight::assert_durable`]). Dirty pages that a commit takes are published as in
//! flight, or stay dirty. A commit that fails stops the store before it releases the commit lock.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use holdfast_core::shrinkers::within_store;
use holdfast_core::store::Lsn;
use holdfast_types::Ino;

use crate::block::BLOCK;
use crate::error::{Error, Result};
use crate::journal::{Group, Map, Mode, Overwrite, Position, Record};
use crate::space::{Extent, Reservation};
use crate::store::Inner;
use crate::store::file::{Run, WriteInFlight, zeros};
use crate::store::load::{InFlight, Ticket};
use crate::store::memtable::{Layers, Memtable, SUBVOLUME};
use crate::store::writeback::FileAllocator;

/// What a checkpoint merges.
pub(in crate::store) struct Frozen {
    pub(in crate::store) memtable: Arc<Memtable>,
    /// Where a replay begins after the checkpoint.
    pub(in crate::store) position: Position,
    pub(in crate::store) inodes: u64,
    pub(in crate::store) last_ino: u64,
    /// Must be durable before its extents are recorded.
    pub(in crate::store) data: Ticket,
}

/// The dirty pages that a commit took, with their blocks.
///
/// *Invariant.* The file's mapping already has these blocks, so they are published even on an
/// error: otherwise a reader would see their old contents.
struct Placed<'s> {
    to: &'s InFlight,
    maps: Vec<Map>,
    in_flight: Vec<WriteInFlight>,
}

impl Placed<'_> {
    /// Publishes the writes to readers.
    fn publish(&mut self) -> Ticket {
        let in_flight = mem::take(&mut self.in_flight);
        self.to.publish(in_flight)
    }

    /// Publishes the writes: first those that precede the log frames, then the overwrites that are
    /// journalled and follow them, if there are few and the frames come first.
    fn publish_overwrites_last(&mut self, group: &mut Group<'_>) -> (Ticket, Ticket) {
        hop!();
        let over = self.in_flight.iter().filter(|it| it.over).count();
        let bytes = over as u64 * (BLOCK as u64 + OVERWRITE_MAX);
        let is_split =
            (1..=OVER_MAX).contains(&over) && group.frames_come_first() && group.keep_room(bytes);
        let held = match is_split {
            true => self.in_flight.extract_if(.., |it| it.over).collect(),
            false => Vec::new(),
        };
        let first = self.publish();
        if held.is_empty() {
            return (first, first);
        }
        (first, self.to.publish(held))
    }
}

impl Drop for Placed<'_> {
    fn drop(&mut self) {
        if !self.in_flight.is_empty() {
            self.publish();
        }
    }
}

/// Overwritten blocks that are journalled, at most: 4 MiB.
const OVER_MAX: usize = 1024;
/// Journal bytes of such a block besides its data, at most: it may consist of parts.
const OVERWRITE_MAX: u64 = 256;

/// Makes the journal durable up to `upto`, or all of it.
pub(in crate::store) fn make_durable(store: &Inner, upto: Option<Lsn>) -> Result<()> {
    hop!();
    store.stop.running()?;
    let upto = upto.unwrap_or_else(|| store.journal.next_lsn());
    if let Some(_turn) = store.journal.turn(upto) {
        commit_group(store, Mode::Flushed, false)?;
    }
    Ok(())
}

/// Writes everything so far without a flush, so that it survives this process. A crash of the
/// host loses it unless a commit follows. Freed blocks stay in use until then. Does nothing
/// where the device's cache has no known identity. Waits for no flush: a commit unlocks the
/// ring during its flushes.
pub(in crate::store) fn write_behind(store: &Inner) -> Result<()> {
    store.stop.running()?;
    if store.journal.can_write() {
        commit_group(store, Mode::Written, false)?;
    }
    Ok(())
}

/// Is everything written, or durable, so that
/// [`when_roused`](crate::journal::Journal::when_roused) reports the next change?
///
/// A write to a page that changes no attribute is in no batch. It falls in the same clock tick
/// as one that did: call this some ticks after the last change.
pub(in crate::store) fn rests(store: &Inner, durable: bool) -> bool {
    store.journal.rests(durable) && !store.reader.freeze_barrier.pass().active.has_dirty_files()
}

/// Makes blocks that were freed so far reusable: their removal is durable, and no checkpoint
/// holds them.
pub(in crate::store) fn let_go(store: &Inner) -> Result<()> {
    store.stop.running()?;
    let _none = store.checkpointing.lock();
    // Blocks freed by another thread's commit are not free when that returns.
    commit_now(store, false)?;
    Ok(())
}

/// Commits, and freezes the memtable at the commit point.
pub(in crate::store) fn freeze(store: &Inner) -> Result<Frozen> {
    store.stop.running()?;
    let frozen = commit_now(store, true)?;
    frozen.ok_or_else(|| Error::Stopped("a commit froze nothing".to_owned()))
}

/// A commit of its own, even if everything is durable.
fn commit_now(store: &Inner, freeze: bool) -> Result<Option<Frozen>> {
    let _turn = store.journal.turn(Lsn(u64::MAX));
    commit_group(store, Mode::Flushed, freeze)
}

/// Commits, or only writes. If that fails or panics, it stops the store before another group
/// can begin.
fn commit_group(store: &Inner, wanted: Mode, freeze: bool) -> Result<Option<Frozen>> {
    hop!();
    let _within = within_store();
    // A journal that has failed has stopped the store.
    let group = store.journal.begin_group(wanted);
    let mut group = group.map_err(|error| store.stop.running().err().unwrap_or(error.into()))?;
    let begun = Instant::now();
    let written = store
        .stop
        .whole("a commit", || write_group(store, &mut group, freeze));
    let Some((position, frozen)) = written? else {
        return Ok(None);
    };
    drop(group);
    store
        .stop
        .whole("a commit", || Ok(store.space.committed(position.lsn.0)?))?;
    store.counters.commits.add(begun.elapsed());
    Ok(frozen)
}

/// The steps of a commit. Returns the position behind it, unless it is only written.
fn write_group(
    store: &Inner,
    group: &mut Group<'_>,
    freeze: bool,
) -> Result<Option<(Position, Option<Frozen>)>> {
    hop!();
    let (data, frozen) = freeze_and_place(store, group, freeze)?;
    let blocks = store.reader.blocks();
    let in_flight = &blocks.in_flight;
    group.write()?;
    // The overwritten blocks.
    let written = blocks.write_out(data)?;
    in_flight.assert_written(data);
    if !group.flush()? {
        return Ok(None);
    }
    in_flight.flushed(written);
    in_flight.assert_durable(data);
    let position = group.mark()?;
    let frozen = frozen.map(|frozen| Frozen { position, ..frozen });
    Ok(Some((position, frozen)))
}

/// Takes the commit point, gives blocks to the dirty pages, writes the data that precedes the
/// frames, and appends the records. Returns all in-flight writes of this commit, and the
/// frozen memtable if it is to be frozen.
fn freeze_and_place(
    store: &Inner,
    group: &mut Group<'_>,
    freeze: bool,
) -> Result<(Ticket, Option<Frozen>)> {
    hop!();
    // Not under the closed barrier, where others would wait for it.
    store.space.ready()?;
    let mark;
    let mut frozen = None;
    let (placed, first, all) = {
        let mut layers = store.reader.freeze_barrier.close();
        // An error since the commit began may have left a change half made.
        store.stop.running()?;
        let cut = group.cut();
        let mut placed = place_dirty(store, &layers, cut)?;
        let (first, all) = placed.publish_overwrites_last(group);
        let max_ino = Ino(store.max_ino.load(Ordering::Relaxed));
        mark = store.high_water.next_mark(max_ino, cut);
        if freeze {
            store.space.begin_checkpoint(cut.0)?;
            let (memtable, next) = (Arc::clone(&layers.active), Arc::new(Memtable::new()));
            memtable.seal();
            layers.change(|layers| {
                layers.active = Arc::clone(&next);
                layers.frozen = Some(Arc::clone(&memtable));
            });
            frozen = Some(Frozen {
                memtable,
                position: Position::default(),
                inodes: store.inodes(),
                last_ino: store.high_water.latest().0,
                data: all,
            });
        }
        (placed, first, all)
    };
    store.stop.progress.step();
    let mut over = Vec::new();
    let blocks = store.reader.blocks();
    let in_flight = &blocks.in_flight;
    if group.frames_come_first() {
        blocks.write_out(first)?;
        in_flight.assert_written(first);
        if first.is_before(all) {
            over = overwrites(in_flight, all);
            group.needs_flush();
        }
        if in_flight.is_unflushed() {
            group.needs_flush();
        }
    } else {
        let written = blocks.write_out(all)?;
        if in_flight.is_unflushed() {
            group.flush_data()?;
        }
        in_flight.flushed(written);
        in_flight.assert_durable(all);
    }
    let maps = placed.maps.iter().copied().map(Record::Map);
    let over = over.iter().map(|(block, from, data)| {
        Record::Overwrite(Overwrite {
            block: *block,
            from: *from,
            data,
        })
    });
    let records: Vec<Record<'_>> = maps.chain(mark.map(Record::Numbers)).chain(over).collect();
    group.append_records(SUBVOLUME, &records)?;
    Ok((all, frozen))
}

/// The in-flight writes of a ticket, as records of the journal: block, offset in it, bytes.
fn overwrites(in_flight: &InFlight, ticket: Ticket) -> Vec<(u64, usize, Vec<u8>)> {
    let mut over = Vec::new();
    in_flight.each(ticket, &mut |in_flight| {
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

/// Allocates blocks for all dirty pages. The barrier is closed.
fn place_dirty<'s>(store: &'s Inner, layers: &Layers, cut: Lsn) -> Result<Placed<'s>> {
    hop!();
    let mut placed = Placed {
        to: &store.reader.blocks().in_flight,
        maps: Vec::new(),
        in_flight: Vec::new(),
    };
    let mut reservation = store.pool.page_reservations.take();
    for ino in layers.active.take_dirty_files() {
        place_file(store, layers, ino, cut, &mut reservation, &mut placed)?;
    }
    // No page is dirty any more.
    drop(reservation);
    Ok(placed)
}

/// Allocates blocks for the dirty pages of one file.
fn place_file(
    store: &Inner,
    layers: &Layers,
    ino: Ino,
    cut: Lsn,
    reservation: &mut Reservation,
    placed: &mut Placed<'_>,
) -> Result<()> {
    hop!();
    let mut shard = layers.active.shard(ino);
    let Some(mut object) = shard.get_mut(ino) else {
        return Ok(());
    };
    let Some(content) = object.content_mut() else {
        return Ok(());
    };
    let before = content.dirty();
    placed.in_flight.reserve(before);
    let mut places = FileAllocator::new(store, ino, reservation);
    let maps = &mut placed.maps;
    let mut mapped = |offset, run: Run| {
        maps.push(Map {
            ino,
            offset,
            start: run.extent.start,
            blocks: run.extent.length,
            generation: run.generation,
            unwritten: false,
        });
    };
    let taken = content.take_dirty(&mut places, &mut mapped, &mut placed.in_flight);
    layers.active.count_dirty(ino, before, content.dirty());
    taken?;
    Ok(store.space.record_all(&places.fresh, cut.0)?)
}

pub(in crate::store) fn extent_of(map: &Map) -> Extent {
    Extent::new(map.start, map.blocks)
}
