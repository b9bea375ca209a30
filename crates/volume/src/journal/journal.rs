use super::error::{Error, Result};
use super::frame::Frame;
use super::lane::{COMMIT, Lane, Supply};
use super::lanes::Lanes;
use super::record::{AsRecord, Record};
use super::region::{Area, BLOCK, Position, Region};
use super::replay::{Replay, Replayed};
use super::ring::{Mode, Ring};
use super::room::Room;
use super::stamps::Stamps;
use crate::journal_primitive::{AtomicBool, AtomicU64, Condvar, Mutex, Ordering};
use holdfast_core::store::{Change, Stamp};
use holdfast_device::BlockDevice;
use holdfast_sync::Padded;
use std::sync::Arc;

/// An open journal. See the module's text.
#[derive(Debug)]
pub struct Journal {
    capacity: u64,
    supply: Supply,
    stamps: Stamps,
    lanes: Lanes,
    writer: Mutex<Writer>,
    turn: Mutex<Turn>,
    turned: Condvar,
    /// A stamp; written under `writer`.
    durable: Padded<AtomicU64>,
    /// The stamp of the last cut; written while all lanes are locked.
    last_cut: Padded<AtomicU64>,
    failed: AtomicBool,
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
    /// commit, and no other. Bytes that [`Commit::append_records`] is told about must be written when
    /// this returns, and [flushed](Commit::flush) if the commit [is](Commit::is_flushed). Without a cut of
    /// its own, one is taken when it returns.
    ///
    /// It runs under the journal's own lock: it may append, and must not commit or trim.
    ///
    /// # Errors
    /// They end the commit, which then has had no effect, and the journal with it: what the commit took no later
    /// one could give back.
    fn before(&self, commit: &mut Commit<'_>) -> Result<()>;

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
    mode: Mode,
    lane: Option<(Stamp, Lane)>,
}

impl Commit<'_> {
    /// Will its batches be durable?
    #[must_use]
    pub fn is_flushed(&self) -> bool {
        self.mode == Mode::Flushed
    }

    /// Makes durable what was written to the device.
    ///
    /// # Errors
    /// The device's. Commits that were only written are taken back then.
    pub fn flush(&mut self) -> Result<()> {
        self.ring.flush()
    }

    /// Takes the cut: what was appended up to now belongs to this commit, what comes later does not.
    /// Whoever keeps others from appending meanwhile knows exactly what that is. Taken again, it moves.
    pub fn cut(&mut self) -> Stamp {
        let mut own = Vec::new();
        let cut = self.journal.gather(self.waiting);
        if let Some((_, mut lane)) = self.lane.take() {
            lane.empty(&self.journal.supply, cut, &mut own);
            self.waiting.append(&mut own);
        }
        self.lane = Some((cut, Lane::new(COMMIT, Stamp(cut.0 - 1))));
        cut
    }

    /// Appends one batch with the cut's stamp: it is replayed after all others of this commit.
    ///
    /// # Errors
    /// [`Error::Full`] even with the share that appends leave to commits; [`Error::TooLarge`].
    pub fn append_records(&mut self, realm: u64, records: &[Record<'_>]) -> Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        if self.lane.is_none() {
            self.cut();
        }
        if let Some((cut, lane)) = &mut self.lane {
            let cut = *cut;
            lane.append(&self.journal.supply, |_, _| cut, realm, records)?;
        }
        Ok(())
    }

