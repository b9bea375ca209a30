use crate::chunk::{CHUNK_PAGES, CHUNK_SHIFT, CHUNK_SIZE, Chunk};
use crate::frame::{PAGE_SHIFT, PAGE_SIZE};
use crate::root::Root;
use std::collections::btree_map;
use std::iter::FusedIterator;

/// A stretch of a file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Bytes in memory, all in one page.
    Data(&'a [u8]),
    /// So many zero bytes, of a hole or of unwritten pages.
    Zero(u64),
}

impl Piece<'_> {
    /// Its length in bytes; never 0 for a piece that [`Pieces`] gives.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Data(data) => data.len() as u64,
            Self::Zero(len) => *len,
        }
    }

    /// Is it 0 bytes long?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The pieces of a range of a file, in order and without gaps.
///
/// Chunks are looked up once and then walked, so that a long read costs its copying.
pub struct Pieces<'a> {
    at: u64,
    end: u64,
    /// What a small file has, at offset 0.
    small: &'a [u8],
    /// The chunk that `at` is in or before, and its offset.
    chunk: Option<(u64, &'a Chunk)>,
    later: Option<btree_map::Range<'a, u64, Box<Chunk>>>,
}

impl<'a> Pieces<'a> {
    pub(crate) fn new(root: &'a Root, at: u64, end: u64) -> Self {
        let mut pieces = Self {
            at,
            end: end.max(at),
            small: &[],
            chunk: None,
            later: None,
        };
        match root {
            Root::Empty => {}
            Root::Small(small) => pieces.small = small.bytes(),
            Root::One(chunk) => pieces.chunk = Some((0, chunk)),
            Root::Many(many) => {
                pieces.later = Some(many.chunks.range(at >> (CHUNK_SHIFT + PAGE_SHIFT)..));
                pieces.next_chunk();
            }
        }
        pieces
    }

    fn next_chunk(&mut self) {
        let next = self.later.as_mut().and_then(Iterator::next);
        self.chunk = next.map(|(&number, chunk)| (number << (CHUNK_SHIFT + PAGE_SHIFT), &**chunk));
    }

    fn zero_until(&mut self, offset: u64) -> Piece<'a> {
        let until = offset.min(self.end);
        Piece::Zero(until - std::mem::replace(&mut self.at, until))
    }

    fn in_chunk(&mut self, chunk: &'a Chunk) -> Piece<'a> {
        let page = ((self.at >> PAGE_SHIFT) % CHUNK_PAGES) as u32;
        let from = self.at as usize % PAGE_SIZE;
        match chunk.frame(page) {
            Some(frame) => {
                let left = self.end - self.at;
                let len = left.min((PAGE_SIZE - from) as u64) as usize;
                self.at += len as u64;
                Piece::Data(&frame[from..from + len])
            }
            None => {
                let behind = (chunk.present() >> page)
                    .trailing_zeros()
                    .min(CHUNK_PAGES as u32 - page);
                let page_start = self.at - from as u64;
                self.zero_until(page_start + (u64::from(behind) << PAGE_SHIFT))
            }
        }
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        if self.at >= self.end {
            return None;
        }
        if self.at < self.small.len() as u64 {
            let until = self.end.min(self.small.len() as u64);
            let from = std::mem::replace(&mut self.at, until);
            return Some(Piece::Data(&self.small[from as usize..until as usize]));
        }
        while let Some((start, chunk)) = self.chunk {
            if self.at < start {
                return Some(self.zero_until(start));
            }
            if self.at - start < CHUNK_SIZE {
                return Some(self.in_chunk(chunk));
            }
            self.next_chunk();
        }
        Some(self.zero_until(u64::MAX))
    }
}

impl FusedIterator for Pieces<'_> {}
