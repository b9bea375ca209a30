//! Dirty pages: a block's changed bytes.
//!
//! A write of less than a block need not know the rest. If the block is allocated, it is not read;
//! if it is not, the rest is zeros that take no memory.
//!
//! *Invariants.* Parts are whole sectors, ascend, and neither overlap nor touch.

use holdfast_core::store::SharedPage;
use holdfast_device::SECTOR;
use std::ops::Range;

use crate::block::BLOCK;

const SECTOR_LEN: usize = SECTOR as usize;

pub(in crate::store) type Page = Box<[u8; BLOCK]>;

pub(in crate::store) fn zeros() -> Page {
    vec![0; BLOCK].try_into().expect("of this length")
}

/// The changed bytes of a block.
#[derive(Clone, Debug)]
pub(in crate::store) enum Changed {
    /// All bytes of the block.
    Whole(Page),
    /// The same, as a page of the page cache, not copied.
    Kept(SharedPage),
    /// Some sectors; the rest is unchanged.
    Parts(Vec<Part>),
}

/// Bytes of a block at an offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store) struct Part {
    pub(in crate::store) from: usize,
    pub(in crate::store) bytes: Vec<u8>,
}

impl Part {
    fn end(&self) -> usize {
        self.from + self.bytes.len()
    }
}

/// Is this range sector-aligned?
pub(super) fn is_part(range: &Range<usize>) -> bool {
    range.start.is_multiple_of(SECTOR_LEN) && range.end.is_multiple_of(SECTOR_LEN)
}

impl Changed {
    /// One sector-aligned part.
    pub(in crate::store) fn part(from: usize, bytes: &[u8]) -> Self {
        debug_assert!(is_part(&(from..from + bytes.len())));
        let bytes = bytes.to_vec();
        Self::Parts(vec![Part { from, bytes }])
    }

    /// Are all bytes of the block known? Gaps between the [pieces](Self::each_piece) are zeros
    /// then.
    pub(super) fn is_whole(&self) -> bool {
        !matches!(self, Self::Parts(_))
    }

    /// Calls `show` with the known bytes and their offsets, ascending.
    pub(in crate::store) fn each_piece<'a>(&'a self, show: &mut dyn FnMut(usize, &'a [u8])) {
        match self {
            Self::Whole(page) => show(0, &page[..]),
            Self::Kept(page) => page.pieces().for_each(|(at, piece)| show(at, piece)),
            Self::Parts(parts) => parts.iter().for_each(|part| show(part.from, &part.bytes)),
        }
    }

    /// Overwrites a sector-aligned range.
    pub(in crate::store) fn put(&mut self, from: usize, bytes: &[u8]) {
        if let Self::Kept(_) = self {
            let mut page = zeros();
            self.show_in(&mut page);
            *self = Self::Whole(page);
        }
        match self {
            Self::Kept(_) => {}
            Self::Whole(page) => page[from..from + bytes.len()].copy_from_slice(bytes),
            Self::Parts(parts) => {
                put_part(parts, from, bytes);
                if let [part] = &mut parts[..]
                    && part.bytes.len() == BLOCK
                {
                    let page = std::mem::take(&mut part.bytes).into_boxed_slice();
                    *self = Self::Whole(page.try_into().expect("of this length"));
                }
            }
        }
    }

    /// Copies the known bytes into `page`, which holds the rest.
    pub(in crate::store) fn show_in(&self, page: &mut [u8; BLOCK]) {
        if let Self::Kept(_) = self {
            page.fill(0);
        }
        self.show_range(0, page);
    }

    /// Copies the known bytes of a range into `out`; the range begins at `start`.
    pub(super) fn show_range(&self, start: usize, out: &mut [u8]) {
        self.each_piece(&mut |at, piece| {
            let (from, to) = (at.max(start), (at + piece.len()).min(start + out.len()));
            if from < to {
                out[from - start..to - start].copy_from_slice(&piece[from - at..to - at]);
            }
        });
    }

    /// Truncates the file at byte `len` of this block.
    pub(in crate::store) fn cut(&mut self, len: usize) {
        match self {
            Self::Whole(page) => page[len..].fill(0),
            Self::Kept(page) => page.truncate(len),
            Self::Parts(parts) => {
                parts.retain(|part| part.from < len);
                if let Some(last) = parts.last_mut() {
                    let kept = (len - last.from).min(last.bytes.len());
                    last.bytes[kept..].fill(0);
                }
            }
        }
    }
}

fn put_part(parts: &mut Vec<Part>, from: usize, bytes: &[u8]) {
    let to = from + bytes.len();
    let first = parts.partition_point(|part| part.end() < from);
    let behind = parts.partition_point(|part| part.from <= to);
    if first == behind {
        let bytes = bytes.to_vec();
        parts.insert(first, Part { from, bytes });
        return;
    }
    // Parts that touch or overlap the new one become one with it.
    let start = parts[first].from.min(from);
    let end = parts[behind - 1].end().max(to);
    let mut merged = vec![0; end - start];
    for part in &parts[first..behind] {
        merged[part.from - start..part.end() - start].copy_from_slice(&part.bytes);
    }
    merged[from - start..to - start].copy_from_slice(bytes);
    parts.drain(first + 1..behind);
    parts[first] = Part {
        from: start,
        bytes: merged,
    };
}

/// A block write of a commit.
#[derive(Debug)]
pub(in crate::store) struct WriteInFlight {
    pub(in crate::store) block: u64,
    pub(in crate::store) changed: Changed,
    /// Is the rest of the block zeros, whatever the device has?
    pub(in crate::store) fresh: bool,
    /// Does it overwrite bytes that the last commit shows?
    pub(in crate::store) over: bool,
}

impl WriteInFlight {
    /// Does it define the whole block? Missing bytes are zeros then.
    pub(in crate::store) fn is_all(&self) -> bool {
        self.fresh || self.changed.is_whole()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_show_what_was_put_last_and_leave_the_rest(
            puts in prop::collection::vec((0..8_usize, 1..5_usize, any::<u8>()), 1..20),
            cut in prop::option::of(1..BLOCK),
        ) {
            let mut expected = [7; BLOCK];
            let mut changed = Changed::Parts(Vec::new());
            for (sector, sectors, byte) in puts {
                let (from, to) = (sector * SECTOR_LEN, ((sector + sectors) * SECTOR_LEN).min(BLOCK));
                let bytes = vec![byte; to - from];
                expected[from..to].copy_from_slice(&bytes);
                changed.put(from, &bytes);
                if let Changed::Parts(parts) = &changed {
                    prop_assert!(parts.is_sorted_by(|left, right| left.end() < right.from));
                    prop_assert!(parts.iter().all(|part| is_part(&(part.from..part.end()))));
                }
            }
            let mut upto = BLOCK;
            if let Some(len) = cut {
                changed.cut(len);
                upto = len;
                if let Changed::Parts(parts) = &changed {
                    prop_assert!(parts.iter().all(|part| is_part(&(part.from..part.end()))));
                }
            }
            let mut page = [7; BLOCK];
            changed.show_in(&mut page);
            prop_assert_eq!(&page[..upto], &expected[..upto]);
        }
    }

    #[test]
    fn a_block_of_which_all_parts_are_there_is_whole() {
        let mut changed = Changed::part(0, &[1; 1024]);
        for from in [3072, 1024, 2048] {
            changed.put(from, &[2; 1024]);
        }
        assert!(matches!(changed, Changed::Whole(_)));
    }
}
