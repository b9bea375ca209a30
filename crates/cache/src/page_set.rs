//! A set of pages.

use crate::group::{GROUP_PAGES, GROUP_SHIFT, mask};
use crate::ranges::RangeSet;
use std::collections::BTreeMap;
use std::ops::Range;

/// A set of page numbers: here pages that take space and have no frame.
///
/// Whole groups are kept as ranges, because one call may allocate a range of any length, and must not cost more for it;
/// what is there of others as a bit for each page, because pages may go and come in any order, of a large file that is
/// filled in none.
///
/// *Invariants.* No group is among both, and none of the others has no page or all; `pages` is the number of all.
#[derive(Debug, Default)]
pub(crate) struct PageSet {
    whole: RangeSet,
    parts: BTreeMap<u64, u64>,
    pages: u64,
}

fn group_of(page: u64) -> u64 {
    page >> GROUP_SHIFT
}

fn place_of(page: u64) -> u64 {
    page % GROUP_PAGES
}

fn count(pages: u64) -> u64 {
    u64::from(pages.count_ones())
}

/// The groups of which a range has some pages, with those, and those of which it has all.
fn groups(range: &Range<u64>) -> (impl Iterator<Item = (u64, u64)>, Range<u64>) {
    let (start, end) = (place_of(range.start), place_of(range.end));
    let (first, last) = (group_of(range.start), group_of(range.end));
    let whole = first + u64::from(start > 0)..last;
    let edges = if range.is_empty() {
        [0; 2]
    } else if first == last {
        [mask(start..end), 0]
    } else if start == 0 {
        [0, mask(0..end)]
    } else {
        [mask(start..GROUP_PAGES), mask(0..end)]
    };
    let whole = match whole.is_empty() {
        true => 0..0,
        false => whole,
    };
    let edges = [first, last].into_iter().zip(edges);
    (edges.filter(|(_, pages)| *pages != 0), whole)
}

impl PageSet {
    /// The number of pages in the set.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// The number of entries, which is what the set costs.
    pub(crate) fn entries(&self) -> u64 {
        self.whole.ranges() + self.parts.len() as u64
    }

    /// A bit for each page of a group that is in the set.
    pub(crate) fn mask(&self, group: u64) -> u64 {
        match self.parts.get(&group) {
            Some(pages) => *pages,
            None if self.whole.contains(group) => u64::MAX,
            None => 0,
        }
    }

    /// The first pages of the set among `within` that follow each other.
    pub(crate) fn first_in(&self, within: Range<u64>) -> Option<Range<u64>> {
        let start = self.next(within.start, within.end)?;
        Some(start..self.behind(start, within.end))
    }

    /// The first page from `from` on, before `end`.
    fn next(&self, from: u64, end: u64) -> Option<u64> {
        if from >= end {
            return None;
        }
        let group = group_of(from);
        let here = self.mask(group) & u64::MAX << place_of(from);
        let found = if here != 0 {
            (group << GROUP_SHIFT) + u64::from(here.trailing_zeros())
        } else {
            let later = group + 1..group_of(end - 1) + 1;
            if later.is_empty() {
                return None;
            }
            let whole = self.whole.first_in(later.clone());
            let whole = whole.map(|groups| groups.start << GROUP_SHIFT);
            let part = self.parts.range(later).next();
            let part = part
                .map(|(group, pages)| (group << GROUP_SHIFT) + u64::from(pages.trailing_zeros()));
            whole.into_iter().chain(part).min()?
        };
        (found < end).then_some(found)
    }

    /// The page behind those that follow this one, which is in the set; `end` at most.
    fn behind(&self, mut page: u64, end: u64) -> u64 {
        while page < end {
            let group = group_of(page);
            if let Some(pages) = self.parts.get(&group) {
                let more = u64::from((!(pages >> place_of(page))).trailing_zeros());
                page += more;
                if place_of(page) != 0 || more == 0 {
                    break;
                }
            } else {
                match self.whole.first_in(group..group_of(end - 1) + 1) {
                    Some(groups) if groups.start == group => page = groups.end << GROUP_SHIFT,
                    _ => break,
                }
            }
        }
        page.min(end)
    }

