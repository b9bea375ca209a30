use super::error::{Error, Result};
use super::frame::{FRAME_BLOCKS, Frame};
use super::journal::{Journal, Writer};
use super::log_buffer::{COMMIT, LogBuffer};
use super::record::{BatchHead, Record};
use super::region::{BLOCK, Position};
use super::ring::{Mode, Ring};
use crate::primitive::{MutexGuard, Ordering};
use holdfast_core::store::Lsn;
use std::mem;

/// The frames of one commit. The store calls, in this order: [`cut`](Self::cut),
/// [`append_records`](Self::append_records), [`write`](Self::write), [`flush`](Self::flush),
/// [`mark`](Self::mark). It holds the ring's lock: its owner may append, and must not trim.
///
/// *Invariant.* If it is dropped before [`mark`](Self::mark) has returned, or
/// [`flush`](Self::flush) has returned `false`, `Journal::failed` is set before the ring is
/// unlocked. Otherwise the next group would find none of the frames that this one took, and
/// succeed.
#[derive(Debug)]
pub struct Group<'a> {
    journal: &'a Journal,
    writer: MutexGuard<'a, Writer>,
    wanted: Mode,
    /// Did the ring owe a mark before this group?
    owed: bool,
    frames_first: bool,
    /// Must a flush precede its frames?
    unflushed: bool,
    /// Blocks of the ring reserved for its records.
    kept: u64,
    records: Option<(Lsn, LogBuffer)>,
    frames: Vec<Frame>,
    way: Way,
    complete: bool,
}

/// How a group becomes durable.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// Not at all: it is only written.
    Written,
    /// Its frames are written first. After a flush, a mark is written at this place, and flushed.
    Marked(u64),
    /// Nothing needs a flush before its frames.
    Flushed,
}

impl Journal {
    /// Makes all batches up to `upto` durable; with `None`, all that were appended so far.
    /// Concurrent callers share one flush. For a journal without a store: a store writes its data
    /// between the steps of a [`Group`].
    ///
    /// # Errors
    /// The device's: after one, every call fails with [`Error::Failed`].
    pub fn commit(&self, upto: Option<Lsn>) -> Result<()> {
        let upto = upto.unwrap_or_else(|| self.next_lsn());
        let Some(_turn) = self.turn(upto) else {
            return Ok(());
        };
        let mut group = self.begin_group(Mode::Flushed)?;
        group.write()?;
        group.flush()?;
        group.mark()?;
        Ok(())
    }

    /// Begins the group of a commit. The caller of [`Mode::Flushed`] is the commit leader
    /// ([`turn`](Self::turn)). A group of [`Mode::Written`] needs no turn: it survives the end of
    /// this process, but is [durable](Self::durable) only with the next commit.
    ///
    /// # Errors
    /// [`Error::Failed`].
    pub fn begin_group(&self, wanted: Mode) -> Result<Group<'_>> {
        hop!();
        let mut writer = self.writer.lock();
        if self.failed() {
            return Err(Error::Failed);
        }
        let ring = &mut writer.ring;
        // A group that is only written needs a block for the mark that will follow it.
        let owed = ring.owes_mark;
        if ring.can_write() && !owed {
            ring.owes_mark = self.supply.room.take_reserved(1);
        }
        Ok(Group {
            journal: self,
            wanted,
            owed,
            frames_first: ring.can_write() && ring.owes_mark,
            writer,
            unflushed: false,
            kept: 0,
            records: None,
            frames: Vec::new(),
            way: Way::Flushed,
            complete: false,
        })
    }
}

