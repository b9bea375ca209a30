use super::content::PagesLock;
use super::unwritten::Unwritten;
use crate::frame::FramesLock;
use crate::sizes::{MAX_SIZE, PAGE_SHIFT, PAGE_SIZE};
use std::iter::FusedIterator;

/// A piece of a file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Bytes in memory, all in one page.
    Data(&'a [u8]),
    /// That many zero bytes, of a hole or of unwritten pages.
    Zero(u64),
}

impl Piece<'_> {
    /// Its length in bytes; never 0 for a piece of [`Pieces`].
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

/// The pieces of a range of a file, in order and without gaps. Data pieces lie within one page
/// each. The others are zeros, of holes, of unwritten pages or after the filled bytes of a page.
pub struct Pieces<'a> {
    frames: &'a FramesLock<'a, Unwritten>,
    at: u64,
    end: u64,
}

impl PagesLock<'_> {
    /// The content from `offset` to `end`, piece by piece, without copying. None of it is absent.
    #[must_use]
    pub fn pieces(&self, offset: u64, end: u64) -> Pieces<'_> {
        debug_assert!(
            self.next_unloaded(offset >> PAGE_SHIFT..end.div_ceil(PAGE_SIZE as u64))
                .is_none(),
            "absent pages are read"
        );
        Pieces {
            frames: &self.frames,
            at: offset,
            end: end.min(MAX_SIZE),
        }
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        if self.at >= self.end {
            return None;
        }
        let page = self.at >> PAGE_SHIFT;
        let from = (self.at % PAGE_SIZE as u64) as usize;
        let frame = self.frames.get(page);
        let data = frame.and_then(|frame| frame.bytes().get(from..));
        if let Some(data) = data.filter(|data| !data.is_empty()) {
            let len = (self.end - self.at).min(data.len() as u64);
            self.at += len;
            return Some(Piece::Data(&data[..len as usize]));
        }
        let zero_from = page + u64::from(frame.is_some());
        let until = self
            .frames
            .next_frame(zero_from)
            .map_or(self.end, |page| self.end.min(page << PAGE_SHIFT));
        Some(Piece::Zero(until - std::mem::replace(&mut self.at, until)))
    }
}

impl FusedIterator for Pieces<'_> {}
