use super::error::Result;
use super::frame::{Cache, FRAME_BLOCKS, Frame, Place};
use super::log_buffer::COMMIT;
use super::region::{Area, BLOCK};
use holdfast_core::store::Lsn;

/// Blocks written between two flushes, at most: so far behind a torn frame may whole ones lie.
pub(super) const ROUND_BLOCKS: u64 = 2048;
/// Bytes gathered for one write.
const STAGING: usize = 1 << 20;

/// How a group of frames is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Durably.
    Flushed,
    /// Into the device's cache: it outlives the process, not the cache.
    Written,
}

/// The ring of frames on the device.
///
/// *Invariants.* Blocks from `tail` to `head` hold whole groups. Those up to `settled` are durable, and end with
/// a flushed group; behind it are written groups, and flushed ones whose flush has not ended. `head` never passes `tail` by more than the ring's length,
/// since [`Room`](super::room::Room) was asked, and one block more is taken while `owes_mark`.
#[derive(Debug)]
pub(super) struct Ring {
    area: Area,
    pub(super) incarnation: u64,
    pub(super) tail: u64,
    pub(super) head: u64,
    /// Where the last flushed group ended.
    settled: u64,
    /// A flush that began after all before this was written has ended.
    flushed: u64,
    /// The next flushed group says of frames before it, or behind it, what they are: it is written even if it is empty.
    pub(super) owes_mark: bool,
    /// What holds what is written; none, if that is not known.
    cache: Option<Cache>,
    staging: Vec<u8>,
}

impl Ring {
    /// A ring whose frames are durable up to `settled`.
    pub(super) fn new(area: Area, incarnation: u64, tail: u64, settled: u64, head: u64) -> Self {
        Self {
            cache: area.cache(),
            area,
            incarnation,
            tail,
            head,
            settled,
            flushed: settled,
            owes_mark: false,
            staging: Vec::new(),
        }
    }

    /// Can groups be written without a flush?
    pub(super) const fn can_write(&self) -> bool {
        self.cache.is_some()
    }

    /// Nobody has to read what is before this any more.
    pub(super) fn trim(&mut self, tail: u64) {
        self.tail = self.tail.max(tail);
        self.settled = self.settled.max(tail);
        self.flushed = self.flushed.max(tail);
    }

    /// Are there frames that no flush has made durable?
    pub(super) const fn is_unflushed(&self) -> bool {
        self.flushed < self.head
    }

    /// What is flushed with nothing of this held: other groups may be written meanwhile.
    pub(super) fn area(&self) -> Area {
        self.area.clone()
    }

    /// Makes all that was written to the device durable.
    ///
    /// # Errors
    /// The device's.
    pub(super) fn flush(&mut self) -> Result<()> {
        let flushed = self.area.flush();
        self.flush_ended(flushed, self.head)
    }

    /// A flush ended that began when all before `upto` was written.
    ///
    /// # Errors
    /// The flush's: of what was written before it the cache may have dropped any part, and says so once. So the
    /// frames that count on it are taken back. If that fails too, nothing more can be done.
    pub(super) fn flush_ended(&mut self, flushed: Result<()>, upto: u64) -> Result<()> {
        match &flushed {
            Ok(()) => self.flushed = self.flushed.max(upto),
            Err(_) => self.revoke(self.flushed),
        }
        flushed
    }

    /// Takes the frame at this place back, and with it all behind it.
    fn revoke(&mut self, at: u64) {
        if at < self.head {
            let _ = self.area.write(at, &[0; BLOCK]);
        }
    }

    /// Writes a group into the cache, and behind it a block in which a [mark](Self::mark) will say that it is durable; gives
    /// that block. Until then it holds a frame of nothing, so that a replay finds what is written behind it.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub(super) fn write_and_leave_place(&mut self, group: &mut [Frame], cut: Lsn) -> Result<u64> {
        self.write(group, Mode::Written)?;
        let place = self.head;
        self.write(&mut [Frame::new(Vec::new(), COMMIT, cut)], Mode::Written)?;
        Ok(place)
    }

    /// Says in the block that was left for it that all before it is durable, which a flush has made it. It takes a flush itself.
    ///
    /// # Errors
    /// The device's.
    pub(super) fn mark(&mut self, place: u64, cut: Lsn) -> Result<()> {
        debug_assert!(self.settled <= place && place <= self.flushed);
        let mut frame = Frame::new(Vec::new(), COMMIT, cut);
        frame.seal(Place {
            volume: self.area.region.volume,
            incarnation: self.incarnation,
            position: place,
            group: place,
            cache: None,
            last_of_group: true,
        });
        self.area.write(place, &frame.bytes)
    }

    /// The flush behind a mark ended.
    ///
    /// # Errors
    /// The flush's; the mark is taken back then.
    pub(super) fn marked(&mut self, flushed: Result<()>, place: u64) -> Result<()> {
        match &flushed {
            Ok(()) => self.settle(place + 1),
            Err(_) => self.revoke(place),
        }
        flushed
    }

    /// What lies before this is durable, and ends with a flushed group.
    pub(super) fn settle(&mut self, end: u64) {
        self.settled = self.settled.max(end);
        self.flushed = self.flushed.max(end);
    }

    /// Writes a group of frames: a flushed one is durable, with all before it, as soon as a flush behind it ends, which is
    /// the caller's, as is to [settle](Self::settle) that.
    ///
    /// # Errors
    /// The device's. What lies behind `head` is then unknown, and must not be written again in
    /// this life.
    pub(super) fn write(&mut self, group: &mut [Frame], mode: Mode) -> Result<()> {
        let Some(last) = group.len().checked_sub(1) else {
            return Ok(());
        };
        if mode == Mode::Flushed && self.flushed < self.head {
            self.flush()?;
        }
        let cache = self.cache.filter(|_| mode == Mode::Written);
        let durable = match mode {
            Mode::Flushed => self.head,
            Mode::Written => self.settled,
        };
        let (mut at, mut written) = (self.head, self.head);
        for (index, frame) in group.iter_mut().enumerate() {
            if at + FRAME_BLOCKS as u64 - self.flushed > ROUND_BLOCKS {
                written = self.write_staging(written)?;
                self.flush()?;
                self.flushed = written;
            }
            let blocks = frame.blocks();
            frame.seal(Place {
                volume: self.area.region.volume,
                incarnation: self.incarnation,
                position: at,
                group: durable,
                cache,
                last_of_group: index == last,
            });
            self.staging.extend_from_slice(&frame.bytes);
            at += blocks;
            if self.staging.len() >= STAGING {
                written = self.write_staging(written)?;
            }
        }
        debug_assert!(at - self.tail <= self.area.region.blocks);
        self.write_staging(written)?;
        self.head = at;
        Ok(())
    }

    /// Writes what has been gathered; answers where it ends.
    fn write_staging(&mut self, at: u64) -> Result<u64> {
        if self.staging.is_empty() {
            return Ok(at);
        }
        let result = self.area.write(at, &self.staging);
        let blocks = (self.staging.len() / BLOCK) as u64;
        self.staging.clear();
        result.map(|()| at + blocks)
    }
}
