//! Raw uses by key, in little memory: in runs of 64 keys, since keys are dealt to neighbours.
//!
//! A run has a bit for each key with raw uses. Mostly each has one, and the bit says that. A run in
//! which a key has more also has a byte for each of its 64 keys. A key with 255 or more has an
//! entry in `many`.
//!
//! *Invariants.* `keys` is the number of bits set, and `counted` the number of runs with bytes. No
//! run is empty. A byte is 0 where the bit is not set, else the number of uses, or `MANY`, if that
//! is in `many`. A number that has reached `u32::MAX` stays there, as in an object.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

/// Keys of a run.
const KEYS: usize = 64;
const SHIFT: u32 = KEYS.trailing_zeros();
/// In a byte: the number is in `many`.
const MANY: u8 = u8::MAX;
/// A table of this capacity is not shrunk.
const SMALL: usize = 64;

#[derive(Default)]
struct Run {
    keys: u64,
    counts: Option<Box<[u8; KEYS]>>,
}

/// The raw uses of keys that are in no index.
#[derive(Default)]
pub struct Runs {
    runs: HashMap<u64, Run, RandomState>,
    many: HashMap<u64, u32, RandomState>,
    keys: u64,
    counted: u64,
}

/// The run of a key, its position there, and the bit of that.
fn place(key: u64) -> (u64, usize, u64) {
    let at = key as usize % KEYS;
    (key >> SHIFT, at, 1 << at)
}

impl Runs {
    /// Raw uses of a key.
    #[must_use]
    pub fn get(&self, key: u64) -> u64 {
        let (run, at, bit) = place(key);
        match self.runs.get(&run) {
            Some(run) if run.keys & bit != 0 => match &run.counts {
                Some(counts) if counts[at] == MANY => self.many_of(key),
                Some(counts) => u64::from(counts[at]),
                None => 1,
            },
            _ => 0,
        }
    }

    fn many_of(&self, key: u64) -> u64 {
        self.many.get(&key).copied().map_or(0, u64::from)
    }

    /// Adds raw uses of a key.
    pub(super) fn add(&mut self, key: u64, uses: u64) {
        if uses > 0 {
            self.set(key, self.get(key).saturating_add(uses));
        }
    }

    /// Takes up to `n` raw uses of a key away.
    pub(super) fn forget(&mut self, key: u64, n: u64) {
        let uses = self.get(key);
        if uses > 0 && uses < u64::from(u32::MAX) {
            self.set(key, uses.saturating_sub(n));
        }
    }

    /// Takes all raw uses of a key away, and returns their number.
    pub(super) fn take(&mut self, key: u64) -> u64 {
        let uses = self.get(key);
        if uses > 0 {
            self.set(key, 0);
        }
        uses
    }

    fn set(&mut self, key: u64, uses: u64) {
        let (number, at, bit) = place(key);
        let mut entry = match self.runs.entry(number) {
            Entry::Occupied(entry) => entry,
            Entry::Vacant(_) if uses == 0 => return,
            Entry::Vacant(entry) => entry.insert_entry(Run::default()),
        };
        let run = entry.get_mut();
        let was = run.keys & bit != 0;
        if uses > 1 && run.counts.is_none() {
            let keys = run.keys;
            let ones = std::array::from_fn(|at| (keys >> at & 1) as u8);
            run.counts = Some(Box::new(ones));
            self.counted += 1;
        }
        let byte = u8::try_from(uses).unwrap_or(MANY);
        if let Some(counts) = &mut run.counts {
            if counts[at] == MANY && byte != MANY {
                self.many.remove(&key);
            }
            counts[at] = byte;
        }
        if byte == MANY {
            let uses = u32::try_from(uses).unwrap_or(u32::MAX);
            self.many.insert(key, uses);
        }
        match uses {
            0 => run.keys &= !bit,
            _ => run.keys |= bit,
        }
        let (empty, counted) = (run.keys == 0, run.counts.is_some());
        self.keys = self.keys + u64::from(uses > 0) - u64::from(was);
        if empty {
            entry.remove();
            self.counted -= u64::from(counted);
            self.shrink();
        }
    }

