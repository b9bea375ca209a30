use crate::epoch;
use crate::frame::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::thread;

type Map = Frames<BTreeSet<u64>>;

/// Made first in a test, it leaves no garbage to an ended thread, so a leak detector finds none.
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
    // A reader under the lock sees no gaps, and after that no reader does.
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

/// Counts the nodes that a reader can reach, to compare with the counts.
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
    lock.check_tree();
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
