//! Names alone, and against a map.

use super::*;
use proptest::prelude::*;
use std::collections::btree_map::Entry;

fn enter(names: &mut Names, bytes: &[u8], cookie: u64) {
    let (ino, kind) = (Ino(cookie + 100), FileType::Regular);
    names.enter(cookie, Name { bytes, ino, kind });
}

fn leave(names: &mut Names, bytes: &[u8], cookie: u64) {
    names.leave(bytes, cookie, || u32::from(bytes[0]));
}

fn at(names: &Names, bytes: &[u8]) -> Option<u64> {
    names.find(bytes).map(|(cookie, _)| cookie)
}

#[test]
fn a_name_from_below_that_went_is_remembered_through_a_rename() {
    let mut names = Names::default();
    leave(&mut names, b"old", 5);
    enter(&mut names, b"new", 5);
    leave(&mut names, b"new", 5);
    enter(&mut names, b"newer", 5);
    let place = names.after(0).next().unwrap();
    assert_eq!((place.cookie, place.gone), (5, Some(u32::from(b'o'))));
    assert_eq!(place.now.unwrap().bytes, b"newer");
    assert!(names.is_gone(5));
    assert_eq!(at(&names, b"new"), None);
    assert_eq!(at(&names, b"newer"), Some(5));
}

#[test]
fn replacing_a_name_below_by_one_at_a_new_place_keeps_both_places() {
    let mut names = Names::default();
    leave(&mut names, b"a", 5);
    enter(&mut names, b"a", 9);
    assert_eq!(at(&names, b"a"), Some(9));
    assert_eq!(names.after(0).count(), 2);
    leave(&mut names, b"a", 9);
    assert_eq!(at(&names, b"a"), None);
    assert_eq!(names.after(5).count(), 0);
    assert!(names.is_gone(5) && !names.is_gone(9));
}

#[test]
fn looking_for_a_name_passes_by_none_that_went() {
    let mut names = Names::default();
    for cookie in 1..=100_000 {
        leave(&mut names, b"gone", cookie);
    }
    assert_eq!((names.len(), names.appeared(0).count()), (100_000, 0));
    assert_eq!(at(&names, b"gone"), None);
    enter(&mut names, b"here", 50_000);
    let here = names.appeared(0).map(|(cookie, name)| (cookie, name.bytes));
    assert!(here.eq([(50_000, &b"here"[..])]));
    assert_eq!(at(&names, b"here"), Some(50_000));
}

proptest! {
    #[test]
    fn places_are_those_of_a_map(
        steps in prop::collection::vec((0_u64..700, any::<bool>(), any::<bool>()), 1..1500),
        from in 0_u64..700,
    ) {
        let mut names = Names::default();
        // Each cookie's present name, and whether a name below was removed.
        let mut map: BTreeMap<u64, (bool, Option<Vec<u8>>)> = BTreeMap::new();
        let mut next = 700;
        for (place, enters, at_the_end) in steps {
            let cookie = if at_the_end && enters { next } else { place + 1 };
            let taken = map.get(&cookie).is_some_and(|(_, now)| now.is_some());
            let bytes = format!("{cookie:x}-name").into_bytes();
            if enters && !taken {
                enter(&mut names, &bytes, cookie);
                map.entry(cookie).or_default().1 = Some(bytes);
                next += 1;
            } else if taken {
                leave(&mut names, &bytes, cookie);
                let (gone, now) = map.get_mut(&cookie).unwrap();
                *now = None;
                if !*gone {
                    map.remove(&cookie);
                }
            } else if let Entry::Vacant(entry) = map.entry(cookie) {
                leave(&mut names, b"below", cookie);
                entry.insert((true, None));
            }
        }
        prop_assert_eq!(names.len(), map.values().map(|(gone, now)| {
            usize::from(*gone) + usize::from(now.is_some())
        }).sum::<usize>());
        let found: Vec<_> = names.after(from).map(|place| {
            (place.cookie, place.gone.is_some(), place.now.map(|now| now.bytes.to_vec()))
        }).collect();
        let expected: Vec<_> = map.range(from + 1..).map(|(cookie, (gone, now))| {
            (*cookie, *gone, now.clone())
        }).collect();
        prop_assert_eq!(found, expected);
        for (cookie, (gone, now)) in &map {
            prop_assert_eq!(names.is_gone(*cookie), *gone);
            if let Some(now) = now {
                prop_assert_eq!(at(&names, now), Some(*cookie));
            }
        }
    }
}

#[test]
fn a_cookie_that_went_is_remembered_unless_a_greater_one_is_there() {
    let mut names = Names::default();
    enter(&mut names, b"a", 5);
    assert_eq!(names.remembered(0), 0);
    assert_eq!(names.remembered(9), 9);
    enter(&mut names, b"b", 6);
    names.leave(b"b", 6, || 1);
    assert_eq!((names.next_cookie(), names.remembered(0)), (7, 7));
    enter(&mut names, b"c", 7);
    assert_eq!((names.next_cookie(), names.remembered(7)), (8, 0));
    // From below.
    names.leave(b"z", 20, || 1);
    assert_eq!(names.remembered(7), 21);
}
