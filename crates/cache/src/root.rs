//! Where a file's pages are found, in the form that is smallest for what there is.
//!
//! Nothing; one frame for the first page; one chunk for the first 64 pages; or a tree of chunks
//! with a set of unwritten ranges. A file of one page therefore costs its frame and nothing else,
//! and a page far out costs its chunk and one entry of the tree, however far out it is.
//!
//! The tree is ordered and maps a chunk's number to the chunk: one look-up for each 256 KiB of
//! content, and a walk goes from chunk to chunk. Its depth is logarithmic in what is held, so
//! dropping it recurses a handful of levels at most.
//!
//! *Invariants.* No chunk is empty except inside [`Root::with_chunk`]. No page is both framed and
//! unwritten. `Many::frames` is the number of frames in all its chunks. Pages are below
//! [`PAGE_END`].

use crate::account::Held;
use crate::chunk::{CHUNK_PAGES, CHUNK_SHIFT, Chunk, bits, mask, mask_in};
use crate::frame::{PAGE_SHIFT, PAGE_SIZE, SmallFrame};
use crate::ranges::RangeSet;
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

/// One more than the number of the last page that a file can have.
pub(crate) const PAGE_END: u64 = 1 << (63 - PAGE_SHIFT);

/// The four forms.
pub(crate) enum Root {
    /// No page is held.
    Empty,
    /// Only the first page is held, and it is framed.
    Small(SmallFrame),
    /// Frames among the first 64 pages, nothing unwritten.
    One(Box<Chunk>),
    /// Everything else.
    Many(Box<Many>),
}

const _: () = assert!(size_of::<Root>() == 16, "an empty file's root grew");

/// Any number of chunks.
#[derive(Default)]
pub(crate) struct Many {
    pub(crate) chunks: BTreeMap<u64, Box<Chunk>>,
    pub(crate) unwritten: RangeSet,
    frames: u64,
}

const FRAME_BYTES: u64 = PAGE_SIZE as u64;
const CHUNK_BYTES: u64 = size_of::<Chunk>() as u64;
const MANY_BYTES: u64 = size_of::<Many>() as u64;
/// What an entry of an ordered map of two words costs: nodes are half to wholly full, and have
/// headers and edges besides.
const ENTRY_BYTES: u64 = 32;

impl Root {
    /// What is held, in constant time.
    pub(crate) fn held(&self) -> Held {
        match self {
            Self::Empty => Held::default(),
            Self::Small(small) => Held {
                pages: 1,
                frames: 1,
                bytes: small.bytes().len() as u64,
            },
            Self::One(chunk) => {
                let frames = chunk.count();
                Held {
                    pages: frames,
                    frames,
                    bytes: frames * FRAME_BYTES + CHUNK_BYTES,
                }
            }
            Self::Many(many) => Held {
                pages: many.frames + many.unwritten.pages(),
                frames: many.frames,
                bytes: MANY_BYTES
                    + many.frames * FRAME_BYTES
                    + many.chunks.len() as u64 * (CHUNK_BYTES + ENTRY_BYTES)
                    + many.unwritten.ranges() * ENTRY_BYTES,
            },
        }
    }

    fn chunk(&self, number: u64) -> Option<&Chunk> {
        match self {
            Self::One(chunk) if number == 0 => Some(chunk),
            Self::Many(many) => many.chunks.get(&number).map(|chunk| &**chunk),
            _ => None,
        }
    }

    /// A bit for each framed page of chunk `number`.
    pub(crate) fn present(&self, number: u64) -> u64 {
        match self {
            Self::Small(_) => u64::from(number == 0),
            _ => self.chunk(number).map_or(0, Chunk::present),
        }
    }

    /// A bit for each unwritten page of chunk `number`.
    pub(crate) fn unwritten_mask(&self, number: u64) -> u64 {
        self.unwritten()
            .map_or(0, |unwritten| unwritten.mask(number))
    }

    fn unwritten(&self) -> Option<&RangeSet> {
        match self {
            Self::Many(many) if !many.unwritten.is_empty() => Some(&many.unwritten),
            _ => None,
        }
    }