    /// How many pages of `within` are in the set.
    pub(crate) fn count_in(&self, within: Range<u64>) -> u64 {
        let (edges, whole) = groups(&within);
        let of_edges = edges.map(|(group, pages)| count(self.mask(group) & pages));
        let of_parts = self.parts.range(whole.clone());
        let of_parts = of_parts.map(|(_, pages)| count(*pages)).sum::<u64>();
        of_edges.sum::<u64>() + of_parts + GROUP_PAGES * self.whole.count_in(whole)
    }

    /// Adds all pages of `range`.
    pub(crate) fn insert(&mut self, range: Range<u64>) {
        let (edges, whole) = groups(&range);
        for (group, pages) in edges {
            self.add(group, pages);
        }
        if !whole.is_empty() {
            self.clear(whole.clone());
            self.pages += GROUP_PAGES * (whole.end - whole.start);
            self.whole.insert(whole);
        }
    }

    fn add(&mut self, group: u64, pages: u64) {
        if self.whole.contains(group) {
            return;
        }
        let here = self.parts.entry(group).or_default();
        self.pages += count(pages & !*here);
        *here |= pages;
        if *here == u64::MAX {
            self.parts.remove(&group);
            self.whole.insert(group..group + 1);
        }
    }

    /// Removes all pages of `range`.
    pub(crate) fn remove(&mut self, range: Range<u64>) {
        if self.pages == 0 {
            return;
        }
        let (edges, whole) = groups(&range);
        for (group, pages) in edges {
            self.take(group, pages);
        }
        if !whole.is_empty() {
            self.clear(whole);
        }
    }

    fn take(&mut self, group: u64, pages: u64) {
        if let Some(here) = self.parts.get_mut(&group) {
            self.pages -= count(pages & *here);
            *here &= !pages;
            if *here == 0 {
                self.parts.remove(&group);
            }
        } else if self.whole.contains(group) {
            self.whole.remove(group..group + 1);
            self.pages -= count(pages);
            // Not the whole group, hence some are left.
            self.parts.insert(group, !pages);
        }
    }

    /// Removes all pages of these groups.
    fn clear(&mut self, groups: Range<u64>) {
        self.pages -= GROUP_PAGES * self.whole.count_in(groups.clone());
        self.whole.remove(groups.clone());
        let parts = self.parts.extract_if(groups, |_, _| true);
        self.pages -= parts.map(|(_, pages)| count(pages)).sum::<u64>();
    }

    /// Moves every page from `from` on by `delta`; none of them may land below zero or on a page
    /// of the set that stays.
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
        for (group, here) in &set.parts {
            assert!(*here != 0 && *here != u64::MAX && !set.whole.contains(*group));
        }
    }

    proptest! {
        #[test]
        fn it_is_the_set_of_the_pages_put_in(
            steps in prop::collection::vec((0..5_u8, 0..400_u64, 0..200_u64), 1..100)
        ) {
            let mut set = PageSet::default();
            let mut model = BTreeSet::new();
            for (kind, start, len) in steps {
                // Many begin or end with a group.
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
    fn pages_in_any_order_cost_a_word_for_each_group() {
        let mut set = PageSet::default();
        for page in (0..64_000).map(|number| number * 48_271 % 64_000) {
            set.insert(page..page + 1);
            assert!(set.entries() <= 1000);
        }
        assert_eq!((set.pages(), set.entries()), (64_000, 1));
        set.insert(u64::MAX / 2..u64::MAX);
        assert!(set.entries() <= 4);
        set.remove(1..u64::MAX);
        assert_eq!((set.pages(), set.entries()), (1, 1));
    }
}
