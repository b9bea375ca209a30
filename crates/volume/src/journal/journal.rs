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
    /// The last stamp that was given. If one call returned before another began, the second has the greater stamp.
    lsn: Padded<AtomicU64>,
    log_buffers: LogBuffers,
    writer: Mutex<Writer>,
    turn: Mutex<Turn>,
    turned: Condvar,
    /// A stamp; written under `writer`.
    durable: Padded<AtomicU64>,
    /// The stamp of the last cut; written while all lanes are locked.
    last_cut: Padded<AtomicU64>,
    failed: AtomicBool,
    rest: Rest,
}

/// What one commit, cut or trim at a time works on.
#[derive(Debug)]
struct Writer {
    ring: Ring,
    /// Frames that a cut took from their lanes and no commit has written yet.
    waiting: Vec<Frame>,
}

/// Who commits.
#[derive(Debug)]
struct Turn {
    taken: bool,
}

/// What a commit does besides writing the journal.
pub trait BeforeCommit {
    /// Called once in each commit, before anything is written. It takes the commit's cut by
    /// [`Commit::cut`], at a moment of its choice: all batches up to there will be durable with this
    /// commit, and no other. Without a cut of its own, one is taken when it returns.
    ///
    /// Bytes that [`Commit::append_records`] is told about must be written when this returns, and it says so by
    /// [`Commit::tells_of_bytes`]. Those that go over others may come [later](Self::written) if the commit's
    /// [frames come first](Commit::frames_come_first); if they do not, bytes must be [flushed](Commit::flush) when this returns.
    ///
    /// It runs under the journal's own lock: it may append, and must not commit or trim.
    ///
    /// # Errors
    /// They end the commit, which then has had no effect, and the journal with it: what the commit took no later
    /// one could give back.
    fn before(&self, commit: &mut Commit<'_>) -> Result<()>;

    /// The commit's frames are in the device's cache, if they come first: from here on a process that is killed has made it. What
    /// goes over other bytes is written now. Under the journal's own lock, too.
    ///
    /// # Errors
    /// They end the journal.
    fn written(&self) -> Result<()> {
        Ok(())
    }

    /// A flush has ended that began behind [`written`](Self::written), and the journal is about to say so.
    fn flushed(&self) {}

    /// All batches up to the position's stamp are durable now. Once they are in the trees as well, a
    /// replay may begin at the position. Not called where nothing was flushed.
    fn after(&self, position: Position) {
        let _ = position;
    }

    /// The commit came to no end, for this reason (`None`: by a panic), and the journal takes nothing more. Called
    /// before anybody else may commit; must not panic.
    fn failed(&self, reason: Option<&Error>) {
        let _ = reason;
    }
}

/// A commit with nothing to do besides.
impl BeforeCommit for () {
    fn before(&self, _: &mut Commit<'_>) -> Result<()> {
        Ok(())
    }
}

/// A commit that is under way: takes its cut, and the records that belong to it.
#[derive(Debug)]
pub struct Commit<'a> {
    journal: &'a Journal,
    ring: &'a mut Ring,
    waiting: &'a mut Vec<Frame>,
    frames_first: bool,
    /// Must something be flushed before its frames count?
    unflushed: bool,
    /// Blocks of the ring that are kept for its records.
    kept: u64,
    log_buffer: Option<(Lsn, LogBuffer)>,
}