impl Group<'_> {
    /// Are its frames written before anything is flushed? They then count as soon as they are in
    /// the device's cache, for a replay that finds the same cache. Overwritten blocks may then be
    /// written after [`write`](Self::write); if not, they must be [flushed](Self::flush_data)
    /// before it.
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
    pub fn flush_data(&mut self) -> Result<()> {
        self.writer.ring.flush()
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
    /// that excludes appends knows exactly which. A second call moves the cut. A group without a
    /// cut takes one when it is written.
    pub fn cut(&mut self) -> Lsn {
        hop!();
        let waiting = &mut self.writer.waiting;
        let cut = self.journal.collect_frames(waiting);
        if let Some((_, mut records)) = self.records.take() {
            records.empty(&self.journal.supply, waiting);
        }
        self.records = Some((cut, LogBuffer::new(COMMIT)));
        cut
    }

    /// Appends one batch with the cut's LSN: it is replayed after all others of this commit. Blocks
    /// that the records map are written already, and [`needs_flush`](Self::needs_flush) was called.
    ///
    /// # Errors
    /// [`Error::Full`] even with the share that is reserved for commits; [`Error::TooLarge`].
    pub fn append_records(&mut self, subvolume: u64, records: &[Record<'_>]) -> Result<()> {
        hop!();
        self.journal.supply.room.give(mem::take(&mut self.kept));
        if records.is_empty() {
            return Ok(());
        }
        if self.records.is_none() {
            self.cut();
        }
        if let Some((lsn, log_buffer)) = &mut self.records {
            let head = BatchHead {
                lsn: *lsn,
                subvolume,
            };
            log_buffer.append(&self.journal.supply, head, records)?;
        }
        Ok(())
    }

    /// Writes the frames, if they come first: then the commit survives a kill of this process.
    ///
    /// # Errors
    /// The device's.
    pub fn write(&mut self) -> Result<()> {
        hop!();
        self.journal.supply.room.give(mem::take(&mut self.kept));
        if self.records.is_none() {
            self.cut();
        }
        self.frames = mem::take(&mut self.writer.waiting);
        if let Some((_, log_buffer)) = &mut self.records {
            log_buffer.empty(&self.journal.supply, &mut self.frames);
        }
        let cut = self.lsn();
        let ring = &mut self.writer.ring;
        if self.frames_first && self.wanted == Mode::Written {
            self.way = Way::Written;
            let before = ring.head;
            ring.write(&mut self.frames, Mode::Written)?;
            if !self.owed && ring.head == before {
                ring.owes_mark = false;
                self.journal.supply.room.give(1);
            }
        } else if self.frames_first && (self.unflushed || ring.is_unflushed()) {
            let place = ring.write_and_leave_place(&mut self.frames, cut)?;
            self.way = Way::Marked(place);
            // The block reserved for a mark is used here.
            ring.owes_mark = false;
        } else {
            self.way = Way::Flushed;
            // A mark that is owed is written even without frames.
            if self.owed && self.frames.is_empty() {
                let frame = Frame::new(self.journal.supply.buffer(1), COMMIT, cut);
                self.frames.push(frame);
            } else if ring.owes_mark {
                self.journal.supply.room.give(1);
            }
            ring.owes_mark = false;
        }
        Ok(())
    }

    /// Flushes what was written, the caller's blocks included. Other groups may be written
    /// meanwhile. Returns `false` for a group that is only written: it is complete.
    ///
    /// # Errors
    /// The device's; [`Error::Failed`] if another group failed meanwhile.
    pub fn flush(&mut self) -> Result<bool> {
        hop!();
        match self.way {
            Way::Written => {
                self.complete();
                return Ok(false);
            }
            Way::Marked(place) => {
                self.flush_beside(|ring, flushed| ring.flush_ended(flushed, place))?;
            }
            Way::Flushed => {}
        }
        Ok(true)
    }

    /// Makes the commit durable. Returns the position behind it, at which a replay may begin once
    /// all batches up to its LSN are in the trees.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub fn mark(&mut self) -> Result<Position> {
        hop!();
        let cut = self.lsn();
        let block = match self.way {
            Way::Marked(place) => {
                self.writer.ring.mark(place, cut)?;
                self.flush_beside(|ring, flushed| ring.marked(flushed, place))?;
                place + 1
            }
            Way::Flushed | Way::Written => {
                let ring = &mut self.writer.ring;
                ring.write(&mut self.frames, Mode::Flushed)?;
                let end = ring.head;
                if !self.frames.is_empty() {
                    self.flush_beside(|ring, flushed| ring.flush_ended(flushed, end))?;
                    self.writer.ring.set_durable(end);
                }
                end
            }
        };
        self.complete();
        self.journal.durable.fetch_max(cut.0, Ordering::Release);
        Ok(Position {
            block,
            lsn: cut,
            incarnation: self.writer.ring.incarnation,
        })
    }

    /// The LSN of the cut.
    fn lsn(&self) -> Lsn {
        self.records.as_ref().map_or(Lsn(0), |(cut, _)| *cut)
    }

    fn complete(&mut self) {
        self.journal.supply.recycle(mem::take(&mut self.frames));
        self.complete = true;
    }

    /// Flushes the device with the ring unlocked. `end` gets the result.
    ///
    /// # Errors
    /// Those of `end`; [`Error::Failed`] if another group failed meanwhile.
    fn flush_beside(
        &mut self,
        end: impl FnOnce(&mut Ring, Result<()>) -> Result<()>,
    ) -> Result<()> {
        let area = self.writer.ring.area();
        let flushed = MutexGuard::unlocked(&mut self.writer, || area.flush());
        end(&mut self.writer.ring, flushed)?;
        match self.journal.failed() {
            true => Err(Error::Failed),
            false => Ok(()),
        }
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        if !self.complete {
            // Relaxed: other threads read it under the ring's lock or `turn`, released after this.
            self.journal.failed.store(true, Ordering::Relaxed);
        }
    }
}
