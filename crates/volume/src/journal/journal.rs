use super::error::{Error, Result};
use super::frame::{FRAME_BLOCKS, Frame};
use super::log_buffer::{COMMIT, LogBuffer, Supply};
use super::log_buffers::LogBuffers;
use super::record::{AsRecord, BatchHead, Record};
use super::region::{Area, BLOCK, Position, Region};
use super::replay::{Replay, Replayed};
use super::rest::Rest;
use super::ring::{Mode, Ring};
use super::room::Room;
use crate::primitive::{AtomicBool, AtomicU64, Condvar, Mutex, MutexGuard, Ordering};
use holdfast_core::store::{Change, Lsn};
use holdfast_device::BlockDevice;
use holdfast_sync::Padded;
use std::mem;
use std::sync::Arc;

/// An open journal. See the module's text.
#[derive(Debug)]
pub struct Journal {
    capacity: u64,
    supply: Supply,
    /// The last LSN given. If one call returned before another began, the second gets the greater
    /// one.
    lsn: Padded<AtomicU64>,
    log_buffers: LogBuffers,
    writer: Mutex<Writer>,
    turn: Mutex<Turn>,
    turned: Condvar,
    /// An LSN; written under `writer`.
    durable: Padded<AtomicU64>,
    /// The LSN of the last cut; written while all log buffers are locked.
    last_cut: Padded<AtomicU64>,
    failed: AtomicBool,
    rest: Rest,
}

/// State of the ring, for one commit, cut or trim at a time.
#[derive(Debug)]
struct Writer {
    ring: Ring,
    /// Frames that a cut took from their log buffers and no commit has written yet.
    waiting: Vec<Frame>,
}

/// Whether a thread is the commit leader.
#[derive(Debug)]
struct Turn {
    taken: bool,
}

/// The work of a commit besides writing the journal.
pub trait BeforeCommit {
    /// Called once in each commit, before anything is written. It calls [`Commit::cut`] at a moment
    /// of its choice: this commit makes all batches up to the cut durable, and no others. If it
    /// takes no cut, the commit takes one when it returns.
    /// Blocks that the records of [`Commit::append_records`] map must be written when this returns,
    /// and [`Commit::needs_flush`] called. Overwritten blocks may be written
    /// [later](Self::written) if the [frames are written first](Commit::frames_come_first). If not,
    /// they must be [flushed](Commit::flush) when this returns.
    /// [flushed](Commit::flush) when this returns.
    ///
    /// Runs under the journal's lock: it may append, and must not commit or trim.
    ///
    /// # Errors
    /// They end the commit, which then has had no effect, and the journal: no later commit could
    /// give back the frames that this one took.
    fn before(&self, commit: &mut Commit<'_>) -> Result<()>;

    /// If the frames are written first, they are in the device's cache now, and the commit survives
    /// a kill of this process. Writes the overwritten blocks. Runs under the journal's lock.
    ///
    /// # Errors
    /// They end the journal.
    fn written(&self) -> Result<()> {
        Ok(())
    }

    /// Called when a flush that began after [`written`](Self::written) has ended, before the
    /// journal records it.
    fn flushed(&self) {}

    /// All batches up to the position's LSN are durable now. Once they are in the trees as well, a
    /// replay may begin at the position. Not called if nothing was flushed.
    fn after(&self, position: Position) {
        let _ = position;
    }

    /// The commit failed for this reason (`None`: by a panic), and the journal takes nothing more.
    /// Called before another thread may commit; must not panic.
    fn failed(&self, reason: Option<&Error>) {
        let _ = reason;
    }
}

/// A commit without other work.
impl BeforeCommit for () {
    fn before(&self, _: &mut Commit<'_>) -> Result<()> {
        Ok(())
    }
}

/// A commit in progress: takes its cut, and the records that belong to it.
#[derive(Debug)]
pub struct Commit<'a> {
    journal: &'a Journal,
    ring: &'a mut Ring,
    waiting: &'a mut Vec<Frame>,
    frames_first: bool,
    /// Must a flush precede its frames?
    unflushed: bool,
    /// Blocks of the ring reserved for its records.
    kept: u64,
    log_buffer: Option<(Lsn, LogBuffer)>,
}

