//! Frames: up to 64 KiB of batches of one log buffer behind a header.

use super::region::{BLOCK, Cache};
use crate::checksum::checksum;
use holdfast_core::store::Lsn;
use std::ops::Range;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Bytes of a header.
pub(crate) const HEADER: usize = size_of::<Header>();
/// The most blocks of a frame.
pub(super) const FRAME_BLOCKS: usize = 16;

/// Counters in frames stay below this: no addition to them overflows in a lifetime.
pub(super) const NUMBERS_END: u64 = 1 << 62;

const MAGIC: u32 = u32::from_le_bytes(*b"HFJf");
const VERSION: u16 = 1;
const CHECKSUM: Range<usize> = 8..16;

/// The group ends with this frame.
const LAST: u16 = 1;
/// It begins inside a batch.
const CONTINUES: u16 = 2;
/// It ends inside a batch.
const CONTINUED: u16 = 4;
const FLAGS: u16 = LAST | CONTINUES | CONTINUED;

#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Header {
    magic: U32,
    version: U16,
    flags: U16,
    checksum: U64,
    volume: U64,
    incarnation: U64,
    position: U64,
    group: U64,
    first: U64,
    last: U64,
    used: U32,
    batches: U32,
    log_buffer: U16,
    cache: [u8; 6],
}

/// How a frame's bytes relate to whole batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Piece {
    /// It begins inside a batch.
    pub(super) continues: bool,
    /// It ends inside a batch, which continues in the log buffer's next frame.
    pub(super) continued: bool,
}

impl Piece {
    pub(super) const fn is_whole(self) -> bool {
        !self.continues && !self.continued
    }
}

/// The header fields that depend on the frame's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// [`Region::volume`](super::Region::volume).
    pub(super) volume: u64,
    /// Counts the openings of the journal that wrote something.
    pub(super) incarnation: u64,
    /// The frame's place in the ring; never the same twice in an incarnation.
    pub(super) position: u64,
    /// All frames before this place were durable when the frame was written. Without a cache, the
    /// group begins there.
    pub(super) group: u64,
    /// The cache that holds the frame and the blocks that its records map, if it was written
    /// without a flush.
    pub(super) cache: Option<Cache>,
    /// Is it the last of its group?
    pub(super) last_of_group: bool,
}

/// A frame in memory.
#[derive(Debug)]
pub(super) struct Frame {
    /// Room for a header, then batches.
    pub(super) bytes: Vec<u8>,
    pub(super) log_buffer: u16,
    pub(super) piece: Piece,
    /// Differences of LSNs begin here.
    pub(super) first: Lsn,
    /// The LSN of its last batch.
    pub(super) last: Lsn,
    /// Batches that end in it.
    pub(super) batches: u32,
}

impl Frame {
    pub(super) fn new(mut bytes: Vec<u8>, log_buffer: u16, first: Lsn) -> Self {
        bytes.clear();
        bytes.resize(HEADER, 0);
        Self {
            bytes,
            log_buffer,
            piece: Piece::default(),
            first,
            last: first,
            batches: 0,
        }
    }

    /// The blocks it takes on the device.
    pub(super) const fn blocks(&self) -> u64 {
        self.bytes.len().div_ceil(BLOCK) as u64
    }

    /// Fills in the header, and pads the last block.
    pub(super) fn seal(&mut self, place: Place) {
        let flag = |set: bool, flag: u16| if set { flag } else { 0 };
        let header = Header {
            magic: U32::new(MAGIC),
            version: U16::new(VERSION),
            flags: U16::new(
                flag(place.last_of_group, LAST)
                    | flag(self.piece.continues, CONTINUES)
                    | flag(self.piece.continued, CONTINUED),
            ),
            checksum: U64::new(0),
            volume: U64::new(place.volume),
            incarnation: U64::new(place.incarnation),
            position: U64::new(place.position),
            group: U64::new(place.group),
            first: U64::new(self.first.0),
            last: U64::new(self.last.0),
            used: U32::new(self.bytes.len() as u32),
            batches: U32::new(self.batches),
            log_buffer: U16::new(self.log_buffer),
            cache: place.cache.map_or([0; 6], |cache| cache.0),
        };
        self.bytes[..HEADER].copy_from_slice(header.as_bytes());
        let sum = checksum(&self.bytes, CHECKSUM);
        self.bytes[CHECKSUM].copy_from_slice(&sum.to_le_bytes());
        self.bytes
            .resize(self.bytes.len().next_multiple_of(BLOCK), 0);
    }
}

/// A frame found on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) place: Place,
    pub(super) log_buffer: u16,
    pub(super) piece: Piece,
    pub(super) first: Lsn,
    pub(super) last: Lsn,
    pub(super) batches: u32,
    /// Bytes used, with the header.
    pub(super) used: usize,
}

impl Found {
    /// The frame at the start of `bytes`, which may be longer; `None` unless it is a whole frame of
    /// this volume that belongs at `position`.
    pub(super) fn read(bytes: &[u8], volume: u64, position: u64) -> Option<Self> {
        let (header, _) = Header::read_from_prefix(bytes).ok()?;
        let known = header.magic.get() == MAGIC
            && header.version.get() == VERSION
            && header.flags.get() & !FLAGS == 0;
        let here = header.volume.get() == volume && header.position.get() == position;
        let used = header.used.get() as usize;
        // Greater numbers, which only a forged frame has, could overflow.
        let numbers = [
            &header.incarnation,
            &header.group,
            &header.first,
            &header.last,
        ];
        let known = known && numbers.iter().all(|number| number.get() < NUMBERS_END);
        if !known || !here || !(HEADER..=FRAME_BLOCKS * BLOCK).contains(&used) {
            return None;
        }
        if checksum(bytes.get(..used)?, CHECKSUM) != header.checksum.get() {
            return None;
        }
        let flags = header.flags.get();
        Some(Self {
            place: Place {
                volume,
                incarnation: header.incarnation.get(),
                position,
                group: header.group.get(),
                cache: Cache::from_bytes(header.cache),
                last_of_group: flags & LAST != 0,
            },
            log_buffer: header.log_buffer.get(),
            piece: Piece {
                continues: flags & CONTINUES != 0,
                continued: flags & CONTINUED != 0,
            },
            first: Lsn(header.first.get()),
            last: Lsn(header.last.get()),
            batches: header.batches.get(),
            used,
        })
    }

    /// The blocks it takes.
    pub(super) const fn blocks(&self) -> u64 {
        self.used.div_ceil(BLOCK) as u64
    }
}
