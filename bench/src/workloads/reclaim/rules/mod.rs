//! Rules by which a cache may choose what goes, as simulations: held against the engine on the accesses of the same run.
//!
//! A rule knows objects by their numbers, in the order in which they were made, and holds as many of them as the engine
//! did. None of them is what the engine does.

mod clock;
mod list;
mod lru;
mod s3_fifo;
mod sieve;
mod sweep;

use super::beside::Met;

/// A cache of a number of objects.
trait Rule {
    /// An object is used; true if it is held. Afterwards it is, whatever went for it.
    fn access(&mut self, object: u32) -> bool;
}

/// How a rule is made, for caches of so many of so many objects.
type Make = fn(capacity: usize, objects: usize) -> Box<dyn Rule>;

/// All of them, by what they are called in tables.
const RULES: [(&str, Make); 6] = [
    ("hand", |capacity, objects| {
        Box::new(sweep::Sweep::new(capacity, objects))
    }),
    ("born referenced", |capacity, objects| {
        Box::new(clock::Clock::born_referenced(capacity, objects))
    }),
    ("second use", |capacity, objects| {
        Box::new(clock::Clock::second_use(capacity, objects))
    }),
    ("lru", |capacity, objects| {
        Box::new(lru::Lru::new(capacity, objects))
    }),
    ("sieve", |capacity, objects| {
        Box::new(sieve::Sieve::new(capacity, objects))
    }),
    ("s3-fifo", |capacity, objects| {
        Box::new(s3_fifo::S3Fifo::new(capacity, objects))
    }),
];

/// What each rule finds of the accesses that count, if it holds so many of so many objects. `replay` goes through all of them.
pub(super) fn held_against(
    (capacity, objects): (u64, usize),
    replay: impl Fn(&mut dyn FnMut(u32, bool)),
) -> Vec<(&'static str, Met)> {
    let capacity = usize::try_from(capacity)
        .unwrap_or(usize::MAX)
        .clamp(2, objects.max(2));
    let each = RULES.into_iter().map(|(name, make)| {
        let mut rule = make(capacity, objects);
        let mut met = Met::default();
        replay(&mut |object, counts| {
            let hit = rule.access(object);
            met.uses += u64::from(counts);
            met.hits += u64::from(counts && hit);
        });
        (name, met)
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;

    #[test]
    fn only_accesses_that_count_are_counted() {
        let told = held_against((3, 10), |access| {
            for (object, counts) in [(1, false), (2, true), (1, true), (2, false), (1, true)] {
                access(object, counts);
            }
        });
        assert_eq!(told.len(), RULES.len());
        for (name, met) in told {
            assert_eq!(met, Met { uses: 3, hits: 2 }, "{name}");
        }
    }

    /// Hits of an order of accesses, one letter each.
    pub(super) fn hits(rule: &mut dyn Rule, accesses: &str) -> String {
        let hit = |letter: u8| match rule.access(u32::from(letter - b'a')) {
            true => '+',
            false => '-',
        };
        accesses.bytes().map(hit).collect()
    }

    #[test]
    fn every_rule_holds_as_much_as_it_may_and_no_more() {
        const CAPACITY: usize = 40;
        for (name, make) in RULES {
            let mut rule = make(CAPACITY, 400);
            // As many as fit are all kept, however they are used.
            for round in 0..4 {
                for object in 0..CAPACITY as u32 {
                    assert_eq!(rule.access(object), round > 0, "{name} {object}");
                }
            }
            // Of a uniform draw from ten times as many, about a tenth is found.
            let mut chance = Chance::seeded(7);
            let draws = 40_000;
            let found = (0..draws).filter(|_| rule.access(chance.below(400) as u32));
            let part = found.count() as f64 / f64::from(draws);
            assert!((0.08..0.12).contains(&part), "{name}: {part}");
        }
    }

    #[test]
    fn a_loop_over_a_little_more_than_fits_defeats_all_rules_of_one_queue() {
        for (name, make) in RULES {
            let mut rule = make(100, 105);
            let mut found = 0;
            for object in (0..20).flat_map(|_| 0..105) {
                found += u32::from(rule.access(object));
            }
            match name {
                "s3-fifo" => assert!(found > 500, "{name}: {found}"),
                "sieve" => {}
                _ => assert!(found <= 200, "{name}: {found}"),
            }
        }
    }
}
