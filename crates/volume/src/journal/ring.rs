use super::error::Result;
use super::frame::{FRAME_BLOCKS, Frame, Place};
use super::log_buffer::COMMIT;
use super::region::{Area, BLOCK, Cache};
use holdfast_core::store::Lsn;

/// The most blocks written between two flushes: whole frames may lie so far behind a torn one.
pub(super) const ROUND_BLOCKS: u64 = 2048;
/// Bytes gathered for one write.
const STAGING: usize = 1 << 20;

/// How a group of frames is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Durably.
    Flushed,
    /// Into the device's cache: it outlives the process, not the cache.
    Written,
}

/// The ring of frames on the device.
///
/// *Invariants.* Blocks from `tail` to `head` hold whole groups. Those up to `durable_end` are
/// durable and end with a flushed group. Behind it are written groups, and flushed groups with a
/// flush in progress. `head - tail` never exceeds the ring's length, since
/// [`Room`](super::room::Room) was asked; one block more is reserved while `owes_mark`.
#[derive(Debug)]
pub(super) struct Ring {
    area: Area,
    pub(super) incarnation: u64,
    pub(super) tail: u64,
    pub(super) head: u64,
    /// The end of the last durable flushed group.
    durable_end: u64,
    /// A flush that began after all frames before this were written has ended.
    flushed: u64,
    /// The next flushed group states which frames around it count: it is written even if it is
    /// empty.
    pub(super) owes_mark: bool,
    /// The identity of the cache that holds unflushed writes, if known.
    cache: Option<Cache>,
    staging: Vec<u8>,
}

impl Ring {
    /// A ring with durable frames up to `durable_end`.
    pub(super) fn new(
        area: Area,
        incarnation: u64,
        tail: u64,
        durable_end: u64,
        head: u64,
    ) -> Self {
        Self {
            cache: area.cache(),
            area,
            incarnation,
            tail,
            head,
            durable_end,
            flushed: durable_end,
            owes_mark: false,
            staging: Vec::new(),
        }
    }

    /// Can groups be written without a flush?
    pub(super) const fn can_write(&self) -> bool {
        self.cache.is_some()
    }

    /// Drops the frames before `tail`, which no replay needs any more.
    pub(super) fn trim(&mut self, tail: u64) {
        self.tail = self.tail.max(tail);
        self.durable_end = self.durable_end.max(tail);
        self.flushed = self.flushed.max(tail);
    }

    /// Are there frames that no flush has made durable?
    pub(super) const fn is_unflushed(&self) -> bool {
        self.flushed < self.head
    }

    /// The area, to be flushed with this ring unlocked: other groups may be written meanwhile.
    pub(super) fn area(&self) -> Area {
        self.area.clone()
    }

    /// Makes everything durable that was written to the device.
    ///
    /// # Errors
    /// The device's.
    pub(super) fn flush(&mut self) -> Result<()> {
        let flushed = self.area.flush();
        self.flush_ended(flushed, self.head)
    }

    /// Takes the result of a flush that began when all frames before `upto` were written.
    ///
    /// # Errors
    /// The flush's. The cache may have dropped any part of the writes before it, and reports that
    /// once, so the frames that depend on them are revoked. If that fails too, nothing more can be
    /// done.
    pub(super) fn flush_ended(&mut self, flushed: Result<()>, upto: u64) -> Result<()> {
        match &flushed {
            Ok(()) => self.flushed = self.flushed.max(upto),
            Err(_) => self.revoke(self.flushed),
        }
        flushed
    }

    /// Overwrites the frame at this place: a replay takes neither it nor any behind it.
    fn revoke(&mut self, at: u64) {
        if at < self.head {
            let _ = self.area.write(at, &[0; BLOCK]);
        }
    }

    /// Writes a group into the cache, and behind it an empty frame, which a [mark](Self::mark) will
    /// replace; returns its place. The empty frame lets a replay find the groups behind it.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub(super) fn write_and_leave_place(&mut self, group: &mut [Frame], cut: Lsn) -> Result<u64> {
        hop!();
        self.write(group, Mode::Written)?;
        let place = self.head;
        self.write(&mut [Frame::new(Vec::new(), COMMIT, cut)], Mode::Written)?;
        Ok(place)
    }

    /// Writes the mark: all frames before it are durable, by a flush that has ended. The mark needs
    /// a flush itself.
    ///
    /// # Errors
    /// The device's.
    pub(super) fn mark(&mut self, place: u64, cut: Lsn) -> Result<()> {
        hop!();
        debug_assert!(self.durable_end <= place && place <= self.flushed);
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

    /// Takes the result of the flush after a mark.
    ///
    /// # Errors
    /// The flush's; the mark is then revoked.
    pub(super) fn marked(&mut self, flushed: Result<()>, place: u64) -> Result<()> {
        match &flushed {
            Ok(()) => self.set_durable(place + 1),
            Err(_) => self.revoke(place),
        }
        flushed
    }

    /// Frames before `end` are durable, and end with a flushed group.
    pub(super) fn set_durable(&mut self, end: u64) {
        self.durable_end = self.durable_end.max(end);
        self.flushed = self.flushed.max(end);
    }

    /// Writes a group of frames. A group of [`Mode::Flushed`] is durable, with all frames before
    /// it, when a later flush ends. The caller flushes, and then calls
    /// [`set_durable`](Self::set_durable).
    ///
    /// # Errors
    /// The device's. The blocks behind `head` are then unknown, and must not be written again in
    /// this incarnation.
    pub(super) fn write(&mut self, group: &mut [Frame], mode: Mode) -> Result<()> {
        hop!();
        let Some(last) = group.len().checked_sub(1) else {
            return Ok(());
        };
        if mode == Mode::Flushed && self.flushed < self.head {
            self.flush()?;
        }
        let cache = self.cache.filter(|_| mode == Mode::Written);
        let durable = match mode {
            Mode::Flushed => self.head,
            Mode::Written => self.durable_end,
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

    /// Writes the staged frames; returns their end.
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
