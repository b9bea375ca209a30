use super::error::{Error, Result};
use super::frame::Frame;
use super::log_buffer::{LogBuffer, Supply};
use super::log_buffers::LogBuffers;
use super::record::{AsRecord, BatchHead};
use super::region::{Area, BLOCK, Position, Region};
use super::rest::Rest;
use super::ring::Ring;
use super::room::Room;
use crate::primitive::{AtomicBool, AtomicU64, Condvar, Mutex, Ordering};
use holdfast_core::store::Lsn;
use holdfast_device::BlockDevice;
use holdfast_sync::Padded;
use std::sync::Arc;

/// An open journal. See the module's text.
#[derive(Debug)]
pub struct Journal {
    pub(super) capacity: u64,
    pub(super) supply: Supply,
    /// The last LSN given. If one call returned before another began, the second gets the greater
    /// one.
    lsn: Padded<AtomicU64>,
    log_buffers: LogBuffers,
    pub(super) writer: Mutex<Writer>,
    turn: Mutex<Turn>,
    turned: Condvar,
    /// An LSN; written under `writer`.
    pub(super) durable: Padded<AtomicU64>,
    /// The LSN of the last cut; written while all log buffers are locked.
    last_cut: Padded<AtomicU64>,
    pub(super) failed: AtomicBool,
    rest: Rest,
}

/// The state of a replayed journal that is opened for appends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Replayed {
    /// Where the replay began.
    pub(super) tail: u64,
    /// Frames before this are durable.
    pub(super) durable_end: u64,
    /// Where it ended.
    pub(super) head: u64,
    /// An incarnation later than any that was found.
    pub(super) incarnation: u64,
    /// The last LSN.
    pub(super) last: Lsn,
    /// Were there frames behind `durable_end` that were written and not flushed?
    pub(super) owes_mark: bool,
}

/// State of the ring, for one commit, cut or trim at a time.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) ring: Ring,
    /// Frames that a cut took from their log buffers and no commit has written yet.
    pub(super) waiting: Vec<Frame>,
}

/// Whether a thread is the commit leader.
#[derive(Debug)]
struct Turn {
    taken: bool,
}

/// The commit leader's turn; ends when dropped.
#[derive(Debug)]
#[must_use]
pub struct CommitTurn<'a>(&'a Journal);

impl Drop for CommitTurn<'_> {
    fn drop(&mut self) {
        self.0.turn.lock().taken = false;
        self.0.turned.notify_all();
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
    #[inline]
    pub fn append<R: AsRecord>(&self, subvolume: u64, records: &[R]) -> Result<Lsn> {
        hop!();
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

    /// An LSN greater than that of every batch so far.
    pub fn next_lsn(&self) -> Lsn {
        // Relaxed: if two calls are ordered by anything, so are their additions.
        Lsn(self.lsn.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// The LSN of a change that the journal does not record: the next cut's commit makes it
    /// durable, and no earlier one does. The caller excludes cuts until the change is made.
    #[must_use]
    pub fn before_next_cut(&self) -> Lsn {
        Lsn(self.last_cut.load(Ordering::Relaxed) + 1)
    }

    /// Makes the caller the commit leader, or waits until another leader has made the batches up to
    /// `upto` durable: then returns `None`. A failed journal gives the turn.
    pub fn turn(&self, upto: Lsn) -> Option<CommitTurn<'_>> {
        hop!();
        if self.durable() >= upto {
            return None;
        }
        let mut turn = self.turn.lock();
        while turn.taken && self.durable() < upto {
            self.turned.wait(&mut turn);
        }
        if self.durable() >= upto {
            return None;
        }
        turn.taken = true;
        drop(turn);
        Some(CommitTurn(self))
    }

    /// Empties all log buffers at one moment: no append is in progress, so every batch on which a
    /// batch in `waiting` depends is there too.
    pub(super) fn collect_frames(&self, waiting: &mut Vec<Frame>) -> Lsn {
        hop!();
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
        let folded: Vec<Frame> = writer.waiting.extract_if(.., folded).collect();
        self.supply
            .room
            .give(folded.iter().map(Frame::blocks).sum());
        self.supply.recycle(folded);
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
    /// is built on the replayed state, a [commit](Self::commit) records which of them count.
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