    /// The cut, and the frames of the records that belong to it.
    fn finish(mut self) -> (Stamp, Vec<Frame>) {
        if self.lane.is_none() {
            self.cut();
        }
        let mut own = Vec::new();
        let (cut, lane) = self.lane.as_mut().expect("taken above");
        lane.empty(&self.journal.supply, *cut, &mut own);
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
            life,
            last,
            owes_mark,
        } = *replayed;
        let room = Room::new(capacity - (head - tail), reserve);
        let mut ring = Ring::new(area, life, tail, settled, head);
        // Who wrote what the mark is about has left a block for it.
        ring.owes_mark = owes_mark && room.take_reserved(1);
        Self {
            capacity,
            supply: Supply::new(room, most),
            stamps: Stamps::after(last),
            lanes: Lanes::new(capacity, last),
            writer: Mutex::new(Writer {
                ring,
                waiting: Vec::new(),
            }),
            turn: Mutex::new(Turn { taken: false }),
            turned: Condvar::new(),
            durable: Padded(AtomicU64::new(last.0)),
            last_cut: Padded(AtomicU64::new(last.0)),
            failed: AtomicBool::new(false),
        }
    }

    /// Appends one batch, in memory. Batches that change one object must not be appended at the
    /// same time: then they are replayed in the order of the calls, all of a batch or nothing. An
    /// empty batch leaves no trace.
    ///
    /// # Errors
    /// [`Error::Full`]: nothing happened; checkpoint, [`trim`](Self::trim), try again.
    /// [`Error::TooLarge`], [`Error::Failed`].
    pub fn append(&self, realm: u64, batch: &[Change<'_>]) -> Result<Stamp> {
        self.append_any(realm, batch)
    }

    /// As [`append`](Self::append), for records.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn append_records(&self, realm: u64, records: &[Record<'_>]) -> Result<Stamp> {
        self.append_any(realm, records)
    }

    #[inline]
    fn append_any<R: AsRecord>(&self, realm: u64, records: &[R]) -> Result<Stamp> {
        if self.failed() {
            return Err(Error::Failed);
        }
        if records.is_empty() {
            return Ok(self.stamps.next());
        }
        let now = |lane, last| self.stamps.next_of(lane, last);
        let append = |lane: &mut Lane| -> Result<_> {
            let stamp = lane.append(&self.supply, now, realm, records)?;
            Ok((stamp, lane.filled_since()))
        };
        let (stamp, filled) = self.lanes.with_own(append)?;
        if let Some((lane, since)) = filled {
            self.look_for_others(lane, since);
        }
        Ok(stamp)
    }

    /// The stamp of a change of which the journal has nothing: the next cut belongs to a commit that makes it
    /// durable, and no cut up to now does. The caller keeps others from cutting until the change is made. It
    /// takes no look at the clock.
    #[must_use]
    pub fn before_next_cut(&self) -> Stamp {
        Stamp(self.last_cut.load(Ordering::Relaxed) + 1)
    }

    /// Lets this lane, the calling thread's, count its stamps again, if no other has appended since then.
    #[cold]
    fn look_for_others(&self, own: u16, since: Stamp) {
        if !self.stamps.may_be_alone_again(own) {
            return;
        }
        self.lanes.with_all(|lanes| {
            let mut others = lanes.filter(|lane| lane.number() != own);
            if others.all(|lane| lane.is_idle_since(since)) {
                self.stamps.begin_anew();
            }
        });
    }

    /// Makes all batches up to `upto` durable, all that were appended so far with `None`. Callers
    /// that come at the same time share one flush.
    ///
    /// # Errors
    /// Those of `hook`, and a device's: after one every call fails with [`Error::Failed`].
    pub fn commit(&self, upto: Option<Stamp>, hook: &dyn BeforeCommit) -> Result<()> {
        let upto = upto.unwrap_or_else(|| self.stamps.next());
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
        turn.taken = true;
        drop(turn);
        self.take_turn(hook, Mode::Flushed)
    }

    /// As [`commit`](Self::commit), of all batches so far, and even if there is nothing to be written.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_now(&self, hook: &dyn BeforeCommit) -> Result<()> {
        self.wait_for_turn(hook, Mode::Flushed)
    }

    /// Hands all batches so far to the device, and flushes nothing: they survive the end of this process, but are
    /// [durable](Self::durable) with the next commit only. Where it is not known how long the device's cache lasts,
    /// it does nothing.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn write(&self, hook: &dyn BeforeCommit) -> Result<()> {
        if !self.can_write() {
            return Ok(());
        }
        self.wait_for_turn(hook, Mode::Written)
    }

    fn wait_for_turn(&self, hook: &dyn BeforeCommit, mode: Mode) -> Result<()> {
        let mut turn = self.turn.lock();
        while turn.taken {
            self.turned.wait(&mut turn);
        }
        if self.failed() {
            return Err(Error::Failed);
        }
        turn.taken = true;
        drop(turn);
        self.take_turn(hook, mode)
    }

    /// The caller commits; nobody else does until this returns or unwinds.
    fn take_turn(&self, hook: &dyn BeforeCommit, mode: Mode) -> Result<()> {
        let mut leading = Leading {
            journal: self,
            hook,
            led: None,
        };
        leading.led.insert(self.lead(hook, mode)).clone()
    }

    fn lead(&self, hook: &dyn BeforeCommit, wanted: Mode) -> Result<()> {
        let mut writer = self.writer.lock();
        let Writer { ring, waiting } = &mut *writer;
        // What is only written needs a block for the mark that will follow it.
        let owed = ring.owes_mark;
        ring.owes_mark |= wanted == Mode::Written && self.supply.room.take_reserved(1);
        let mode = match ring.owes_mark {
            true => wanted,
            false => Mode::Flushed,
        };
        let led = self.lead_as(mode, ring, waiting, hook);
        if !owed && ring.owes_mark && !ring.is_unsettled() {
            ring.owes_mark = false;
            self.supply.room.give(1);
        }
        let (cut, group) = led?;
        let position = Position {
            block: ring.head,
            stamp: cut,
            life: ring.life,
        };
        if mode == Mode::Flushed {
            self.durable.fetch_max(cut.0, Ordering::Release);
        }
        drop(writer);
        self.supply.recycle(group);
        if mode == Mode::Flushed {
            hook.after(position);
        }
        Ok(())
    }

    /// Writes what there is; gives the cut, and the frames.
    fn lead_as(
        &self,
        mode: Mode,
        ring: &mut Ring,
        waiting: &mut Vec<Frame>,
        hook: &dyn BeforeCommit,
    ) -> Result<(Stamp, Vec<Frame>)> {
        let mut commit = Commit {
            journal: self,
            ring,
            waiting,
            mode,
            lane: None,
        };
        hook.before(&mut commit)?;
        let (cut, mut own) = commit.finish();
        let mut group = std::mem::take(waiting);
        group.append(&mut own);
        if mode == Mode::Flushed && std::mem::take(&mut ring.owes_mark) {
            if group.is_empty() {
                group.push(Frame::new(Vec::new(), COMMIT, cut));
            } else {
                self.supply.room.give(1);
            }
        }
        ring.write(&mut group, mode)?;
        Ok((cut, group))
    }

    /// Empties all lanes at one moment: no append is under way then, so whatever a batch in
    /// `waiting` depends on is there too.
    fn gather(&self, waiting: &mut Vec<Frame>) -> Stamp {
        self.lanes.with_all(|lanes| {
            let cut = self.stamps.cut();
            // Relaxed: whoever keeps others from cutting while he reads it has an order with them.
            self.last_cut.store(cut.0, Ordering::Relaxed);
            for lane in lanes {
                lane.empty(&self.supply, cut, waiting);
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
        let stamp = self.gather(&mut writer.waiting);
        Position {
            block: writer.ring.head,
            stamp,
            life: writer.ring.life,
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
        let folded = |frame: &mut Frame| frame.last <= position.stamp;
        let folded = writer.waiting.extract_if(.., folded).collect();
        self.drop_frames(folded);
        let freed = position.block.saturating_sub(writer.ring.tail);
        writer.ring.trim(position.block);
        self.supply.room.give(freed);
        self.durable.fetch_max(position.stamp.0, Ordering::Release);
        drop(writer);
        // Some who wait for their turn may have got what they want.
        drop(self.turn.lock());
        self.turned.notify_all();
    }

    /// Batches up to this stamp survive a crash.
    #[must_use]
    pub fn durable(&self) -> Stamp {
        // Acquire: pairs with the releases above; who sees the stamp sees what `after` did not do.
        Stamp(self.durable.load(Ordering::Acquire))
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

/// The commit leader's turn.
///
/// *Invariant.* Unless `led` is `Some(Ok(()))` the commit did not come to its end; then `Journal::failed` is set before
/// `Turn::taken` is given back: the waiters of a commit that failed must not lead one of their own, which would
/// find nothing of what this one took, and succeed.
struct Leading<'a> {
    journal: &'a Journal,
    hook: &'a dyn BeforeCommit,
    led: Option<Result<()>>,
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        if !matches!(self.led, Some(Ok(()))) {
            // Relaxed: waiters see it under the lock of the turn, which is released below.
            self.journal.failed.store(true, Ordering::Relaxed);
            let reason = self.led.as_ref().and_then(|led| led.as_ref().err());
            self.hook.failed(reason);
        }
        self.journal.turn.lock().taken = false;
        self.journal.turned.notify_all();
    }
}
