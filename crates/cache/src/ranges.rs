use std::collections::BTreeMap;
use std::ops::Range;

/// A set of numbers, kept as ranges.
///
/// *Invariants.* Ranges are not empty and do not touch one another.
#[derive(Debug, Default)]
pub(crate) struct RangeSet {
    // From the start of a range to its end.
    ranges: BTreeMap<u64, u64>,
}

impl RangeSet {
    /// The number of ranges, which is what the set costs.
    pub(crate) fn ranges(&self) -> u64 {
        self.ranges.len() as u64
    }

    /// The ranges that share a number with `within`, cut to it, in order.
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

    /// The first range of the set that shares a number with `within`, cut to it.
    pub(crate) fn first_in(&self, within: Range<u64>) -> Option<Range<u64>> {
        self.overlaps(within).next()
    }

    /// How many numbers of `within` are in the set.
    pub(crate) fn count_in(&self, within: Range<u64>) -> u64 {
        self.overlaps(within)
            .map(|range| range.end - range.start)
            .sum()
    }

    /// Is this one in the set?
    pub(crate) fn contains(&self, number: u64) -> bool {
        let before = self.ranges.range(..=number).next_back();
        before.is_some_and(|(_, end)| number < *end)
    }

    /// Adds all numbers of `range`.
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
        for (_, old_end) in self.ranges.extract_if(start..=end, |_, _| true) {
            end = end.max(old_end);
        }
        self.ranges.insert(start, end);
    }

    /// Removes all numbers of `range`.
    pub(crate) fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let Range { start, end } = range;
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
        for (_, old_end) in self.ranges.extract_if(start..end, |_, _| true) {
            if old_end > end {
                rest = Some(old_end);
            }
        }
        if let Some(old_end) = rest {
            self.ranges.insert(end, old_end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn check(set: &RangeSet, model: &BTreeSet<u64>) {
        let mut numbers = BTreeSet::new();
        let mut last_end = None;
        for (&start, &end) in &set.ranges {
            assert!(start < end && last_end.is_none_or(|last| last < start));
            last_end = Some(end);
            numbers.extend(start..end);
        }
        assert_eq!(&numbers, model);
    }

    proptest! {
        #[test]
        fn it_is_the_set_of_the_numbers_put_in(
            steps in prop::collection::vec((any::<bool>(), 0..300_u64, 0..80_u64), 1..200)
        ) {
            let mut set = RangeSet::default();
            let mut model = BTreeSet::new();
            for (comes, start, len) in steps {
                let range = start..start + len;
                if comes {
                    set.insert(range.clone());
                    model.extend(range.clone());
                } else {
                    set.remove(range.clone());
                    model.retain(|number| !range.contains(number));
                }
                check(&set, &model);
                prop_assert_eq!(set.contains(start), model.contains(&start));
                let first = model.range(range.clone()).next().copied();
                prop_assert_eq!(set.first_in(range.clone()).map(|found| found.start), first);
                prop_assert_eq!(set.count_in(range.clone()), model.range(range).count() as u64);
            }
        }
    }
}