    /// How many pages of `pages` are held, framed or unwritten.
    pub(crate) fn count_in(&self, pages: &Range<u64>) -> u64 {
        if pages.is_empty() {
            return 0;
        }
        let framed = |number, chunk: &Chunk| {
            u64::from((chunk.present() & mask_in(number, pages)).count_ones())
        };
        match self {
            Self::Empty => 0,
            Self::Small(_) => u64::from(pages.contains(&0)),
            Self::One(chunk) => framed(0, chunk),
            Self::Many(many) => {
                let chunks = many.chunks.range(chunks_of(pages));
                chunks
                    .map(|(&number, chunk)| framed(number, chunk))
                    .sum::<u64>()
                    + many.unwritten.count_in(pages.clone())
            }
        }
    }

    /// The first framed page at or behind `page`.
    pub(crate) fn next_frame(&self, page: u64) -> Option<u64> {
        let first_of = |number: u64, chunk: &Chunk| {
            let behind = chunk.present() & mask_in(number, &(page..PAGE_END));
            bits(behind)
                .next()
                .map(|bit| (number << CHUNK_SHIFT) + u64::from(bit))
        };
        match self {
            Self::Empty => None,
            Self::Small(_) => (page == 0).then_some(0),
            Self::One(chunk) => first_of(0, chunk),
            Self::Many(many) => many
                .chunks
                .range(page >> CHUNK_SHIFT..)
                .find_map(|(&number, chunk)| first_of(number, chunk)),
        }
    }

    /// The first page at or behind `page` that is not framed.
    pub(crate) fn next_gap(&self, page: u64) -> u64 {
        let mut at = page;
        // False when the chunk is full to its end: then the next one decides.
        let mut stops_in = |number: u64, present: u64| {
            if at >> CHUNK_SHIFT != number {
                return true;
            }
            let gaps = !present & mask_in(number, &(at..PAGE_END));
            at = bits(gaps)
                .next()
                .map_or((number + 1) << CHUNK_SHIFT, |bit| {
                    (number << CHUNK_SHIFT) + u64::from(bit)
                });
            gaps != 0
        };
        match self {
            Self::Empty => {}
            Self::Small(_) | Self::One(_) => {
                stops_in(0, self.present(0));
            }
            Self::Many(many) => {
                let mut chunks = many.chunks.range(page >> CHUNK_SHIFT..);
                chunks.any(|(&number, chunk)| stops_in(number, chunk.present()));
            }
        }
        at
    }

    /// The bytes of the frame of `page`, as far as it goes: what is behind them is zero already.
    pub(crate) fn frame_mut(&mut self, page: u64) -> Option<&mut [u8]> {
        let bit = (page % CHUNK_PAGES) as u32;
        let chunk = match self {
            Self::Small(small) => return (page == 0).then(|| small.bytes_mut()),
            Self::One(chunk) if page >> CHUNK_SHIFT == 0 => Some(chunk),
            Self::Many(many) => many.chunks.get_mut(&(page >> CHUNK_SHIFT)),
            _ => None,
        };
        chunk?.frame_mut(bit).map(|page| &mut page[..])
    }

    /// Changes chunk `number`, which is made if it is not there and must not be left empty.
    pub(crate) fn with_chunk<R>(&mut self, number: u64, change: impl FnOnce(&mut Chunk) -> R) -> R {
        if number == 0 && !matches!(self, Self::Many(_)) {
            if !matches!(self, Self::One(_)) {
                let mut chunk = Chunk::new();
                if let Self::Small(small) = std::mem::replace(self, Self::Empty) {
                    chunk.put(0, small.into_page());
                }
                *self = Self::One(chunk);
            }
            if let Self::One(chunk) = self {
                return change(chunk);
            }
        }
        let many = self.many_mut();
        let chunk = many.chunks.entry(number).or_insert_with(Chunk::new);
        let before = chunk.count();
        let result = change(chunk);
        many.frames = many.frames - before + chunk.count();
        result
    }

    /// The tree, made of whatever there is.
    pub(crate) fn many_mut(&mut self) -> &mut Many {
        if !matches!(self, Self::Many(_)) {
            let mut many = Box::<Many>::default();
            let chunk = match std::mem::replace(self, Self::Empty) {
                Self::Small(small) => {
                    let mut chunk = Chunk::new();
                    chunk.put(0, small.into_page());
                    Some(chunk)
                }
                Self::One(chunk) => Some(chunk),
                Self::Empty | Self::Many(_) => None,
            };
            if let Some(chunk) = chunk {
                many.frames = chunk.count();
                many.chunks.insert(0, chunk);
            }
            *self = Self::Many(many);
        }
        match self {
            Self::Many(many) => many,
            _ => unreachable!("made just above"),
        }
    }

