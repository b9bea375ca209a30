//! One page of a file that was written here, and the bytes of it that are known.

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;
/// The same, as a length in memory.
pub(super) const LEN: usize = PAGE as usize;

/// The length of an extent of so many pages: the last page of the largest file lacks its last byte.
pub(super) const fn len_of(first: u64, pages: u64) -> u64 {
    let most = (i64::MAX as u64).saturating_sub(first * PAGE);
    if pages * PAGE < most {
        pages * PAGE
    } else {
        most
    }
}

/// The bytes of a page.
pub(super) type Bytes = [u8; LEN];

/// A page with the ranges that were written; the other bytes are those of the layer below.
#[derive(Clone, Debug)]
pub(super) struct Page {
    bytes: Box<Bytes>,
    /// Ascending, not adjacent. A whole page has one.
    written: Vec<(u16, u16)>,
}

impl Page {
    /// A page of which nothing is known.
    pub(super) fn new() -> Self {
        Self {
            bytes: Box::new([0; LEN]),
            written: Vec::new(),
        }
    }

    /// A page of zeros, all of which are known.
    pub(super) fn zeros() -> Self {
        Self {
            bytes: Box::new([0; LEN]),
            written: vec![(0, LEN as u16)],
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.written == [(0, LEN as u16)]
    }

    pub(super) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The ranges that are known, in order, with their bytes.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let ranges = self.written.iter();
        ranges.map(|&(from, to)| (from.into(), &self.bytes[from.into()..to.into()]))
    }

    /// Copies the known bytes among those from `start` on.
    pub(super) fn copy_to(&self, start: usize, out: &mut [u8]) {
        let end = start + out.len();
        for &(from, to) in &self.written {
            let (from, to) = (start.max(from.into()), end.min(to.into()));
            if from < to {
                out[from - start..to - start].copy_from_slice(&self.bytes[from..to]);
            }
        }
    }

    /// Writes bytes that lie within the page.
    pub(super) fn write(&mut self, start: usize, data: &[u8]) {
        self.bytes[start..start + data.len()].copy_from_slice(data);
        self.note(start, start + data.len());
    }

    /// The bytes from `start` on are zeros.
    pub(super) fn zero(&mut self, start: usize, end: usize) {
        self.bytes[start..end].fill(0);
        self.note(start, end);
    }

    fn note(&mut self, start: usize, end: usize) {
        if start == end || self.is_whole() {
            return;
        }
        let (mut from, mut to) = (start as u16, end as u16);
        let first = self.written.partition_point(|range| range.1 < from);
        let after = self.written.partition_point(|range| range.0 <= to);
        if first < after {
            from = from.min(self.written[first].0);
            to = to.max(self.written[after - 1].1);
        }
        self.written.splice(first..after, [(from, to)]);
    }
}

/// Cuts a range at the borders of pages: page, first byte in it, number of bytes.
pub(super) fn pieces(offset: u64, len: u64) -> impl Iterator<Item = (u64, usize, usize)> {
    let end = offset.saturating_add(len);
    let mut at = offset;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let (page, start) = (at / PAGE, at % PAGE);
        let count = (PAGE - start).min(end - at);
        at += count;
        Some((page, start as usize, count as usize))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_where_they_touch() {
        let mut page = Page::new();
        page.write(100, &[1; 100]);
        page.write(300, &[2; 100]);
        page.write(500, &[3; 100]);
        assert_eq!(page.written, [(100, 200), (300, 400), (500, 600)]);
        page.write(200, &[4; 100]);
        assert_eq!(page.written, [(100, 400), (500, 600)]);
        page.zero(50, 550);
        assert_eq!(page.written, [(50, 600)]);
        page.zero(0, LEN);
        assert!(page.is_whole());
        page.write(5, &[6; 5]);
        assert!(page.is_whole() && page.bytes()[5..10] == [6; 5]);
    }

    #[test]
    fn a_range_is_cut_at_pages() {
        let cut: Vec<_> = pieces(4000, 4200).collect();
        assert_eq!(cut, [(0, 4000, 96), (1, 0, 4096), (2, 0, 8)]);
    }
}
