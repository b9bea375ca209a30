//! Marks of frames, in nodes of 64.

use crate::epoch;
use crate::frame::{Arrival, Frame, Frames, Set};
use std::ops::Range;

type Map = Frames<Vec<u64>>;

fn put(map: &Map, numbers: Range<u64>, epoch: u8, arrival: Arrival) {
    let mut lock = map.lock();
    lock.set_arrival(epoch, arrival);
    for number in numbers {
        lock.put(number, Frame::with_capacity(64));
    }
}

fn touch(map: &Map, numbers: Range<u64>, epoch: u8) -> bool {
    map.touch(numbers, epoch, &epoch::pin())
}

fn look(map: &Map, set: Set, epoch: u8) -> u64 {
    map.lock().look(0..64, set, epoch)
}

#[test]
fn what_is_used_once_goes_at_its_first_look_and_a_burst_is_one_use() {
    let map = Map::new();
    put(&map, 1..8, 5, Arrival::Used);
    for epoch in [5, 6] {
        assert!(touch(&map, 1..8, epoch), "it came just now");
        assert_eq!(look(&map, Set::Probation, epoch), 0);
    }
    assert_eq!(look(&map, Set::Main, 7), 0);
    assert_eq!(look(&map, Set::Probation, 7), 0xFE);
    map.lock().clear();
}

#[test]
fn what_is_used_again_is_in_the_main_set_and_goes_when_it_is_used_no_more() {
    let map = Map::new();
    put(&map, 0..8, 250, Arrival::Used);
    assert!(!touch(&map, 2..4, 2), "epochs go round");
    assert_eq!(look(&map, Set::Probation, 2), 0xF3);
    assert_eq!(look(&map, Set::Probation, 2), 0xF3);
    assert!(!touch(&map, 3..4, 9));
    assert_eq!(look(&map, Set::Main, 9), 0b0100);
    assert_eq!(look(&map, Set::Main, 10), 0b1100);
    // A frame in the slot of an earlier one is a new one.
    map.lock().remove(2..4);
    put(&map, 2..4, 20, Arrival::Used);
    assert_eq!(look(&map, Set::Main, 30), 0);
    assert_eq!(look(&map, Set::Probation, 30), 0xFF);
    map.lock().clear();
}

#[test]
fn what_came_ahead_is_used_first_when_it_is_read() {
    let map = Map::new();
    put(&map, 1..5, 1, Arrival::Prefetched);
    assert!(touch(&map, 0..2, 10) && touch(&map, 0..2, 11));
    assert_eq!(look(&map, Set::Probation, 11), 0b11100);
    assert_eq!(look(&map, Set::Probation, 12), 0b11110);
    assert!(!touch(&map, 1..2, 12));
    assert_eq!(look(&map, Set::Probation, 12), 0b11100);
    assert_eq!(look(&map, Set::Main, 12), 0b00010);
    map.lock().clear();
}

#[test]
fn what_is_written_over_is_used_and_what_went_too_early_counts_as_used() {
    let map = Map::new();
    put(&map, 0..4, 1, Arrival::Used);
    put(&map, 1..2, 1, Arrival::Used);
    assert_eq!(look(&map, Set::Probation, 3), 0b1111);
    put(&map, 1..2, 3, Arrival::Used);
    map.lock().mark_used(2);
    assert_eq!(look(&map, Set::Probation, 3), 0b1001);
    map.lock().clear();
}

#[test]
fn without_marks_all_goes_and_nothing_is_ever_written() {
    let map = Map::new();
    for number in [0, 3, 70] {
        map.lock().put(number, Frame::with_capacity(64));
    }
    assert!(!touch(&map, 0..100, 1));
    assert_eq!(look(&map, Set::Main, 9), 0);
    assert_eq!(look(&map, Set::Probation, 9), 0b1001);
    let mut lock = map.lock();
    assert_eq!(lock.look(65..128, Set::Probation, 9), 1 << 6);
    assert_eq!(lock.look(128..192, Set::Probation, 9), 0);
    lock.clear();
    lock.put(0, Frame::with_capacity(64));
    assert_eq!(lock.look(0..64, Set::Probation, 9), 1);
    assert_eq!(lock.look(64..128, Set::Probation, 9), 0);
    lock.clear();
}
