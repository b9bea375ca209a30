//! Dropping the objects of an index on several threads.

use super::{Fixture, Tracked};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread;

fn make(fixture: &Fixture, thread: u64, count: u64) {
    for number in 0..count {
        // Runs of 4096 in turn; then single numbers in turn; then a few far apart.
        let key = match number % 3 {
            0 => (number / 4096 * 3 + thread) * 4096 + number % 4096,
            1 => (1 << 24) + number * 3 + thread,
            _ => (1 << 40) + (number * 3 + thread) * 100_000,
        };
        let value = Tracked::new(key, &fixture.left);
        drop(fixture.index.publish(key, value).expect("a key of its own"));
    }
}

/// Objects of several threads, in runs of their own and in shared ones; some far apart.
fn filled(count: u64) -> Fixture {
    let fixture = Fixture::new();
    thread::scope(|scope| {
        let makers: Vec<_> = (0..3)
            .map(|thread| {
                let fixture = &fixture;
                scope.spawn(move || make(fixture, thread, count))
            })
            .collect();
        // Joined by hand: a sanitizer does not see how a scope waits.
        makers
            .into_iter()
            .for_each(|it| it.join().expect("no panic"));
    });
    fixture
}

#[test]
fn helpers_let_go_of_each_object_once() {
    for (count, helpers) in [(0, 1), (1, 2), (1000, 1), (10_000, 2), (10_000, 4)] {
        let mut fixture = filled(count);
        let remains = fixture.index.take_remains();
        assert!(fixture.index.is_empty());
        let ended: u64 = thread::scope(|scope| {
            let helpers: Vec<_> = (0..helpers)
                .map(|_| scope.spawn(|| remains.help()))
                .collect();
            helpers
                .into_iter()
                .map(|it| it.join().expect("no panic"))
                .sum()
        });
        assert_eq!(ended, 3 * count);
        assert_eq!(fixture.left.load(Ordering::Relaxed), 0);
        assert_eq!(remains.help(), 0);
    }
}

#[test]
fn what_nobody_helped_with_goes_when_it_is_dropped_and_references_outlive_it() {
    let mut fixture = filled(3000);
    let key = (1 << 24) + 3;
    let held = fixture.index.get(key).expect("there");
    drop(fixture.index.take_remains());
    assert_eq!(fixture.left.load(Ordering::Relaxed), 1);
    held.check(key);
    drop(held);
    assert_eq!(fixture.left.load(Ordering::Relaxed), 0);
}

#[test]
fn an_index_goes_on_empty_when_it_was_taken_apart() {
    let mut fixture = filled(100);
    let remains = fixture.index.take_remains();
    let value = Tracked::new(7, &fixture.left);
    drop(fixture.index.publish(7, value).expect("free"));
    assert_eq!(fixture.index.len(), 1);
    drop(remains);
    assert_eq!(fixture.left.load(Ordering::Relaxed), 1);
    fixture.index.get(7).expect("there").check(7);
}

#[test]
fn references_may_be_dropped_beside_those_who_help() {
    for _ in 0..20 {
        let mut fixture = filled(500);
        let held: Vec<_> = (0..500)
            .filter_map(|number| fixture.index.get((1 << 24) + number * 3))
            .collect();
        assert!(held.len() > 100);
        let remains = Arc::new(fixture.index.take_remains());
        let (begin, begun) = mpsc::channel();
        thread::scope(|scope| {
            let helper = Arc::clone(&remains);
            let helping = scope.spawn(move || {
                begin.send(()).expect("awaited");
                helper.help()
            });
            begun.recv().expect("sent");
            drop(held);
            remains.help();
            helping.join().expect("no panic");
        });
        drop(remains);
        assert_eq!(fixture.left.load(Ordering::Relaxed), 0);
    }
}
