use crate::epoch;
use crate::frame::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

type Map = Frames<BTreeSet<u64>>;

/// Made first in a test, it leaves no garbage to a thread that has ended: a leak detector may look.
struct Finish;

impl Drop for Finish {
    fn drop(&mut self) {
        if !thread::panicking() {
            epoch::synchronize();
        }
    }
}

fn frame(bytes: &[u8]) -> Frame {
    let mut frame = Frame::with_capacity(bytes.len());
    frame.push(bytes);
    frame
}

fn content(map: &Map, number: u64) -> Option<Vec<u8>> {
    let guard = epoch::pin();
    let snapshot = map.snapshot(&guard).expect("nobody writes");
    let bytes = snapshot.get(number).map(<[u8]>::to_vec);
    assert!(snapshot.holds());
    bytes
}

#[test]
fn an_empty_map_is_16_bytes() {
    let _finish = Finish;
    assert_eq!(size_of::<Map>(), 16);
}

#[test]
fn a_freed_frame_is_the_next_one_made() {
    let _finish = Finish;
    let mut first = Frame::with_capacity(FRAME_SIZE);
    first.push(b"first");
    let start = first.bytes().as_ptr();
    drop(first);
    let small = Frame::with_capacity(64);
    let mut second = Frame::with_capacity(FRAME_SIZE);
    assert_eq!((second.bytes().as_ptr(), small.filled()), (start, 0));
    // More than a thread keeps, and all of it given back when it ends.
    drop([(); 100].map(|()| Frame::with_capacity(FRAME_SIZE)));
}

#[test]
fn sectors_fill_a_frame_in_any_order_and_what_was_met_or_kept_before_stays() {
    let _finish = Finish;
    let map = Map::new();
    let mut first = Frame::with_capacity(FRAME_SIZE);
    first.put(2048, &[1; 512]);
    map.lock().put(3, first);
    let guard = epoch::pin();
    let looked = || {
        let snapshot = map.snapshot(&guard).unwrap();
        let bytes = snapshot.get(3).unwrap();
        snapshot.holds().then_some(bytes)
    };
    assert_eq!(looked(), None, "it has a gap");
    let kept = map.lock().show(3).and_then(Stored::share).unwrap();
    assert!(map.lock().extend(3, 0, &[2; 1024]));
    assert!(!map.lock().extend(3, 2048, &[9; 512]), "filled already");
    assert!(!map.lock().extend(3, 1024, &[9; 1536]), "filled in part");
    assert!(!map.lock().extend(3, 1100, &[9; 412]), "no whole sector");
    assert!(
        !map.lock().extend(3, FRAME_SIZE, &[9; 512]),
        "behind its end"
    );
    let mut later = map.lock().show(3).and_then(Stored::share).unwrap();
    let pieces: Vec<_> = later.pieces().collect();
    assert_eq!(pieces, [(0, &[2; 1024][..]), (2048, &[1; 512][..])]);
    // Whoever holds the lock meets no gaps, and from then on nobody does.
    let expected = [&[2; 1024][..], &[0; 1024], &[1; 512]].concat();
    assert_eq!(map.lock().get(3).unwrap().bytes(), expected);
    assert_eq!(looked(), Some(&expected[..]));
    assert!(map.lock().extend(3, 3072, &[3; 1024]));
    assert_eq!(looked(), None);
    assert!(map.lock().extend(3, 2560, &[4; 512]));
    let full = [&expected[..], &[4; 512], &[3; 1024]].concat();
    assert_eq!(looked(), Some(&full[..]));
    assert!(map.lock().show(3).unwrap().renew(&mut later));
    assert_eq!(later.to_vec(), full);
    assert_eq!(kept.to_vec()[2048..], [1; 512]);
    assert_eq!(kept.pieces().count(), 1);
    later.truncate(2049);
    assert_eq!(later.to_vec(), expected[..2049]);
    map.lock().put(3, frame(b"another"));
    assert!(!map.lock().show(3).unwrap().renew(&mut later));
    assert_eq!(later.to_vec(), expected[..2049]);
}

#[test]
fn f5_frames_met_under_a_guard_stay_as_they_were_while_others_take_their_place() {
    let _finish = Finish;
    let map = Map::new();
    map.lock().put(0, frame(&[7; FRAME_SIZE]));
    map.lock().put(1, frame(&[8; FRAME_SIZE]));
    let guard = epoch::pin();
    let snapshot = map.snapshot(&guard).unwrap();
    let (first, second) = (snapshot.get(0).unwrap(), snapshot.get(1).unwrap());
    for round in 0..1000 {
        map.lock().put(0, frame(&[round as u8; FRAME_SIZE]));
        if round % 10 == 0 {
            map.lock().clear();
        }
    }
    assert!(first.iter().all(|byte| *byte == 7) && second.iter().all(|byte| *byte == 8));
    assert!(epoch::pending() >= 900);
    drop(guard);
    map.lock().clear();
}