impl Commit<'_> {
    /// Are its frames written before anything is flushed? They then count as soon as they are in
    /// the device's cache, for a replay that finds the same cache.
    #[must_use]
    pub fn frames_come_first(&self) -> bool {
        self.frames_first
    }

    /// Blocks written to the device must be durable before the commit is.
    pub fn needs_flush(&mut self) {
        self.unflushed = true;
    }

    /// Makes everything durable that was written to the device.
    ///
    /// # Errors
    /// The device's. Commits that were written without a flush are then revoked.
    pub fn flush(&mut self) -> Result<()> {
        self.ring.flush()
    }

    /// Reserves room in the ring for records of so many bytes, until they are appended. `false` if
    /// that would leave less than half of the ring to appends.
    pub fn keep_room(&mut self, bytes: u64) -> bool {
        // Each frame has a header, and each batch an end.
        let blocks = (bytes / BLOCK as u64 + 1) / (FRAME_BLOCKS as u64 - 1) * FRAME_BLOCKS as u64;
        let blocks = blocks + FRAME_BLOCKS as u64;
        let room = &self.journal.supply.room;
        let kept = room.take_of_plenty(blocks, self.journal.capacity);
        self.kept += if kept { blocks } else { 0 };
        kept
    }

    /// Takes the cut: batches appended before it belong to this commit, later ones do not. A caller
    /// that excludes appends knows exactly which. A second call moves the cut.
    pub fn cut(&mut self) -> Lsn {
        let mut own = Vec::new();
        let cut = self.journal.collect_frames(self.waiting);
        if let Some((_, mut log_buffer)) = self.log_buffer.take() {
            log_buffer.empty(&self.journal.supply, &mut own);
            self.waiting.append(&mut own);
        }
        self.log_buffer = Some((cut, LogBuffer::new(COMMIT)));
        cut
    }

    /// Appends one batch with the cut's LSN: it is replayed after all others of this commit.
    ///
    /// # Errors
    /// [`Error::Full`] even with the share that is reserved for commits; [`Error::TooLarge`].
    pub fn append_records(&mut self, subvolume: u64, records: &[Record<'_>]) -> Result<()> {
        self.journal.supply.room.give(mem::take(&mut self.kept));
        if records.is_empty() {
            return Ok(());
        }
        if self.log_buffer.is_none() {
            self.cut();
        }
        if let Some((cut, log_buffer)) = &mut self.log_buffer {
            let head = BatchHead {
                lsn: *cut,
                subvolume,
            };
            log_buffer.append(&self.journal.supply, head, records)?;
        }
        Ok(())
    }

    /// The cut, and the frames of the records that belong to it.
    fn finish(mut self) -> (Lsn, Vec<Frame>) {
        self.journal.supply.room.give(self.kept);
        if self.log_buffer.is_none() {
            self.cut();
        }
        let mut own = Vec::new();
        let (cut, log_buffer) = self.log_buffer.as_mut().expect("taken above");
        log_buffer.empty(&self.journal.supply, &mut own);
        (*cut, own)
    }
}

impl Journal {
    /// Writes zeros to the whole region, as mkfs must. The journal begins at the default position.
    ///
    /// # Errors
    /// [`Error::Region`], or the device's.
    pub fn format(device: Arc<dyn BlockDevice>, region: Region) -> Result<()> {
        Area::new(device, region)?.clear()
    }

    /// Opens the journal at the superblock's `position`. Batches committed after it must be
    /// replayed first: [`Replay::finish`] then returns the journal.
    ///
    /// # Errors
    /// [`Error::Region`].
    pub fn open(
        device: Arc<dyn BlockDevice>,
        region: Region,
        position: Position,
    ) -> Result<Replay> {
        Ok(Replay::new(Area::new(device, region)?, position))
    }

    /// A journal after a replay.
    pub(super) fn new(area: Area, replayed: &Replayed) -> Self {
        let capacity = area.region.blocks;
        let reserve = capacity / 8;
        let most = capacity - reserve;
        let Replayed {
            tail,
            durable_end,
            head,
            incarnation,
            last,
            owes_mark,
        } = *replayed;
        let room = Room::new(capacity - (head - tail), reserve);
        let mut ring = Ring::new(area, incarnation, tail, durable_end, head);
        // The writer of those frames reserved a block for the mark.
        ring.owes_mark = owes_mark && room.take_reserved(1);
        Self {
            capacity,
            supply: Supply::new(room, most),
            lsn: Padded(AtomicU64::new(last.0)),
            log_buffers: LogBuffers::new(capacity),
            writer: Mutex::new(Writer {
                ring,
                waiting: Vec::new(),
            }),
            turn: Mutex::new(Turn { taken: false }),
            turned: Condvar::new(),
            durable: Padded(AtomicU64::new(last.0)),
            last_cut: Padded(AtomicU64::new(last.0)),
            failed: AtomicBool::new(false),
            rest: Rest::new(),
        }
    }

