//! Places of a directory at which the layers below have names that went.
//!
//! Who empties a directory mostly goes by its listing, so that places come in order: those lie side by
//! side in *runs*, the last of which is at hand.
//!
//! *Invariants.* A run is not empty, ascends, and its key is its first place, which is above all of the
//! run before; those of the last run are above all others.

use std::collections::BTreeMap;

use holdfast_sync::collections::entry_bytes;

/// Places of a run.
const RUN: usize = 128;

/// A place, and the hash of the name that was there.
type Place = (u64, u32);

/// The places, with the hashes of the names that were there.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct Gone {
    runs: BTreeMap<u64, Vec<Place>>,
    last: Vec<Place>,
    len: usize,
}

fn place_in(run: &[Place], cookie: u64) -> Result<usize, usize> {
    match run.last() {
        Some((last, _)) if *last < cookie => Err(run.len()),
        _ => run.binary_search_by_key(&cookie, |(place, _)| *place),
    }
}

/// Puts a place into a run; was it not there? `upper`: the upper half, if they would be too many.
fn put(run: &mut Vec<Place>, place: Place, upper: &mut Vec<Place>) -> bool {
    match place_in(run, place.0) {
        Ok(at) => {
            run[at] = place;
            return false;
        }
        Err(at) if run.len() < RUN => run.insert(at, place),
        // Behind a full run another begins.
        Err(RUN) => upper.push(place),
        Err(at) => {
            *upper = run.split_off(RUN / 2);
            match at.checked_sub(RUN / 2) {
                Some(at) => upper.insert(at, place),
                None => run.insert(at, place),
            }
        }
    }
    true
}

impl Gone {
    /// The name at this place went.
    pub(in crate::store) fn insert(&mut self, cookie: u64, hash: u32) {
        let place = (cookie, hash);
        let mut upper = Vec::new();
        let first = self.last.first().map_or(0, |(first, _)| *first);
        let new = if cookie >= first {
            let new = put(&mut self.last, place, &mut upper);
            if !upper.is_empty() {
                let full = std::mem::replace(&mut self.last, upper);
                self.runs.insert(full[0].0, full);
            }
            new
        } else if let Some((_, run)) = self.runs.range_mut(..=cookie).next_back() {
            let new = put(run, place, &mut upper);
            if let Some((first, _)) = upper.first() {
                self.runs.insert(*first, upper);
            }
            new
        } else {
            // Before all others: the first run begins earlier now.
            let mut run = self.runs.pop_first().map_or_else(Vec::new, |(_, run)| run);
            let new = put(&mut run, place, &mut upper);
            if let Some((first, _)) = upper.first() {
                self.runs.insert(*first, upper);
            }
            self.runs.insert(run[0].0, run);
            new
        };
        self.len += usize::from(new);
    }

    /// Did the name at this place go?
    pub(in crate::store) fn contains(&self, cookie: u64) -> bool {
        let run = match self.last.first() {
            Some((first, _)) if *first <= cookie => Some(&self.last),
            _ => self.runs.range(..=cookie).next_back().map(|(_, run)| run),
        };
        run.is_some_and(|run| place_in(run, cookie).is_ok())
    }

    /// Bytes of memory.
    pub(in crate::store) fn memory(&self) -> usize {
        let runs = self
            .runs
            .values()
            .map(|run| entry_bytes::<(u64, Vec<Place>)>() + run.capacity() * size_of::<Place>());
        runs.sum::<usize>() + self.last.capacity() * size_of::<Place>()
    }

    /// How many there are.
    pub(in crate::store) fn len(&self) -> usize {
        self.len
    }

    /// Those behind a place, in order.
    pub(in crate::store) fn after(&self, cookie: u64) -> impl Iterator<Item = Place> {
        let from = self.runs.range(..=cookie).next_back();
        let from = from.map_or(0, |(first, _)| *first);
        let runs = self.runs.range(from..).map(|(_, run)| run);
        let all = runs.chain(std::iter::once(&self.last));
        all.flat_map(move |run| {
            let behind = run.partition_point(|(place, _)| *place <= cookie);
            run[behind..].iter().copied()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Places in order, backwards, and in none.
    fn places() -> impl Strategy<Value = Vec<u64>> {
        let run = (0_u64..3000, 0_u64..400, 0..3_u8).prop_map(|(start, len, order)| {
            let run = start..start + len;
            match order {
                0 => run.collect::<Vec<_>>(),
                1 => run.rev().collect(),
                _ => run.map(|place| place * 2_654_435_761 % 4001).collect(),
            }
        });
        prop::collection::vec(run, 0..6).prop_map(|runs| runs.concat())
    }

    proptest! {
        #[test]
        fn it_is_an_ordered_map(places in places(), after in 0_u64..4100) {
            let (mut gone, mut model) = (Gone::default(), BTreeMap::new());
            for (hash, place) in (0..).zip(places) {
                gone.insert(place, hash);
                model.insert(place, hash);
                prop_assert_eq!(gone.len(), model.len());
            }
            for place in 0..4100 {
                prop_assert_eq!(gone.contains(place), model.contains_key(&place));
            }
            for after in [after, 0, u64::MAX] {
                let behind = (std::ops::Bound::Excluded(after), std::ops::Bound::Unbounded);
                let expected = model.range(behind).map(|(place, hash)| (*place, *hash));
                prop_assert!(gone.after(after).eq(expected));
            }
        }
    }
}