impl Commit<'_> {
    /// Are its frames written before anything is flushed? Then they count as soon as they are in the device's cache, if only
    /// for a process that finds that cache.
    #[must_use]
    pub fn frames_come_first(&self) -> bool {
        self.frames_first
    }

    /// What is written to the device must be durable before the commit is.
    pub fn tells_of_bytes(&mut self) {
        self.unflushed = true;
    }

    /// Makes durable what was written to the device.
    ///
    /// # Errors
    /// The device's. Commits that were only written are taken back then.
    pub fn flush(&mut self) -> Result<()> {
        self.ring.flush()
    }

    /// Keeps room in the ring for records of so many bytes, until they are appended; `false`: that would leave less than half
    /// of it to appends.
    pub fn keep_room(&mut self, bytes: u64) -> bool {
        // Each frame has a header, and each batch an end.
        let blocks = (bytes / BLOCK as u64 + 1) / (FRAME_BLOCKS as u64 - 1) * FRAME_BLOCKS as u64;
        let blocks = blocks + FRAME_BLOCKS as u64;
        let room = &self.journal.supply.room;
        let kept = room.take_of_plenty(blocks, self.journal.capacity);
        self.kept += if kept { blocks } else { 0 };
        kept
    }

    /// Takes the cut: what was appended up to now belongs to this commit, what comes later does not.
    /// Whoever keeps others from appending meanwhile knows exactly what that is. Taken again, it moves.
    pub fn cut(&mut self) -> Lsn {
        let mut own = Vec::new();
        let cut = self.journal.gather(self.waiting);
        if let Some((_, mut log_buffer)) = self.log_buffer.take() {
            log_buffer.empty(&self.journal.supply, &mut own);
            self.waiting.append(&mut own);
        }
        self.log_buffer = Some((cut, LogBuffer::new(COMMIT)));
        cut
    }

    /// Appends one batch with the cut's stamp: it is replayed after all others of this commit.
    ///
    /// # Errors
    /// [`Error::Full`] even with the share that appends leave to commits; [`Error::TooLarge`].
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

    /// Opens the journal as the superblock knows it. What was committed after `position` must be
    /// replayed first: [`Replay::finish`] then gives the journal.
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
            settled,
            head,
            incarnation,
            last,
            owes_mark,
        } = *replayed;
        let room = Room::new(capacity - (head - tail), reserve);
        let mut ring = Ring::new(area, incarnation, tail, settled, head);
        // Who wrote what the mark is about has left a block for it.
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

    /// Has the first append after a [rest](Self::rests) call this, behind its own end. It must not wait.
    pub fn when_roused(&self, rouse: impl Fn() + Send + Sync + 'static) {
        self.rest.ends_by(rouse);
    }

    /// Bytes of memory that hold what was appended and not written, or will.
    pub fn memory(&self) -> u64 {
        self.supply.memory()
    }

    /// Is all that was appended in the device's cache, or `durable`? Then the next append calls what
    /// [`when_roused`](Self::when_roused) gave: a thread that has nothing to do need not look again until then.
    pub fn rests(&self, durable: bool) -> bool {
        self.rest.begin();
        let writer = self.writer.lock();
        let filled = self.log_buffers.with_all(|log_buffers| {
            log_buffers
                .filter(|log_buffer| !log_buffer.is_empty())
                .count()
        });
        // Relaxed: cuts are made under the lock that is held.
        let last = Lsn(self.last_cut.load(Ordering::Relaxed));
        filled == 0 && writer.waiting.is_empty() && (!durable || self.durable() >= last)
    }

    /// Appends one batch, in memory. Batches that change one object must not be appended at the
    /// same time: then they are replayed in the order of the calls, all of a batch or nothing. An
    /// empty batch leaves no trace.
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
            return Ok(self.next_stamp());
        }
        let append = |log_buffer: &mut LogBuffer| -> Result<_> {
            let lsn = self.next_stamp();
            let head = BatchHead { lsn, subvolume };
            Ok((lsn, log_buffer.append(&self.supply, head, records)?))
        };
        let (lsn, took_a_frame) = self.log_buffers.with_own(append)?;
        if took_a_frame {
            self.rest.end();
        }
        Ok(lsn)
    }

    #[inline]
    fn next_stamp(&self) -> Lsn {
        // Relaxed: what orders two calls orders their additions.
        Lsn(self.lsn.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// The stamp of a change of which the journal has nothing: the next cut belongs to a commit that makes it
    /// durable, and no cut up to now does. The caller keeps others from cutting until the change is made.
    #[must_use]
    pub fn before_next_cut(&self) -> Lsn {
        Lsn(self.last_cut.load(Ordering::Relaxed) + 1)
    }

    /// Makes all batches up to `upto` durable, all that were appended so far with `None`. Callers
    /// that come at the same time share one flush.
    ///
    /// # Errors
    /// Those of `hook`, and a device's: after one every call fails with [`Error::Failed`].
    pub fn commit(&self, upto: Option<Lsn>, hook: &dyn BeforeCommit) -> Result<()> {
        let upto = upto.unwrap_or_else(|| self.next_stamp());
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

    /// As [`commit`](Self::commit), of all batches so far, and even if there is nothing to be written.
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

    /// Hands all batches so far to the device, and flushes nothing: they survive the end of this process, but are
    /// [durable](Self::durable) with the next commit only. Where it is not known how long the device's cache lasts,
    /// it does nothing. It waits for no flush: a commit lets others write while it does.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn write(&self, hook: &dyn BeforeCommit) -> Result<()> {
        if !self.can_write() {
            return Ok(());
        }
        self.lead(hook, Mode::Written)
    }

    /// The caller commits; no other thread does until this returns or unwinds.
    fn take_turn(&self, mut turn: MutexGuard<'_, Turn>, hook: &dyn BeforeCommit) -> Result<()> {
        turn.taken = true;
        drop(turn);
        let _taken = Taken(self);
        self.lead(hook, Mode::Flushed)
    }

    /// Commits, or writes. That no other thread commits is up to the caller.
    fn lead(&self, hook: &dyn BeforeCommit, wanted: Mode) -> Result<()> {
        let mut writer = self.writer.lock();
        if self.failed() {
            return Err(Error::Failed);
        }
        // Ends before the lock of the ring does.
        let mut leading = CommitLeader {
            journal: self,
            hook,
            led: None,
        };
        let led = match self.lead_as(wanted, &mut writer, hook) {
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

    /// Writes what there is, and lets it be durable if that is wanted: gives the position behind it then.
    fn lead_as(
        &self,
        wanted: Mode,
        writer: &mut MutexGuard<'_, Writer>,
        hook: &dyn BeforeCommit,
    ) -> Result<Option<Position>> {
        let Writer { ring, waiting } = &mut **writer;
        // What is only written needs a block for the mark that will follow it.
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

    /// Writes a group to the cache, flushes all, and then says in a mark that it is durable; gives its end. Others may write behind
    /// the mark meanwhile.
    fn write_and_mark(
        &self,
        group: &mut [Frame],
        cut: Lsn,
        writer: &mut MutexGuard<'_, Writer>,
        hook: &dyn BeforeCommit,
    ) -> Result<u64> {
        let place = writer.ring.write_and_leave_place(group, cut)?;
        // It has the block that was taken for a mark.
        writer.ring.owes_mark = false;
        hook.written()?;
        self.flush_beside(writer, |ring, flushed| ring.flush_ended(flushed, place))?;
        hook.flushed();
        writer.ring.mark(place, cut)?;
        self.flush_beside(writer, |ring, flushed| ring.marked(flushed, place))?;
        Ok(place + 1)
    }

    /// Writes a group behind which nothing has to be flushed but itself; gives its end. `owed`: there is to be one, even
    /// without frames.
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
            writer.ring.settle(end);
        }
        Ok(end)
    }

    /// Flushes the device, while others may write. `end` is told how that went.
    ///
    /// # Errors
    /// Those of `end`; [`Error::Failed`] if one of the others has failed.
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

    /// Empties all lanes at one moment: no append is under way then, so whatever a batch in
    /// `waiting` depends on is there too.
    fn gather(&self, waiting: &mut Vec<Frame>) -> Lsn {
        self.log_buffers.with_all(|log_buffers| {
            // Greater than the stamp of any batch in a lane, and less than those of later ones.
            let cut = self.next_stamp();
            // Relaxed: whoever keeps others from cutting while he reads it has an order with them.
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

    /// Where a replay may begin once all batches up to the answer's stamp are in the trees,
    /// committed or not: a checkpoint's superblock keeps it. Waits for a commit under way.
    pub fn cut(&self) -> Position {
        let mut writer = self.writer.lock();
        let lsn = self.gather(&mut writer.waiting);
        Position {
            block: writer.ring.head,
            lsn,
            incarnation: writer.ring.incarnation,
        }
    }

    /// Gives back everything before `position`, which a durable superblock keeps: what lies there
    /// or waits to be committed, up to the position's stamp, is durable in the trees.
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
        // Some who wait for their turn may have got what they want.
        drop(self.turn.lock());
        self.turned.notify_all();
    }

    /// Batches up to this stamp survive a crash.
    #[must_use]
    pub fn durable(&self) -> Lsn {
        // Acquire: pairs with the releases above; who sees the stamp sees what `after` did not do.
        Lsn(self.durable.load(Ordering::Acquire))
    }

    /// Is it known which cache holds what was not flushed?
    #[must_use]
    pub fn can_write(&self) -> bool {
        self.writer.lock().ring.can_write()
    }

    /// Did the replay meet frames that were written and not flushed, taken or not? Before anything is built on what it gave,
    /// a [commit](Self::commit_now) says once for all which.
    #[must_use]
    pub fn owes_mark(&self) -> bool {
        self.writer.lock().ring.owes_mark
    }

    /// Did a commit fail?
    #[must_use]
    pub fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Bytes of the ring that are in use or promised, frames not yet filled among them.
    #[must_use]
    pub fn used(&self) -> u64 {
        (self.capacity - self.supply.room.free()) * BLOCK as u64
    }

    /// Bytes of the ring that appends can use: at that much [`used`](Self::used) they fail.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        (self.capacity - self.supply.room.reserve()) * BLOCK as u64
    }
}

/// A commit, or a group that is written.
///
/// *Invariant.* Unless `led` is `Some(Ok(()))` it did not come to its end; then `Journal::failed` is set before the lock of the
/// ring and `Turn::taken` are given back: the next turn must not lead one of its own, which would find nothing of what
/// this one took, and succeed.
struct CommitLeader<'a> {
    journal: &'a Journal,
    hook: &'a dyn BeforeCommit,
    led: Option<Result<()>>,
}

impl Drop for CommitLeader<'_> {
    fn drop(&mut self) {
        if !matches!(self.led, Some(Ok(()))) {
            // Relaxed: others see it under the lock of the ring, or of the turn, which are released behind this.
            self.journal.failed.store(true, Ordering::Relaxed);
            let reason = self.led.as_ref().and_then(|led| led.as_ref().err());
            self.hook.failed(reason);
        }
    }
}

/// The commit leader's turn.
struct Taken<'a>(&'a Journal);

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.turn.lock().taken = false;
        self.0.turned.notify_all();
    }
}
