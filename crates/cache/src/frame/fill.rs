//! Which bytes of a frame are filled.
//!
//! Usually a number of bytes from its start. A page that is written in pieces, in any order, is
//! filled by *sectors*, so that earlier pieces need not be copied. Such a frame is *broken* until
//! its gaps are filled.
//!
//! ```text
//! | 0 to 4096   | the first bytes, that many                                     |
//! | 4096 + mask | the eighths in the mask, which are more than the first few     |
//! ```

use super::size::FRAME_SIZE;
use std::ops::Range;

/// Bytes of a sector: the smallest piece that is written to a device, and an eighth of a frame.
const SECTOR: usize = 512;
const SECTORS: usize = FRAME_SIZE / SECTOR;

/// What is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fill(usize);

const _: () = assert!(SECTORS <= 8 && FRAME_SIZE + (1 << SECTORS) < 1 << Fill::BITS);

impl Fill {
    /// Bits of its number.
    pub(super) const BITS: u32 = 13;
    pub(super) const NONE: Self = Self(0);

    /// The first `len` bytes.
    pub(super) fn first(len: usize) -> Self {
        debug_assert!(len <= FRAME_SIZE);
        Self(len)
    }

    /// The fill with this number.
    #[inline]
    pub(super) fn of_number(number: usize) -> Self {
        Self(number)
    }

    pub(super) fn number(self) -> usize {
        self.0
    }

    /// The length of the filled start, if nothing after it is filled.
    #[inline]
    pub(super) fn as_first(self) -> Option<usize> {
        (self.0 <= FRAME_SIZE).then_some(self.0)
    }

    /// The filled sectors as a mask, if none is filled in part.
    fn sectors(self) -> Option<usize> {
        match self.as_first() {
            Some(len) if len.is_multiple_of(SECTOR) => Some((1 << (len / SECTOR)) - 1),
            Some(_) => None,
            None => Some(self.0 - FRAME_SIZE),
        }
    }

    /// This and `bytes`, which must be whole sectors, none of them filled; else `None`.
    pub(super) fn with(self, bytes: Range<usize>) -> Option<Self> {
        let whole = bytes.start.is_multiple_of(SECTOR)
            && bytes.end.is_multiple_of(SECTOR)
            && bytes.start < bytes.end
            && bytes.end <= FRAME_SIZE;
        if !whole {
            return None;
        }
        let there = self.sectors()?;
        let new = (1 << (bytes.end / SECTOR)) - (1 << (bytes.start / SECTOR));
        if there & new != 0 {
            return None;
        }
        let all = there | new;
        Some(match all & (all + 1) {
            0 => Self::first(all.count_ones() as usize * SECTOR),
            _ => Self(FRAME_SIZE + all),
        })
    }

    /// The end of the filled bytes.
    pub(super) fn end(self) -> usize {
        match self.as_first() {
            Some(len) => len,
            None => (self.0 - FRAME_SIZE).ilog2() as usize * SECTOR + SECTOR,
        }
    }

    /// The number of filled bytes.
    #[inline]
    pub(super) fn count(self) -> usize {
        match self.as_first() {
            Some(len) => len,
            None => (self.0 - FRAME_SIZE).count_ones() as usize * SECTOR,
        }
    }

    /// The filled pieces, in order; no two of them touch.
    pub(super) fn pieces(self) -> impl Iterator<Item = Range<usize>> {
        let (mut rest, mut first) = match self.as_first() {
            Some(len) => (0, Some(0..len).filter(|first| !first.is_empty())),
            None => (self.0 - FRAME_SIZE, None),
        };
        std::iter::from_fn(move || {
            if rest == 0 {
                return first.take();
            }
            let from = rest.trailing_zeros();
            let to = from + (rest >> from).trailing_ones();
            rest &= !((1 << to) - 1);
            Some(from as usize * SECTOR..to as usize * SECTOR)
        })
    }

    /// The gaps before the end.
    pub(super) fn gaps(self) -> impl Iterator<Item = Range<usize>> {
        let mut at = 0;
        self.pieces().filter_map(move |piece| {
            let gap = at..piece.start;
            at = piece.end;
            (!gap.is_empty()).then_some(gap)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_that_come_in_any_order_are_told_one_from_the_other() {
        // Every set of sectors, added from the last to the first.
        for all in 1..1_usize << SECTORS {
            let held = |sector: usize| all >> sector & 1 == 1;
            let fill = (0..SECTORS)
                .rev()
                .filter(|at| held(*at))
                .fold(Fill::NONE, |fill, at| {
                    let range = at * SECTOR..(at + 1) * SECTOR;
                    let after = fill.with(range.clone()).expect("not filled");
                    assert_eq!(after.with(range), None, "filled now");
                    after
                });
            assert_eq!(Fill::of_number(fill.number()), fill);
            let mut shown = [false; SECTORS];
            let mut last = None;
            for piece in fill.pieces() {
                assert!(last.is_none_or(|end| end < piece.start));
                last = Some(piece.end);
                shown[piece.start / SECTOR..piece.end / SECTOR].fill(true);
            }
            assert_eq!(last, Some(fill.end()));
            assert_eq!(fill.count(), all.count_ones() as usize * SECTOR);
            assert!((0..SECTORS).all(|at| shown[at] == held(at)));
            let gaps: usize = fill.gaps().map(|gap| gap.len()).sum();
            assert_eq!(gaps, fill.end() - all.count_ones() as usize * SECTOR);
            assert_eq!(fill.as_first().is_some(), gaps == 0);
        }
    }

    #[test]
    fn parts_of_sectors_are_refused() {
        let some = Fill::first(700);
        assert_eq!(some.with(1024..1536), None, "a part is filled");
        assert_eq!(Fill::NONE.with(100..512), None);
        assert_eq!(Fill::NONE.with(512..513), None);
        assert_eq!(Fill::NONE.with(512..512), None);
        assert_eq!(Fill::NONE.with(FRAME_SIZE..FRAME_SIZE + 512), None);
        assert_eq!(Fill::first(512).with(512..1024), Some(Fill::first(1024)));
        assert!(some.pieces().eq(std::iter::once(0..700)));
        assert_eq!(Fill::NONE.pieces().count(), 0);
    }
}