    /// Sets the callback that the first append after [`rests`](Self::rests) runs at its end. It
    /// must not wait.
    pub fn when_roused(&self, rouse: impl Fn() + Send + Sync + 'static) {
        self.rest.on_end(rouse);
    }

    /// Bytes of memory that all log buffers take, spare ones included.
    pub fn memory(&self) -> u64 {
        self.supply.memory()
    }

    /// Is everything that was appended in the device's cache, or with `durable` on stable storage?
    /// The next append then calls the callback of [`when_roused`](Self::when_roused), so an idle
    /// thread need not poll.
    pub fn rests(&self, durable: bool) -> bool {
        self.rest.begin();
        let writer = self.writer.lock();
        let filled = self.log_buffers.with_all(|log_buffers| {
            log_buffers
                .filter(|log_buffer| !log_buffer.is_empty())
                .count()
        });
        // Relaxed: cuts are made under the lock held here.
        let last = Lsn(self.last_cut.load(Ordering::Relaxed));
        filled == 0 && writer.waiting.is_empty() && (!durable || self.durable() >= last)
    }

    /// Appends one batch, in memory. Callers exclude appends that change the same object; these are
    /// then replayed in the order of the calls. A batch is replayed whole or not at all. An empty
    /// one leaves no trace.
    ///
    /// # Errors
    /// [`Error::Full`]: nothing happened; checkpoint, [`trim`](Self::trim), try again.
    /// [`Error::TooLarge`], [`Error::Failed`].
    pub fn append(&self, subvolume: u64, batch: &[Change<'_>]) -> Result<Lsn> {
        self.append_any(subvolume, batch)
    }

    /// As [`append`](Self::append), for records.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn append_records(&self, subvolume: u64, records: &[Record<'_>]) -> Result<Lsn> {
        self.append_any(subvolume, records)
    }

    #[inline]
    fn append_any<R: AsRecord>(&self, subvolume: u64, records: &[R]) -> Result<Lsn> {
        if self.failed() {
            return Err(Error::Failed);
        }
        if records.is_empty() {
            return Ok(self.next_lsn());
        }
        let append = |log_buffer: &mut LogBuffer| -> Result<_> {
            let lsn = self.next_lsn();
            let head = BatchHead { lsn, subvolume };
            Ok((lsn, log_buffer.append(&self.supply, head, records)?))
        };
        let (lsn, took_a_frame) = self.log_buffers.with_own(append)?;
        if took_a_frame {
            self.rest.end();
        }
        Ok(lsn)
    }

    fn next_lsn(&self) -> Lsn {
        // Relaxed: if two calls are ordered by anything, so are their additions.
        Lsn(self.lsn.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// The LSN of a change that the journal does not record: the next cut's commit makes it
    /// durable, and no earlier one does. The caller excludes cuts until the change is made.
    #[must_use]
    pub fn before_next_cut(&self) -> Lsn {
        Lsn(self.last_cut.load(Ordering::Relaxed) + 1)
    }

    /// Makes all batches up to `upto` durable; with `None`, all that were appended so far.
    /// Concurrent callers share one flush.
    ///
    /// # Errors
    /// Those of `hook`, and the device's: after one, every call fails with [`Error::Failed`].
    pub fn commit(&self, upto: Option<Lsn>, hook: &dyn BeforeCommit) -> Result<()> {
        let upto = upto.unwrap_or_else(|| self.next_lsn());
        if self.durable() >= upto {
            return Ok(());
        }
        let mut turn = self.turn.lock();
        loop {
            if self.durable() >= upto {
                return Ok(());
            }
            if self.failed() {
                return Err(Error::Failed);
            }
            if !turn.taken {
                break;
            }
            self.turned.wait(&mut turn);
        }
        self.take_turn(turn, hook)
    }

    /// Like [`commit`](Self::commit), for all batches so far, even if there is nothing to write.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_now(&self, hook: &dyn BeforeCommit) -> Result<()> {
        let mut turn = self.turn.lock();
        while turn.taken {
            self.turned.wait(&mut turn);
        }
        self.take_turn(turn, hook)
    }

    /// Writes all batches so far to the device without a flush: they survive the end of this
    /// process, but are [durable](Self::durable) only with the next commit. Does nothing where the
    /// device's cache has no known identity. Waits for no flush: a commit unlocks `writer` during
    /// its flush.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn write(&self, hook: &dyn BeforeCommit) -> Result<()> {
        if !self.can_write() {
            return Ok(());
        }
        self.lead(hook, Mode::Written)
    }

    /// Makes the caller the commit leader until this returns or unwinds.
    fn take_turn(&self, mut turn: MutexGuard<'_, Turn>, hook: &dyn BeforeCommit) -> Result<()> {
        turn.taken = true;
        drop(turn);
        let _taken = Taken(self);
        self.lead(hook, Mode::Flushed)
    }