#[test]
fn a_single_frame_costs_its_class_and_nothing_else() {
    let _finish = Finish;
    let map = Map::new();
    for (len, bytes) in [(1, 64), (64, 64), (65, 128), (2048, 2048), (4096, 4096)] {
        map.lock().put(0, frame(&vec![7; len]));
        let totals = map.totals(&epoch::pin());
        assert_eq!((totals.frames, totals.bytes), (1, bytes));
    }
    map.lock().remove(0..1);
    assert!(map.is_empty());
}

#[test]
fn small_frames_stay_small_beside_others() {
    let _finish = Finish;
    let map = Map::new();
    map.lock().put(0, frame(b"first"));
    map.lock().put(70, frame(b"second"));
    assert_eq!(map.lock().get(0).unwrap().capacity(), 64);
    map.lock().put(70, frame(&[1; 100]));
    map.lock().put(70, frame(b"second"));
    map.lock().check_shape();
    assert_eq!(content(&map, 0).unwrap(), b"first");
    assert_eq!(content(&map, 70).unwrap(), b"second");
    assert_eq!(content(&map, 69), None);
    let mut lock = map.lock();
    lock.remove(1..FRAME_END);
    lock.normalise();
    assert_eq!(lock.totals().bytes, 64);
}

#[test]
fn extending_shows_more_of_the_same_memory() {
    let _finish = Finish;
    let map = Map::new();
    map.lock().put(0, frame(b"abc"));
    let guard = epoch::pin();
    let before = map.snapshot(&guard).unwrap().get(0).unwrap();
    assert!(map.lock().extend(0, 5, b"fg"));
    let after = map.snapshot(&guard).unwrap().get(0).unwrap();
    assert_eq!((before, after), (&b"abc"[..], &b"abc\0\0fg"[..]));
    assert_eq!(before.as_ptr(), after.as_ptr());
    let mut lock = map.lock();
    assert!(!lock.extend(0, 6, b"x"), "filled already");
    assert!(!lock.extend(0, 64, b"x"), "behind its end");
    assert!(!lock.extend(0, usize::MAX, b"x"), "behind its end");
    assert!(!lock.extend(1, 0, b"x"), "no such frame");
    assert!(lock.extend(0, 63, b"x"));
}

#[test]
fn a_frame_that_is_replaced_stays_for_those_who_met_it() {
    let _finish = Finish;
    let map = Map::new();
    map.lock().put(0, frame(b"old"));
    let guard = epoch::pin();
    let old = map.snapshot(&guard).unwrap().get(0).unwrap();
    map.lock().put(0, frame(b"new"));
    map.lock().clear();
    epoch::flush();
    assert_eq!(old, b"old");
    assert!(map.is_empty());
}

#[test]
fn a_snapshot_holds_until_something_changes() {
    let _finish = Finish;
    let map = Map::new();
    let guard = epoch::pin();
    let first = map.snapshot(&guard).unwrap();
    assert!(first.holds());
    map.lock().put(3, frame(b"x"));
    assert!(!first.holds());
    let second = map.snapshot(&guard).unwrap();
    drop(map.lock());
    assert!(second.holds(), "a lock without a change is none");
    let mut lock = map.lock();
    lock.begin();
    assert!(!second.holds() && map.snapshot(&guard).is_none());
    lock.put(4, frame(b"y"));
    assert!(map.snapshot(&guard).is_none());
    drop(lock);
    assert_eq!(map.snapshot(&guard).unwrap().get(4), Some(&b"y"[..]));
}

#[test]
fn the_side_part_moves_with_the_root() {
    let _finish = Finish;
    let map = Map::new();
    let note = |side: &BTreeSet<u64>| side.len() as u64;
    map.lock().with_side(|side| side.extend([1, 2, 3]), note);
    let check = |frames| {
        let lock = map.lock();
        assert_eq!(lock.side().unwrap().len(), 3);
        assert_eq!((lock.totals().note, lock.totals().frames), (3, frames));
    };
    check(0);
    for shift in 0..52 {
        map.lock().put(1 << shift, frame(b"x"));
        check(shift + 1);
    }
    map.lock().remove(2..FRAME_END);
    check(1);
    map.lock().normalise();
    map.lock().remove(0..FRAME_END);
    check(0);
    map.lock().with_side(BTreeSet::clear, note);
    map.lock().normalise();
    assert!(map.is_empty());
}