    /// Drops the frames of `pages`; whether they were unwritten or not is left as it is.
    pub(crate) fn remove_frames(&mut self, pages: &Range<u64>) {
        if pages.is_empty() {
            return;
        }
        match self {
            Self::Empty => {}
            Self::Small(_) => {
                if pages.contains(&0) {
                    *self = Self::Empty;
                }
            }
            Self::One(chunk) => chunk.remove(mask_in(0, pages)),
            Self::Many(many) => {
                let frames = &mut many.frames;
                let chunks = many.chunks.extract_if(chunks_of(pages), |&number, chunk| {
                    *frames -= chunk.count();
                    chunk.remove(mask_in(number, pages));
                    *frames += chunk.count();
                    chunk.count() == 0
                });
                chunks.for_each(drop);
            }
        }
    }

    /// Says that `pages` are not unwritten (any more).
    pub(crate) fn remove_unwritten(&mut self, pages: Range<u64>) {
        if let Self::Many(many) = self {
            many.unwritten.remove(pages);
        }
    }

    /// Makes holes of `pages`.
    pub(crate) fn remove(&mut self, pages: Range<u64>) {
        self.remove_frames(&pages);
        self.remove_unwritten(pages);
    }

    /// Moves every page from `from` on by `delta`. None may leave the file's range or land on a
    /// page that stays: the caller has removed those.
    pub(crate) fn shift(&mut self, from: u64, delta: i64) {
        if self.next_frame(from).is_none() && self.unwritten().is_none() {
            return;
        }
        let many = self.many_mut();
        many.unwritten.shift(from, delta);
        let mut moving = many.chunks.split_off(&(from >> CHUNK_SHIFT));
        if let Some(mut entry) = moving.first_entry() {
            let stays = mask_in(*entry.key(), &(0..from)) & entry.get().present();
            if stays != 0 {
                let mut left = Chunk::new();
                for bit in bits(stays) {
                    move_frame(entry.get_mut(), bit, &mut left, bit);
                }
                many.chunks.insert(*entry.key(), left);
            }
        }
        for (number, chunk) in moving {
            many.place_shifted(number, chunk, delta);
        }
    }

    /// Takes the smallest form that fits.
    pub(crate) fn normalise(&mut self) {
        if let Self::Many(many) = self
            && many.unwritten.is_empty()
            && many.chunks.len() <= 1
        {
            match many.chunks.pop_first() {
                None => *self = Self::Empty,
                Some((0, chunk)) => *self = Self::One(chunk),
                Some((number, chunk)) => {
                    many.chunks.insert(number, chunk);
                }
            }
        }
        if let Self::One(chunk) = self
            && chunk.present() & !1 == 0
        {
            *self = match chunk.take(0) {
                Some(page) => Self::Small(SmallFrame::from_page(page)),
                None => Self::Empty,
            };
        }
    }
}

impl Many {
    /// Puts the frames of `chunk`, which was chunk `number`, `delta` pages away.
    fn place_shifted(&mut self, number: u64, mut chunk: Box<Chunk>, delta: i64) {
        let pages = CHUNK_PAGES.cast_signed();
        let first = (number << CHUNK_SHIFT).cast_signed() + delta;
        let (target, turn) = (first.div_euclid(pages), first.rem_euclid(pages) as u32);
        if turn == 0 && chunk.count() > 0 && !self.chunks.contains_key(&target.cast_unsigned()) {
            self.chunks.insert(target.cast_unsigned(), chunk);
            return;
        }
        let low = mask(0..u64::from(64 - turn));
        for (target, half) in [(target, low), (target + 1, !low)] {
            let moving = chunk.present() & half;
            if moving == 0 {
                continue;
            }
            let into = self
                .chunks
                .entry(target.cast_unsigned())
                .or_insert_with(Chunk::new);
            for bit in bits(moving) {
                move_frame(&mut chunk, bit, into, (bit + turn) % 64);
            }
        }
    }
}

fn move_frame(from: &mut Chunk, bit: u32, into: &mut Chunk, at: u32) {
    if let Some(page) = from.take(bit) {
        into.put(at, page);
    }
}

/// The numbers of the chunks that `pages`, which is not empty, touches.
fn chunks_of(pages: &Range<u64>) -> RangeInclusive<u64> {
    pages.start >> CHUNK_SHIFT..=(pages.end - 1) >> CHUNK_SHIFT
}