    /// Commits, or only writes. The caller ensures that no other thread commits.
    fn lead(&self, hook: &dyn BeforeCommit, wanted: Mode) -> Result<()> {
        let mut writer = self.writer.lock();
        if self.failed() {
            return Err(Error::Failed);
        }
        // Dropped before the lock of the ring is released.
        let mut leading = CommitLeader {
            journal: self,
            hook,
            led: None,
        };
        let led = match self.commit_group(wanted, &mut writer, hook) {
            Ok(Some(position)) => {
                drop(writer);
                hook.after(position);
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        leading.led.insert(led).clone()
    }

    /// Writes the group, and makes it durable for [`Mode::Flushed`]: then returns the position
    /// behind it.
    fn commit_group(
        &self,
        wanted: Mode,
        writer: &mut MutexGuard<'_, Writer>,
        hook: &dyn BeforeCommit,
    ) -> Result<Option<Position>> {
        let Writer { ring, waiting } = &mut **writer;
        // A group that is only written needs a block for the mark that will follow it.
        let owed = ring.owes_mark;
        if ring.can_write() && !owed {
            ring.owes_mark = self.supply.room.take_reserved(1);
        }
        let frames_first = ring.can_write() && ring.owes_mark;
        let mut commit = Commit {
            journal: self,
            ring,
            waiting,
            frames_first,
            unflushed: false,
            kept: 0,
            log_buffer: None,
        };
        hook.before(&mut commit)?;
        let unflushed = commit.unflushed;
        let (cut, mut own) = commit.finish();
        let mut group = mem::take(waiting);
        group.append(&mut own);
        if frames_first && wanted == Mode::Written {
            let before = ring.head;
            ring.write(&mut group, Mode::Written)?;
            hook.written()?;
            if !owed && ring.head == before {
                ring.owes_mark = false;
                self.supply.room.give(1);
            }
            self.supply.recycle(group);
            return Ok(None);
        }
        let end = match frames_first && (unflushed || ring.is_unflushed()) {
            true => self.write_and_mark(&mut group, cut, writer, hook)?,
            false => self.write_flushed(&mut group, cut, owed, writer, hook)?,
        };
        self.supply.recycle(group);
        self.durable.fetch_max(cut.0, Ordering::Release);
        Ok(Some(Position {
            block: end,
            lsn: cut,
            incarnation: writer.ring.incarnation,
        }))
    }

    /// Writes a group to the cache, flushes, and then writes a mark that says it is durable.
    /// Returns the end. Other threads may write behind the mark during the flushes.
    fn write_and_mark(
        &self,
        group: &mut [Frame],
        cut: Lsn,
        writer: &mut MutexGuard<'_, Writer>,
        hook: &dyn BeforeCommit,
    ) -> Result<u64> {
        let place = writer.ring.write_and_leave_place(group, cut)?;
        // The block reserved for a mark is used here.
        writer.ring.owes_mark = false;
        hook.written()?;
        self.flush_beside(writer, |ring, flushed| ring.flush_ended(flushed, place))?;
        hook.flushed();
        writer.ring.mark(place, cut)?;
        self.flush_beside(writer, |ring, flushed| ring.marked(flushed, place))?;
        Ok(place + 1)
    }

    /// Writes a group without anything else to flush before it; returns its end. With `owed`, an
    /// empty group is written as well.
    fn write_flushed(
        &self,
        group: &mut Vec<Frame>,
        cut: Lsn,
        owed: bool,
        writer: &mut MutexGuard<'_, Writer>,
        hook: &dyn BeforeCommit,
    ) -> Result<u64> {
        let ring = &mut writer.ring;
        if owed && group.is_empty() {
            group.push(Frame::new(self.supply.buffer(1), COMMIT, cut));
        } else if ring.owes_mark {
            self.supply.room.give(1);
        }
        ring.owes_mark = false;
        hook.written()?;
        hook.flushed();
        ring.write(group, Mode::Flushed)?;
        let end = ring.head;
        if !group.is_empty() {
            self.flush_beside(writer, |ring, flushed| ring.flush_ended(flushed, end))?;
            writer.ring.set_durable(end);
        }
        Ok(end)
    }

    /// Flushes the device with `writer` unlocked. `end` gets the result.
    ///
    /// # Errors
    /// Those of `end`; [`Error::Failed`] if another thread failed meanwhile.
    fn flush_beside(
        &self,
        writer: &mut MutexGuard<'_, Writer>,
        end: impl FnOnce(&mut Ring, Result<()>) -> Result<()>,
    ) -> Result<()> {
        let area = writer.ring.area();
        let flushed = MutexGuard::unlocked(writer, || area.flush());
        end(&mut writer.ring, flushed)?;
        match self.failed() {
            true => Err(Error::Failed),
            false => Ok(()),
        }
    }

    /// Empties all log buffers at one moment: no append is in progress, so every batch on which a
    /// batch in `waiting` depends is there too.
    fn collect_frames(&self, waiting: &mut Vec<Frame>) -> Lsn {
        self.log_buffers.with_all(|log_buffers| {
            // Greater than the LSN of any batch in a buffer, and less than those of later ones.
            let cut = self.next_lsn();
            // Relaxed: readers exclude cuts.
            self.last_cut.store(cut.0, Ordering::Relaxed);
            for log_buffer in log_buffers {
                log_buffer.empty(&self.supply, waiting);
            }
            cut
        })
    }

    fn drop_frames(&self, frames: Vec<Frame>) {
        let blocks = frames.iter().map(Frame::blocks).sum();
        self.supply.room.give(blocks);
        self.supply.recycle(frames);
    }

    /// The position at which a replay may begin once all batches up to its LSN are in the trees,
    /// committed or not: for a checkpoint's superblock. Waits for a commit in progress.
    pub fn cut(&self) -> Position {
        let mut writer = self.writer.lock();
        let lsn = self.collect_frames(&mut writer.waiting);
        Position {
            block: writer.ring.head,
            lsn,
            incarnation: writer.ring.incarnation,
        }
    }

    /// Frees everything before `position`, which a durable superblock holds: the trees then have
    /// all batches up to its LSN, those in the ring and those that wait for a commit.
    ///
    /// # Panics
    /// If the journal never reached the position.
    pub fn trim(&self, position: Position) {
        let mut writer = self.writer.lock();
        assert!(
            position.block <= writer.ring.head,
            "a position of this journal"
        );
        let folded = |frame: &mut Frame| frame.last <= position.lsn;
        let folded = writer.waiting.extract_if(.., folded).collect();
        self.drop_frames(folded);
        let freed = position.block.saturating_sub(writer.ring.tail);
        writer.ring.trim(position.block);
        self.supply.room.give(freed);
        self.durable.fetch_max(position.lsn.0, Ordering::Release);
        drop(writer);
        // Waiters for the turn may find their LSN durable now.
        drop(self.turn.lock());
        self.turned.notify_all();
    }

    /// Batches up to this LSN survive a crash.
    #[must_use]
    pub fn durable(&self) -> Lsn {
        // Acquire: pairs with the releases above. A thread that sees the LSN sees the effects
        // before it, but not those of `after`.
        Lsn(self.durable.load(Ordering::Acquire))
    }

    /// Has the device's cache a known identity?
    #[must_use]
    pub fn can_write(&self) -> bool {
        self.writer.lock().ring.can_write()
    }

    /// Did the replay find frames that were written and not flushed, taken or not? Before anything
    /// is built on the replayed state, a [commit](Self::commit_now) records which of them count.
    #[must_use]
    pub fn owes_mark(&self) -> bool {
        self.writer.lock().ring.owes_mark
    }

    /// Did a commit fail?
    #[must_use]
    pub fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Bytes of the ring that are in use or reserved, including frames that are not full.
    #[must_use]
    pub fn used(&self) -> u64 {
        (self.capacity - self.supply.room.free()) * BLOCK as u64
    }

    /// Bytes of the ring that appends can use: they fail when [`used`](Self::used) reaches it.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        (self.capacity - self.supply.room.reserve()) * BLOCK as u64
    }
}

/// A commit, or a group that is written.
///
/// *Invariant.* Unless `led == Some(Ok(()))`, `Journal::failed` is set before `writer` and
/// `Turn::taken` are released. Otherwise the next leader would find none of the frames that this
/// one took, and succeed.
struct CommitLeader<'a> {
    journal: &'a Journal,
    hook: &'a dyn BeforeCommit,
    led: Option<Result<()>>,
}

impl Drop for CommitLeader<'_> {
    fn drop(&mut self) {
        if !matches!(self.led, Some(Ok(()))) {
            // Relaxed: other threads read it under `writer` or `turn`, released after this.
            self.journal.failed.store(true, Ordering::Relaxed);
            let reason = self.led.as_ref().and_then(|led| led.as_ref().err());
            self.hook.failed(reason);
        }
    }
}

/// The commit leader's turn; ends when dropped.
struct Taken<'a>(&'a Journal);

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.turn.lock().taken = false;
        self.0.turned.notify_all();
    }
}
