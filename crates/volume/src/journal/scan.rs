//! Finds the committed groups in order, and the end of the journal.

use super::error::{Error, Reason, Result};
use super::frame::{FRAME_BLOCKS, Found, HEADER, Place};
use super::region::{Area, BLOCK, Cache, Position};
use super::ring::ROUND_BLOCKS;
use holdfast_core::store::Lsn;
use std::ops::Range;

/// Bytes read at once.
const WINDOW: usize = 1 << 20;

/// A part of the ring in memory.
#[derive(Debug, Default)]
struct Window {
    start: u64,
    bytes: Vec<u8>,
}

impl Window {
    /// The bytes from `position`: a whole frame's, or up to `end`.
    fn from(&mut self, area: &Area, position: u64, end: u64) -> Result<&[u8]> {
        let wanted = end.saturating_sub(position).min(FRAME_BLOCKS as u64);
        let held = self.start + (self.bytes.len() / BLOCK) as u64;
        if position < self.start || position + wanted > held {
            let blocks = end.saturating_sub(position).min((WINDOW / BLOCK) as u64);
            self.bytes.resize(blocks as usize * BLOCK, 0);
            self.start = position;
            if let Err(error) = area.read(position, &mut self.bytes) {
                self.bytes.clear();
                return Err(error);
            }
        }
        let skipped = (position - self.start) as usize * BLOCK;
        Ok(self.bytes.get(skipped..).unwrap_or(&[]))
    }
}

/// A run of whole batches of one log buffer.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) log_buffer: u16,
    /// Where it lies in [`Group::bytes`].
    pub(super) range: Range<usize>,
    pub(super) first: Lsn,
    pub(super) batches: u32,
    /// Its block on the device.
    pub(super) block: u64,
}

/// The content of one committed group.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) bytes: Vec<u8>,
    pub(super) segments: Vec<Segment>,
    /// The log buffer with an unfinished batch in its last segment.
    open: Option<u16>,
}

impl Group {
    fn clear(&mut self) {
        self.bytes.clear();
        self.segments.clear();
        self.open = None;
    }

    fn push(&mut self, area: &Area, found: &Found, payload: &[u8]) -> Result<()> {
        let block = area.block_at(found.place.position);
        let corrupt = Error::Corrupt {
            block,
            reason: Reason::Pieces,
        };
        let start = self.bytes.len();
        self.bytes.extend_from_slice(payload);
        let expected = self.open.take();
        match (expected, found.piece.continues) {
            (Some(log_buffer), true) if log_buffer == found.log_buffer => {
                let Some(segment) = self.segments.last_mut() else {
                    return Err(corrupt);
                };
                segment.range.end = self.bytes.len();
                segment.batches = found.batches;
            }
            (None, false) => self.segments.push(Segment {
                log_buffer: found.log_buffer,
                range: start..self.bytes.len(),
                first: found.first,
                batches: found.batches,
                block,
            }),
            _ => return Err(corrupt),
        }
        let one = u32::from(!found.piece.continued);
        if !found.piece.is_whole() && found.batches != one {
            return Err(corrupt);
        }
        if found.piece.continued {
            self.open = Some(found.log_buffer);
        }
        Ok(())
    }
}

/// One pass over the ring, from the tail to the head.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) area: Area,
    window: Window,
    /// The next group begins here.
    pub(super) next: u64,
    /// The end of the last flushed group.
    pub(super) durable_end: u64,
    /// A flushed group follows all written groups up to here.
    covered: u64,
    /// Were there written groups behind the last flushed one, taken or not?
    pub(super) met_written: bool,
    /// The identity of the cache that holds unflushed writes.
    cache: Option<Cache>,
    /// No frame can lie at or after this.
    end: u64,
    /// The incarnation of the last group.
    incarnation: u64,
    /// The latest incarnation seen, also of groups that were not committed.
    pub(super) latest: u64,
}

/// A group, as it was found.
#[derive(Clone, Copy, Debug)]
enum Passed {
    /// All of it is there.
    Whole {
        end: u64,
        incarnation: u64,
        /// The cache that holds it, if it was written without a flush.
        cache: Option<Cache>,
    },
    /// There is no such frame here.
    Broken { at: u64 },
}

impl Scan {
    pub(super) fn new(area: Area, from: Position) -> Self {
        let end = from.block.saturating_add(area.region.blocks);
        Self {
            cache: area.cache(),
            area,
            window: Window::default(),
            next: from.block,
            durable_end: from.block,
            covered: from.block,
            met_written: false,
            end,
            incarnation: from.incarnation,
            latest: from.incarnation,
        }
    }

