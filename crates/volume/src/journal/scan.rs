//! Finds the groups that were committed, one after the other, and where they end.

use super::error::{Error, Reason, Result};
use super::frame::{FRAME_BLOCKS, Found, HEADER};
use super::region::{Area, BLOCK, Position};
use super::ring::ROUND_BLOCKS;
use holdfast_core::store::Stamp;
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

/// A run of whole batches of one lane.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) lane: u16,
    /// Where it lies in [`Group::bytes`].
    pub(super) range: Range<usize>,
    pub(super) first: Stamp,
    pub(super) batches: u32,
    /// Its block on the device.
    pub(super) block: u64,
}

/// What one commit wrote.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) bytes: Vec<u8>,
    pub(super) segments: Vec<Segment>,
    /// The lane whose last segment still lacks its end.
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
            (Some(lane), true) if lane == found.lane => {
                let Some(segment) = self.segments.last_mut() else {
                    return Err(corrupt);
                };
                segment.range.end = self.bytes.len();
                segment.batches = found.batches;
            }
            (None, false) => self.segments.push(Segment {
                lane: found.lane,
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
            self.open = Some(found.lane);
        }
        Ok(())
    }
}

/// Goes through the ring once, from the tail to the head.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) area: Area,
    window: Window,
    /// The next group begins here.
    pub(super) next: u64,
    /// No frame can lie at or after this.
    end: u64,
    /// The life of the last group.
    life: u64,
    /// The latest life seen, of groups that were not committed too.
    pub(super) latest: u64,
}

impl Scan {
    pub(super) fn new(area: Area, from: Position) -> Self {
        let end = from.block.saturating_add(area.region.blocks);
        Self {
            area,
            window: Window::default(),
            next: from.block,
            end,
            life: from.life,
            latest: from.life,
        }
    }

    /// Reads the next group; `false` at the end of the journal, which is where a group is torn,
    /// stale, or was never written.
    ///
    /// # Errors
    /// The device's; [`Error::Corrupt`] if something behind that place shows that it was durable.
    pub(super) fn load(&mut self, group: &mut Group) -> Result<bool> {
        group.clear();
        let start = self.next;
        let mut at = start;
        let mut life = None;
        loop {
            let bytes = self.window.from(&self.area, at, self.end)?;
            let found = Found::read(bytes, self.area.region.volume, at).filter(|found| {
                self.latest = self.latest.max(found.place.life);
                let expected = life.is_none_or(|life| life == found.place.life);
                expected && found.place.life >= self.life && found.place.group == start
            });
            let Some(found) = found else {
                group.clear();
                self.look_behind(at)?;
                return Ok(false);
            };
            life = Some(found.place.life);
            let payload = bytes.get(HEADER..found.used).unwrap_or(&[]);
            group.push(&self.area, &found, payload)?;
            at += found.blocks();
            if found.place.last_of_group {
                break;
            }
        }
        if group.open.is_some() {
            let block = self.area.block_at(start);
            let reason = Reason::Pieces;
            return Err(Error::Corrupt { block, reason });
        }
        self.next = at;
        self.life = life.unwrap_or(self.life);
        Ok(true)
    }

    /// Is the frame at `gap` missing from what was committed? Frames behind it that were under way
    /// with it prove nothing, those of a later group do.
    fn look_behind(&mut self, gap: u64) -> Result<()> {
        let mut at = gap;
        let mut until = gap + ROUND_BLOCKS + FRAME_BLOCKS as u64;
        while at < until.min(self.end) {
            let bytes = self.window.from(&self.area, at, self.end)?;
            if let Some(found) = Found::read(bytes, self.area.region.volume, at) {
                self.latest = self.latest.max(found.place.life);
                if found.place.life >= self.life {
                    if found.place.group > gap {
                        return Err(Error::Corrupt {
                            block: self.area.block_at(gap),
                            reason: Reason::Hole,
                        });
                    }
                    // The gap may lie in a long group with the next one far behind.
                    until = at + ROUND_BLOCKS + FRAME_BLOCKS as u64;
                }
            }
            at += 1;
        }
        Ok(())
    }
}
