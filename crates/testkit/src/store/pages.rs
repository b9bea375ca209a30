//! The bytes of a file as a model store keeps them.

use std::collections::BTreeMap;

pub(super) const PAGE: u64 = 4096;

/// Pages by number; what is absent is a hole.
#[derive(Clone, Debug, Default)]
pub(super) struct PageMap(BTreeMap<u64, Box<[u8]>>);

fn empty() -> Box<[u8]> {
    vec![0; PAGE as usize].into()
}

/// Cuts a range at page borders: page number, first byte in it, number of bytes.
fn pieces(offset: u64, len: u64) -> impl Iterator<Item = (u64, usize, usize)> {
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

impl PageMap {
    pub(super) fn write(&mut self, offset: u64, data: &[u8]) {
        let mut rest = data;
        for (page, start, count) in pieces(offset, data.len() as u64) {
            let (now, later) = rest.split_at(count);
            self.0.entry(page).or_insert_with(empty)[start..start + count].copy_from_slice(now);
            rest = later;
        }
    }

    pub(super) fn read(&self, offset: u64, buf: &mut [u8]) {
        let mut rest = buf;
        let len = rest.len() as u64;
        for (page, start, count) in pieces(offset, len) {
            let (now, later) = rest.split_at_mut(count);
            match self.0.get(&page) {
                Some(bytes) => now.copy_from_slice(&bytes[start..start + count]),
                None => now.fill(0),
            }
            rest = later;
        }
    }

    /// The first run of pages at or after `offset`, as (start, length).
    pub(super) fn next_data(&self, offset: u64) -> Option<(u64, u64)> {
        let mut pages = self.0.range(offset / PAGE..).map(|(&page, _)| page);
        let first = pages.next()?;
        let last = pages
            .zip(first + 1..)
            .take_while(|(page, next)| page == next)
            .last();
        let end = (last.map_or(first, |(page, _)| page) + 1) * PAGE;
        let start = (first * PAGE).max(offset);
        Some((start, end - start))
    }

    /// Pages that take space.
    pub(super) fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// Does any lie behind the end of a file of this size?
    pub(super) fn is_behind(&self, size: u64) -> bool {
        let first = size.div_ceil(PAGE);
        self.0.range(first..).next().is_some()
    }

    pub(super) fn truncate(&mut self, size: u64) {
        drop(self.0.split_off(&size.div_ceil(PAGE)));
        if let Some(last) = self.0.get_mut(&(size / PAGE)) {
            last[(size % PAGE) as usize..].fill(0);
        }
    }

    /// Zeros a range; `keep`: it takes space, or else whole pages become holes.
    pub(super) fn zero(&mut self, offset: u64, len: u64, keep: bool) {
        let end = offset.saturating_add(len);
        if !keep {
            let (first, last) = (offset.div_ceil(PAGE), end / PAGE);
            self.0.retain(|&page, _| page < first || page >= last);
        }
        let held: Vec<u64> = match keep {
            true => pieces(offset, len).map(|(page, _, _)| page).collect(),
            false => [offset / PAGE, end / PAGE].to_vec(),
        };
        for page in held {
            let bytes = match self.0.get_mut(&page) {
                Some(bytes) => bytes,
                None if keep => self.0.entry(page).or_insert_with(empty),
                None => continue,
            };
            let (start, stop) = (offset.max(page * PAGE), end.min((page + 1) * PAGE));
            if start < stop {
                bytes[(start - page * PAGE) as usize..(stop - page * PAGE) as usize].fill(0);
            }
        }
    }

    pub(super) fn allocate(&mut self, offset: u64, len: u64) {
        for (page, _, _) in pieces(offset, len) {
            self.0.entry(page).or_insert_with(empty);
        }
    }

    pub(super) fn collapse(&mut self, offset: u64, len: u64) {
        let mut above = self.0.split_off(&(offset / PAGE));
        let kept = above.split_off(&((offset + len) / PAGE));
        self.0.extend(
            kept.into_iter()
                .map(|(page, bytes)| (page - len / PAGE, bytes)),
        );
    }

    pub(super) fn insert(&mut self, offset: u64, len: u64) {
        let above = self.0.split_off(&(offset / PAGE));
        self.0.extend(
            above
                .into_iter()
                .map(|(page, bytes)| (page + len / PAGE, bytes)),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_punched_range_is_a_hole_and_its_edges_are_zeros() {
        let mut map = PageMap::default();
        map.write(100, &[1; 20_000]);
        map.zero(4000, 9000, false);
        assert_eq!(map.next_data(0), Some((0, 4096)));
        assert_eq!(map.next_data(4096), Some((12_288, 8192)));
        let mut bytes = [9; 1100];
        map.read(3950, &mut bytes[..100]);
        assert_eq!(bytes[..100], [[1; 50], [0; 50]].concat());
        map.collapse(4096, 8192);
        map.read(12_900 - 8192, &mut bytes);
        assert_eq!(bytes[..200], [[0; 100], [1; 100]].concat());
        map.truncate(10);
        assert_eq!(map.next_data(0), Some((0, 4096)));
    }
}