/// One step of a model run.
#[derive(Clone, Debug)]
enum Step {
    Put(u64, u8),
    Extend(u64, u8),
    Remove(u64, u64),
    Collapse(u64, u64),
    Insert(u64, u64),
    Normalise,
}

fn number() -> impl Strategy<Value = u64> {
    let far = (0..52_u32, 0..3_u64).prop_map(|(shift, add)| (1 << shift) + add);
    prop_oneof![4 => 0..200_u64, 1 => far]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (number(), any::<u8>()).prop_map(|(number, byte)| Step::Put(number, byte)),
        2 => (number(), any::<u8>()).prop_map(|(number, byte)| Step::Extend(number, byte)),
        2 => (number(), number()).prop_map(|(a, b)| Step::Remove(a.min(b), a.max(b))),
        1 => (number(), 1..200_u64).prop_map(|(from, len)| Step::Collapse(from, len)),
        1 => (number(), 1..200_u64).prop_map(|(from, len)| Step::Insert(from, len)),
        1 => Just(Step::Normalise),
    ]
}

fn apply(
    lock: &mut FramesLock<'_, BTreeSet<u64>>,
    model: &mut BTreeMap<u64, Vec<u8>>,
    step: &Step,
) {
    match *step {
        Step::Put(number, byte) => {
            let mut frame = Frame::with_capacity(64 << (byte % 7));
            frame.push(&[byte; 3]);
            lock.put(number, frame);
            model.insert(number, vec![byte; 3]);
        }
        Step::Extend(number, byte) => {
            let there = model.get_mut(&number).filter(|there| there.len() < 60);
            let at = there.as_ref().map_or(0, |there| there.len() + 1);
            assert_eq!(lock.extend(number, at, &[byte]), there.is_some());
            if let Some(there) = there {
                there.extend([0, byte]);
            }
        }
        Step::Remove(from, to) => {
            lock.remove(from..to);
            model.retain(|number, _| !(from..to).contains(number));
        }
        Step::Collapse(from, len) => {
            lock.remove(from..from + len);
            lock.shift(from + len, -len.cast_signed());
            model.retain(|number, _| !(from..from + len).contains(number));
            let moving = model.split_off(&from);
            model.extend(
                moving
                    .into_iter()
                    .map(|(number, bytes)| (number - len, bytes)),
            );
        }
        Step::Insert(from, len) => {
            lock.remove(FRAME_END - len..FRAME_END);
            lock.shift(from, len.cast_signed());
            model.split_off(&(FRAME_END - len));
            let moving = model.split_off(&from);
            model.extend(
                moving
                    .into_iter()
                    .map(|(number, bytes)| (number + len, bytes)),
            );
        }
        Step::Normalise => lock.normalise(),
    }
}

/// Counts the nodes by what a reader can reach, to compare with the books.
fn check(map: &Map, model: &BTreeMap<u64, Vec<u8>>) {
    let lock = map.lock();
    assert_eq!(lock.totals().frames, model.len() as u64);
    for around in model.keys().copied().chain([0, 63, 64, 1 << 40]) {
        for number in around.saturating_sub(1)..around + 2 {
            let expected = model.get(&number).map(Vec::as_slice);
            assert_eq!(lock.get(number).map(Stored::bytes), expected, "{number}");
            let next = model.range(number..).next().map(|(next, _)| *next);
            assert_eq!(lock.next_frame(number), next);
            let last = model.range(..number).next_back().map(|(last, _)| *last);
            assert_eq!(lock.last_frame(number), last);
            let gap = (number..).find(|gap| !model.contains_key(gap));
            assert_eq!(Some(lock.next_gap(number)), gap);
        }
        let numbers = around / 2..around + 1;
        let count = model.range(numbers.clone()).count() as u64;
        assert_eq!(lock.count(&numbers), count);
    }
    lock.check_shape();
}

proptest! {
    #[test]
    fn it_is_the_map_of_the_frames_put_in(steps in prop::collection::vec(step(), 1..80)) {
        let _finish = Finish;
        let map = Map::new();
        let mut model = BTreeMap::new();
        for step in &steps {
            apply(&mut map.lock(), &mut model, step);
            check(&map, &model);
        }
    }
}

