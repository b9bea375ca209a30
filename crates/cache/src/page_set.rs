//! A set of pages.

use crate::frame::bits::mask;
use crate::sizes::GROUP_PAGES;
use std::collections::BTreeMap;
use std::ops::Range;

/// A set of page numbers, kept as ranges: here pages that take space and have no frame.
///
/// One call may allocate a range of any length at constant cost. A file that is filled in random
/// order has at most one range more than it has pages in memory.
///
/// *Invariants.* Ranges are not empty and do not touch; `pages` is the number of all pages.
#[derive(Debug, Default)]
pub(crate) struct PageSet {
    /// From the start of a range to its end.
    ranges: BTreeMap<u64, u64>,
    pages: u64,
}

impl PageSet {
    /// The number of pages in the set.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// The number of entries, which is what the set costs.
    pub(crate) fn entries(&self) -> u64 {
        self.ranges.len() as u64
    }

    /// The ranges that share a page with `within`, cut to it, in order.
    fn overlaps(&self, within: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let before = self.ranges.range(..within.start).next_back();
        let inside = self
            .ranges
            .range(within.start..within.end.max(within.start));
        before
            .into_iter()
            .chain(inside)
            .map(move |(&start, &end)| start.max(within.start)..end.min(within.end))
            .filter(|range| !range.is_empty())
    }

    /// A bit for each page of a group that is in the set.
    pub(crate) fn mask(&self, group: u64) -> u64 {
        let first = group * GROUP_PAGES;
        self.overlaps(first..first + GROUP_PAGES)
            .fold(0, |bits, pages| {
                bits | mask(pages.start - first..pages.end - first)
            })
    }

    /// The first run of consecutive pages of the set within `within`.
    pub(crate) fn first_in(&self, within: Range<u64>) -> Option<Range<u64>> {
        self.overlaps(within).next()
    }

    /// How many pages of `within` are in the set.
    pub(crate) fn count_in(&self, within: Range<u64>) -> u64 {
        self.overlaps(within)
            .map(|range| range.end - range.start)
            .sum()
    }

    /// Adds all pages of `range`.
    pub(crate) fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let Range { mut start, mut end } = range;
        self.pages += end - start - self.count_in(start..end);
        if let Some((&before, &before_end)) = self.ranges.range(..start).next_back()
            && before_end >= start
        {
            start = before;
        }
        while let Some(old_end) = self.pop_first(start..end.saturating_add(1)) {
            end = end.max(old_end);
        }
        self.ranges.insert(start, end);
    }

    /// Removes all pages of `range`.
    pub(crate) fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() || self.ranges.is_empty() {
            return;
        }
        let Range { start, end } = range;
        self.pages -= self.count_in(start..end);
        if let Some((_, before_end)) = self.ranges.range_mut(..start).next_back()
            && *before_end > start
        {
            let old_end = std::mem::replace(before_end, start);
            if old_end > end {
                self.ranges.insert(end, old_end);
                return;
            }
        }
        let mut rest = None;
        while let Some(old_end) = self.pop_first(start..end) {
            if old_end > end {
                rest = Some(old_end);
            }
        }
        if let Some(old_end) = rest {
            self.ranges.insert(end, old_end);
        }
    }

    /// Takes out the first range that starts in `within`, and returns its end.
    fn pop_first(&mut self, within: Range<u64>) -> Option<u64> {
        let (&start, _) = self.ranges.range(within).next()?;
        self.ranges.remove(&start)
    }

    /// Moves every page from `from` on by `delta`. None may arrive below zero or at a page of the
    /// set that stays.
    pub(crate) fn shift(&mut self, from: u64, delta: i64) {
        let mut moving = Vec::new();
        let mut next = from;
        while let Some(range) = self.first_in(next..u64::MAX) {
            next = range.end;
            moving.push(range);
        }
        self.remove(from..u64::MAX);
        for Range { start, end } in moving {
            self.insert(start.wrapping_add_signed(delta)..end.wrapping_add_signed(delta));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn check(set: &PageSet, model: &BTreeSet<u64>) {
        let mut pages = BTreeSet::new();
        let mut next = 0;
        while let Some(range) = set.first_in(next..u64::MAX) {
            assert!(next == 0 || range.start > next, "they could be one");
            next = range.end;
            pages.extend(range);
        }
        assert_eq!(&pages, model);
        assert_eq!(set.pages(), model.len() as u64);
    }

    proptest! {
        #[test]
        fn it_is_the_set_of_the_pages_put_in(
            steps in prop::collection::vec((0..5_u8, 0..400_u64, 0..200_u64), 1..100)
        ) {
            let mut set = PageSet::default();
            let mut model = BTreeSet::new();
            for (kind, start, len) in steps {
                // Many ranges begin or end with a group.
                let len = if len > 150 { (len - 150).next_multiple_of(64) - start % 64 } else { len };
                let range = start..start + len;
                match kind {
                    0 | 1 => {
                        set.insert(range.clone());
                        model.extend(range.clone());
                    }
                    2 => {
                        set.remove(range.clone());
                        model.retain(|page| !range.contains(page));
                    }
                    3 => {
                        set.shift(start, len.cast_signed());
                        model = model.iter().map(|&p| if p < start { p } else { p + len }).collect();
                    }
                    _ => {
                        set.remove(range.clone());
                        set.shift(range.end, -len.cast_signed());
                        model.retain(|page| !range.contains(page));
                        model = model.iter().map(|&p| if p < start { p } else { p - len }).collect();
                    }
                }
                check(&set, &model);
                prop_assert_eq!(set.count_in(range.clone()), model.range(range.clone()).count() as u64);
                let first = model.range(range.clone()).next().copied();
                let found = set.first_in(range.clone());
                prop_assert_eq!(found.as_ref().map(|found| found.start), first);
                if let Some(found) = found {
                    prop_assert!(found.clone().all(|page| model.contains(&page)));
                    prop_assert!(found.end == range.end || !model.contains(&found.end));
                }
                for group in 0..8 {
                    let bits = model.range(group * 64..group * 64 + 64).map(|p| 1 << (p % 64));
                    prop_assert_eq!(set.mask(group), bits.sum::<u64>());
                }
            }
        }
    }

    #[test]
    fn pages_in_any_order_are_one_range_in_the_end() {
        let mut set = PageSet::default();
        for (inserted, page) in (1..).zip((0..6400).map(|number| number * 4827 % 6400)) {
            set.insert(page..page + 1);
            assert!(set.entries() <= inserted.min(6401 - inserted));
        }
        assert_eq!((set.pages(), set.entries()), (6400, 1));
        set.insert(u64::MAX / 2..u64::MAX);
        assert_eq!(set.entries(), 2);
        set.remove(1..u64::MAX);
        assert_eq!((set.pages(), set.entries()), (1, 1));
    }
}