    /// The incarnation of the last group.
    pub(super) fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// Is there no frame of the last incarnation or a later one where the next group would begin?
    /// Reads nothing else.
    ///
    /// # Errors
    /// The device's.
    pub(super) fn is_blank(&mut self) -> Result<bool> {
        let end = self.end.min(self.next + FRAME_BLOCKS as u64);
        let bytes = self.window.from(&self.area, self.next, end)?;
        let found = Found::read(bytes, self.area.region.volume, self.next);
        Ok(found.is_none_or(|found| found.place.incarnation < self.incarnation))
    }

    /// Reads the next group. `false` at the end of the journal: the group is torn, stale or was
    /// never written, or it was written without a flush and its cache is gone.
    ///
    /// # Errors
    /// The device's; [`Error::Corrupt`] if a frame behind that place shows that it was durable.
    pub(super) fn load(&mut self, group: &mut Group) -> Result<bool> {
        group.clear();
        let start = self.next;
        let area = self.area.clone();
        let passed = self.pass(start, self.incarnation, |found, payload| {
            group.push(&area, found, payload)
        })?;
        let gap = match (passed, self.gap_behind(passed)?) {
            (Passed::Broken { at }, _) => at,
            (Passed::Whole { .. }, Some(gap)) => {
                self.met_written = true;
                gap
            }
            (
                Passed::Whole {
                    end,
                    incarnation,
                    cache,
                },
                None,
            ) => {
                if group.open.is_some() {
                    let block = self.area.block_at(start);
                    let reason = Reason::Pieces;
                    return Err(Error::Corrupt { block, reason });
                }
                (self.next, self.incarnation) = (end, incarnation);
                self.met_written = cache.is_some();
                if cache.is_none() {
                    self.durable_end = end;
                }
                return Ok(true);
            }
        };
        group.clear();
        self.look_behind(gap)?;
        Ok(false)
    }

    /// Passes the group that begins at `start`, if its incarnation is at least `least`, and calls
    /// `show` with its frames.
    fn pass(
        &mut self,
        start: u64,
        least: u64,
        mut show: impl FnMut(&Found, &[u8]) -> Result<()>,
    ) -> Result<Passed> {
        let mut at = start;
        let mut first: Option<Place> = None;
        loop {
            let bytes = self.window.from(&self.area, at, self.end)?;
            let found = Found::read(bytes, self.area.region.volume, at).filter(|found| {
                let place = found.place;
                self.latest = self.latest.max(place.incarnation);
                let goes_on = first.is_none_or(|first| {
                    (first.incarnation, first.group, first.cache)
                        == (place.incarnation, place.group, place.cache)
                });
                let begins = match place.cache {
                    None => place.group == start,
                    Some(_) => place.group <= start,
                };
                goes_on && begins && place.incarnation >= least
            });
            let Some(found) = found else {
                return Ok(Passed::Broken { at });
            };
            let Place {
                incarnation, cache, ..
            } = found.place;
            first = Some(found.place);
            show(&found, bytes.get(HEADER..found.used).unwrap_or(&[]))?;
            at += found.blocks();
            if found.place.last_of_group {
                let end = at;
                return Ok(Passed::Whole {
                    end,
                    incarnation,
                    cache,
                });
            }
        }
    }

    /// Where the journal ends, if this group is not to be replayed. A group written without a flush
    /// is replayed if its cache is still there, or if a later flushed group made it durable.
    fn gap_behind(&mut self, passed: Passed) -> Result<Option<u64>> {
        if let Passed::Whole { end, cache, .. } = passed
            && (end <= self.covered || cache == self.cache)
        {
            return Ok(None);
        }
        let mut next = passed;
        loop {
            next = match next {
                Passed::Broken { at } => return Ok(Some(at)),
                Passed::Whole {
                    end,
                    incarnation,
                    cache,
                } if cache.is_some() => self.pass(end, incarnation, |_, _| Ok(()))?,
                Passed::Whole { end, .. } => {
                    self.covered = end;
                    return Ok(None);
                }
            }
        }
    }

    /// Was the missing frame at `gap` committed? Frames of its own group behind it prove nothing;
    /// those of a later group do.
    fn look_behind(&mut self, gap: u64) -> Result<()> {
        let mut at = gap;
        let mut until = gap + ROUND_BLOCKS + FRAME_BLOCKS as u64;
        while at < until.min(self.end) {
            let bytes = self.window.from(&self.area, at, self.end)?;
            if let Some(found) = Found::read(bytes, self.area.region.volume, at) {
                self.latest = self.latest.max(found.place.incarnation);
                if found.place.incarnation >= self.incarnation {
                    if found.place.group > gap {
                        return Err(Error::Corrupt {
                            block: self.area.block_at(gap),
                            reason: Reason::Hole,
                        });
                    }
                    // The gap may lie in a long group, far before the next one.
                    until = at + ROUND_BLOCKS + FRAME_BLOCKS as u64;
                }
            }
            at += 1;
        }
        Ok(())
    }
}
