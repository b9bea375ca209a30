//! Scans, ranges and trimming.

use super::Fixture;
use holdfast_sync::{Index, epoch};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes of a node.
const NODE: u64 = 512;

/// All keys in a range, by calls with a guard each.
fn keys(fixture: &Fixture, from: u64, to: u64) -> Vec<u64> {
    let mut keys = Vec::new();
    let mut next = Some(from);
    while let Some(from) = next {
        let before = keys.len();
        next = fixture.index.scan(from, to, &epoch::pin(), |held| {
            held.check(held.key());
            keys.push(held.key());
            true
        });
        assert!(keys.len() - before <= 64, "one batch a call");
        assert!(next.is_none_or(|next| next > from && next < to));
    }
    keys
}

const SPREAD: [u64; 10] = [
    1,
    2,
    63,
    64,
    4095,
    4096,
    300_000,
    1 << 40,
    1 << 60,
    u64::MAX - 1,
];

#[test]
fn a_scan_visits_each_key_of_its_range_in_order() {
    let fixture = Fixture::with(SPREAD);
    assert_eq!(keys(&fixture, 0, u64::MAX), SPREAD);
    for from in SPREAD {
        for to in SPREAD {
            let expected: Vec<u64> = SPREAD
                .into_iter()
                .filter(|k| (from..to).contains(k))
                .collect();
            assert_eq!(keys(&fixture, from, to), expected, "{from}..{to}");
        }
    }
    assert!(keys(&Fixture::new(), 0, u64::MAX).is_empty());
}

#[test]
fn a_scan_that_is_stopped_goes_on_behind_that_object() {
    let fixture = Fixture::with(1..=200);
    let mut seen = Vec::new();
    let mut next = Some(0);
    while let Some(from) = next {
        next = fixture.index.scan(from, u64::MAX, &epoch::pin(), |held| {
            seen.push(held.key());
            held.key() % 7 != 0
        });
    }
    assert!(seen.iter().copied().eq(1..=200));
}

#[test]
fn a_scan_visits_freeing_objects_too() {
    let fixture = Fixture::with(1..=3);
    let guard = epoch::pin();
    let held = fixture.index.peek(2, &guard).unwrap();
    let freeing = fixture.index.begin_evict(held).unwrap();
    assert_eq!(keys(&fixture, 0, u64::MAX), [1, 2, 3]);
    fixture.index.free(freeing);
    assert_eq!(keys(&fixture, 0, u64::MAX), [1, 3]);
}

#[test]
fn ranges_are_disjoint_cover_everything_and_are_about_equal() {
    let dense: Vec<u64> = (1..=10_000).collect();
    let sparse: Vec<u64> = (1..=1000).map(|key| key * 1_000_003).collect();
    for set in [dense, sparse, SPREAD.to_vec(), Vec::new()] {
        let fixture = Fixture::with(set.iter().copied());
        for parts in [0, 1, 2, 3, 8] {
            let ranges = fixture.index.ranges(parts);
            assert!(!ranges.is_empty() && ranges.len() <= parts.max(1));
            assert_eq!((ranges[0].0, ranges[ranges.len() - 1].1), (0, u64::MAX));
            assert!(ranges.windows(2).all(|pair| pair[0].1 == pair[1].0));
            let share = set.len().div_ceil(parts.max(1));
            let mut all = Vec::new();
            for (from, to) in ranges {
                let part = keys(&fixture, from, to);
                assert!(part.len() <= share + 64, "{} of {}", part.len(), set.len());
                all.extend(part);
            }
            assert_eq!(all, set);
        }
    }
}

#[test]
fn trimming_keeps_what_is_there_and_lets_the_rest_be_used_again() {
    let fixture = Fixture::with(1..=5000);
    for key in (1..=5000).filter(|key| key % 1000 != 0) {
        assert!(fixture.evict(key));
    }
    fixture.index.trim();
    fixture.index.trim();
    assert_eq!(keys(&fixture, 0, u64::MAX), [1000, 2000, 3000, 4000, 5000]);
    for key in 1..=5000 {
        assert_eq!(fixture.publish(key).is_some(), key % 1000 != 0);
    }
    assert!(keys(&fixture, 0, u64::MAX).into_iter().eq(1..=5000));
    for key in 1..=5000 {
        assert!(fixture.evict(key));
    }
    fixture.index.trim();
    assert_eq!((fixture.index.len(), fixture.index.node_bytes()), (0, 0));
    fixture.settle(0);
    Index::<u8>::new().trim();
}

#[test]
fn leaves_of_keys_that_come_and_go_do_not_pile_up() {
    let fixture = Fixture::with(1..=5);
    for key in 6..20_000 {
        assert!(fixture.publish(key).unwrap().release().is_none());
        assert!(fixture.evict(key - 5), "a spool that holds five");
    }
    let bytes = fixture.index.node_bytes();
    assert!(bytes < 30 * NODE, "{bytes}");
    assert_eq!(fixture.index.len(), 5);
}

#[test]
fn one_huge_key_makes_no_more_nodes_than_its_path() {
    let fixture = Fixture::with([1 << 60, 1]);
    // Eleven levels decide its bits; the other key has a leaf of its own.
    assert_eq!(fixture.index.node_bytes(), 12 * NODE);
    assert!(fixture.evict(1 << 60));
    fixture.index.trim();
    assert_eq!(fixture.index.node_bytes(), NODE);
}

#[test]
fn large_ranges_are_about_equal() {
    // The first half of the keys has every object, the other one of sixteen.
    let keys = (1..=100_000).chain((100_001..=200_000).step_by(16));
    let fixture = Fixture::with(keys);
    let all = fixture.index.len() as usize;
    for parts in [2, 3, 5] {
        let ranges = fixture.index.ranges(parts);
        assert_eq!(ranges.len(), parts);
        for (from, to) in ranges {
            let part = self::keys(&fixture, from, to).len();
            let share = all / parts;
            assert!(part.abs_diff(share) < share / 10, "{part} for {share}");
        }
    }
}

#[test]
fn an_index_of_many_objects_ends_all_of_them_whoever_uses_some() {
    let fixture = Fixture::with((1..=200_000).map(|key| key * 3));
    let used: Vec<_> = (1..=50)
        .filter_map(|key| fixture.index.get(key * 3000))
        .collect();
    assert_eq!(used.len(), 50);
    let left = Arc::clone(&fixture.left);
    drop(fixture);
    assert_eq!(left.load(Ordering::Relaxed), 50);
    for used in &used {
        used.check(used.key());
    }
    drop(used);
    assert_eq!(left.load(Ordering::Relaxed), 0);
}