    /// Shrinks a table that once held much more.
    fn shrink(&mut self) {
        let (len, room) = (self.runs.len(), self.runs.capacity());
        if len == 0 {
            self.runs = HashMap::default();
            self.many = HashMap::default();
        } else if room > SMALL && len < room / 4 {
            self.runs.shrink_to(len * 2);
        }
    }

    /// How many keys have raw uses.
    #[must_use]
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Bytes of all of it.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let tables = self.runs.allocation_size() + self.many.allocation_size();
        tables as u64 + self.counted * KEYS as u64
    }

    /// All keys with raw uses and their number, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.runs
            .iter()
            .flat_map(|(&number, run)| {
                let set = (0..KEYS as u64).filter(move |at| run.keys >> at & 1 != 0);
                set.map(move |at| number << SHIFT | at)
            })
            .map(|key| (key, self.get(key)))
    }

    /// The keys of the runs after the first `behind` ones, at least `most` of them if there are so
    /// many, and the number of those runs. The order of runs is stable while no key is added.
    #[must_use]
    pub fn some(&self, behind: usize, most: usize) -> (Vec<u64>, usize) {
        let mut keys = Vec::new();
        let mut runs = 0;
        for (&number, run) in self.runs.iter().skip(behind) {
            if keys.len() >= most {
                break;
            }
            let set = (0..KEYS as u64).filter(|at| run.keys >> at & 1 != 0);
            keys.extend(set.map(|at| number << SHIFT | at));
            runs += 1;
        }
        (keys, runs)
    }
}

impl std::fmt::Debug for Runs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runs")
            .field("keys", &self.keys)
            .field("runs", &self.runs.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Clone, Copy, Debug)]
    enum Op {
        Add(u64),
        Forget(u64),
        Take,
    }

    fn op() -> impl Strategy<Value = Op> {
        let uses = || prop_oneof![1..4_u64, 250..260_u64, Just(u64::from(u32::MAX) - 1)];
        prop_oneof![
            3 => uses().prop_map(Op::Add),
            3 => uses().prop_map(Op::Forget),
            1 => Just(Op::Take),
        ]
    }

    proptest! {
        /// Against a map of numbers.
        #[test]
        fn runs_are_a_map_of_counts(ops in prop::collection::vec((0..200_u64, op()), 0..400)) {
            const FULL: u64 = u32::MAX as u64;
            let mut runs = Runs::default();
            let mut model = BTreeMap::new();
            for (key, op) in ops {
                let held = model.get(&key).copied().unwrap_or(0);
                let now = match op {
                    Op::Add(uses) => {
                        runs.add(key, uses);
                        (held + uses).min(FULL)
                    }
                    Op::Forget(n) => {
                        runs.forget(key, n);
                        if held == FULL { FULL } else { held.saturating_sub(n) }
                    }
                    Op::Take => {
                        prop_assert_eq!(runs.take(key), held);
                        0
                    }
                };
                match now {
                    0 => model.remove(&key),
                    _ => model.insert(key, now),
                };
                prop_assert_eq!(runs.get(key), now);
            }
            prop_assert_eq!(runs.iter().collect::<BTreeMap<_, _>>(), model.clone());
            prop_assert_eq!(runs.keys(), model.len() as u64);
            let many = model.values().filter(|uses| **uses >= u64::from(MANY)).count();
            prop_assert_eq!(runs.many.len(), many);
            let counted = runs.runs.values().filter(|run| run.counts.is_some()).count();
            prop_assert_eq!(runs.counted, counted as u64);
            model.keys().for_each(|key| runs.forget(*key, u64::MAX));
            model.iter().filter(|(_, uses)| **uses == FULL).for_each(|(key, uses)| assert_eq!(runs.take(*key), *uses));
            prop_assert_eq!((runs.keys(), runs.bytes()), (0, 0));
        }
    }

    #[test]
    fn some_keys_are_those_of_whole_runs_and_all_come_in_turn() {
        let mut runs = Runs::default();
        (0..1000).for_each(|key| runs.add(key, 1));
        let (mut all, mut behind) = (Vec::new(), 0);
        loop {
            let (keys, more) = runs.some(behind, 100);
            if keys.is_empty() {
                break;
            }
            assert!((100..164).contains(&keys.len()) || behind + more == 16);
            all.extend(keys);
            behind += more;
        }
        all.sort_unstable();
        assert!(all.into_iter().eq(0..1000));
    }
}