#[test]
fn a_million_frames_are_found_again() {
    let _finish = Finish;
    let map = Map::new();
    let mut lock = map.lock();
    for number in 0..1_000_000 {
        let mut frame = Frame::with_capacity(FRAME_SIZE);
        frame.push(&u64::to_le_bytes(number));
        lock.put(number, frame);
    }
    let nodes = (lock.totals().bytes - 1_000_000 * FRAME_SIZE as u64) / 640;
    assert!(nodes < 16_000, "{nodes}");
    for number in (0..1_000_000).step_by(997) {
        assert_eq!(lock.get(number).unwrap().bytes(), u64::to_le_bytes(number));
    }
    lock.shift(0, 1);
    assert_eq!(
        lock.get(1_000_000).unwrap().bytes(),
        u64::to_le_bytes(999_999)
    );
    assert_eq!(
        (lock.next_frame(0), lock.count(&(0..FRAME_END))),
        (Some(1), 1_000_000)
    );
    lock.clear();
}

#[test]
fn readers_meet_whole_frames_while_they_are_replaced_moved_and_extended() {
    let _finish = Finish;
    let map = Map::new();
    let done = AtomicBool::new(false);
    let read = AtomicU64::new(0);
    // What a frame holds: a byte, again and again, between 8 and 64 times.
    let reader = || {
        while !done.load(Ordering::Relaxed) {
            let guard = epoch::pin();
            let Some(snapshot) = map.snapshot(&guard) else {
                continue;
            };
            for number in [0, 1, 64, 5000] {
                let Some(bytes) = snapshot.get(number) else {
                    continue;
                };
                assert!((8..=64).contains(&bytes.len()), "{}", bytes.len());
                assert!(bytes.iter().all(|byte| *byte == bytes[0]), "{bytes:?}");
                read.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(reader);
        scope.spawn(reader);
        for round in 0..20_000_u64 {
            let byte = round as u8;
            let number = [0, 1, 64, 5000][round as usize % 4];
            let mut lock = map.lock();
            lock.put(number, frame(&[byte; 8]));
            for more in 1..8 {
                assert!(lock.extend(number, more * 8, &[byte; 8]));
            }
            match round % 16 {
                3 => lock.shift(1, 63),
                7 => {
                    lock.remove(0..64);
                    lock.shift(64, -63);
                }
                11 => lock.remove(0..FRAME_END),
                15 => lock.normalise(),
                _ => {}
            }
        }
        while read.load(Ordering::Relaxed) < 1000 {
            map.lock().put(0, frame(&[1; 8]));
            thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
    });
    epoch::synchronize();
}

fn kept(map: &Map, number: u64) -> Option<Shared> {
    map.lock().get(number).and_then(Stored::share)
}

#[test]
fn a_frame_that_is_kept_outlives_its_map_and_does_not_change() {
    let _finish = Finish;
    let map = Map::new();
    map.lock().put(5, frame(&[1; 2000]));
    let mut first = kept(&map, 5).expect("not a small one");
    assert!(map.lock().extend(5, 2000, &[2; 40]));
    let second = kept(&map, 5).expect("as before");
    map.lock().put(5, frame(&[3; FRAME_SIZE]));
    let third = second.clone();
    map.lock().clear();
    drop((map, second));
    epoch::synchronize();
    assert_eq!(first.to_vec(), [1; 2000]);
    assert_eq!(third.to_vec()[..2000], [1; 2000]);
    assert_eq!(third.to_vec()[2000..], [2; 40]);
    first.truncate(7);
    assert_eq!(first.to_vec(), [1; 7]);
}

#[test]
fn small_frames_are_not_kept() {
    let _finish = Finish;
    let mut map = Map::new();
    map.lock().put(0, frame(&[1; 500]));
    assert!(kept(&map, 0).is_none());
    assert!(kept(&map, 1).is_none());
    map.clear_mut();
}

#[test]
fn frames_are_kept_and_given_up_by_many_threads() {
    let _finish = Finish;
    let map = Map::new();
    let filled = |byte: u8| frame(&[byte; FRAME_SIZE]);
    map.lock().put(3, filled(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut held = Vec::new();
                for round in 0..2000 {
                    let shared = kept(&map, 3).expect("always there");
                    let byte = shared.to_vec()[0];
                    assert!(shared.to_vec().iter().all(|other| *other == byte));
                    held.push(shared);
                    if round % 7 == 0 {
                        held.clear();
                    }
                }
            });
        }
        for round in 0..4000_u32 {
            map.lock().put(3, filled(round as u8));
        }
    });
    map.lock().clear();
}
