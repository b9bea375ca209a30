use crate::group::{GROUP_PAGES, GROUP_SHIFT, mask_in};
use std::collections::BTreeMap;
use std::ops::Range;

/// A set of page numbers, kept as ranges: here pages that take space and have no frame.
///
/// Ranges, because one call may allocate a range of any length, and must not cost more for it.
///
/// *Invariants.* Ranges are not empty and do not touch one another; `pages` is their length.
#[derive(Debug, Default)]
pub(crate) struct RangeSet {
    // From the start of a range to its end.
    ranges: BTreeMap<u64, u64>,
    pages: u64,
}

impl RangeSet {
    /// The number of pages in the set.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// The number of ranges, which is what the set costs.
    pub(crate) fn ranges(&self) -> u64 {
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

    /// The first range of the set that shares a page with `within`, cut to it.
    pub(crate) fn first_in(&self, within: Range<u64>) -> Option<Range<u64>> {
        self.overlaps(within).next()
    }

    /// How many pages of `within` are in the set.
    pub(crate) fn count_in(&self, within: Range<u64>) -> u64 {
        self.overlaps(within)
            .map(|range| range.end - range.start)
            .sum()
    }

    /// A bit for each page of group `group` that is in the set.
    pub(crate) fn mask(&self, group: u64) -> u64 {
        let base = group << GROUP_SHIFT;
        self.overlaps(base..base + GROUP_PAGES)
            .fold(0, |mask, range| mask | mask_in(group, &range))
    }

    /// Adds all pages of `range`.
    pub(crate) fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let Range { mut start, mut end } = range;
        if let Some((&before, &before_end)) = self.ranges.range(..start).next_back()
            && before_end >= start
        {
            start = before;
        }
        for (old_start, old_end) in self.ranges.extract_if(start..=end, |_, _| true) {
            self.pages -= old_end - old_start;
            end = end.max(old_end);
        }
        self.ranges.insert(start, end);
        self.pages += end - start;
    }

    /// Removes all pages of `range`.
    pub(crate) fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let Range { start, end } = range;
        if let Some((_, before_end)) = self.ranges.range_mut(..start).next_back()
            && *before_end > start
        {
            let old_end = std::mem::replace(before_end, start);
            self.pages -= old_end.min(end) - start;
            if old_end > end {
                self.ranges.insert(end, old_end);
                return;
            }
        }
        let mut rest = None;
        for (old_start, old_end) in self.ranges.extract_if(start..end, |_, _| true) {
            self.pages -= old_end.min(end) - old_start;
            if old_end > end {
                rest = Some(old_end);
            }
        }
        if let Some(old_end) = rest {
            self.ranges.insert(end, old_end);
        }
    }

    /// Moves every page from `from` on by `delta`; none of them may land below zero or on a page
    /// of the set that stays.
    pub(crate) fn shift(&mut self, from: u64, delta: i64) {
        let moving: Vec<_> = self.overlaps(from..u64::MAX).collect();
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

    fn check(set: &RangeSet, model: &BTreeSet<u64>) {
        let mut pages = BTreeSet::new();
        let mut last_end = None;
        for (&start, &end) in &set.ranges {
            assert!(start < end && last_end.is_none_or(|last| last < start));
            last_end = Some(end);
            pages.extend(start..end);
        }
        assert_eq!(&pages, model);
        assert_eq!(set.pages(), model.len() as u64);
    }

    proptest! {
        #[test]
        fn it_is_the_set_of_the_pages_put_in(
            steps in prop::collection::vec((0..4_u8, 0..300_u64, 0..80_u64), 1..200)
        ) {
            let mut set = RangeSet::default();
            let mut model = BTreeSet::new();
            for (kind, start, len) in steps {
                let range = start..start + len;
                match kind {
                    0 => {
                        set.insert(range.clone());
                        model.extend(range.clone());
                    }
                    1 => {
                        set.remove(range.clone());
                        model.retain(|page| !range.contains(page));
                    }
                    2 => {
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
                prop_assert_eq!(set.count_in(range.clone()), model.range(range).count() as u64);
                for group in 0..5 {
                    let bits = model.range(group * 64..group * 64 + 64).map(|p| 1 << (p % 64));
                    prop_assert_eq!(set.mask(group), bits.sum::<u64>());
                }
            }
        }
    }
}
