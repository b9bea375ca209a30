//! Uses and ends, step by step.

use super::{Fixture, Tracked};
use holdfast_sync::{Freeing, Held, Index, Ref, epoch};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

#[test]
fn a_header_takes_24_bytes() {
    assert_eq!(size_of::<Held<[u64; 13]>>(), 128);
    assert_eq!(align_of::<Held<u8>>(), 64);
    assert_eq!(size_of::<Option<Ref<u8>>>(), 8);
}

#[test]
fn a_taken_key_gives_the_value_back() {
    let fixture = Fixture::with([7]);
    assert!(fixture.publish(7).is_none());
    assert!(fixture.publish(u64::MAX).is_none());
    assert_eq!(fixture.index.len(), 1);
    fixture.settle(1);
}

#[test]
fn only_the_last_use_is_released_as_the_last() {
    let fixture = Fixture::new();
    let first = fixture.publish(5).unwrap();
    let second = first.clone();
    let second = second.release_last().expect_err("another use, and live");
    assert!(first.mark_freeing().is_none());
    let first = first.release_last().expect_err("another use");
    assert!(second.release().is_none());
    let key = first.clone().into_raw();
    let first = first.release_last().expect_err("a raw use");
    assert!(first.forget(1).is_none());
    let freeing = first.release_last().expect("the last use");
    assert!(fixture.index.peek(key, &epoch::pin()).is_some() && freeing.try_ref().is_none());
    fixture.index.free(freeing);
    fixture.settle(0);
}

#[test]
fn the_last_use_of_what_is_not_marked_ends_it_unless_its_end_is_given_up() {
    let fixture = Fixture::new();
    let held = fixture.publish(5).unwrap();
    let ending = held.release_last().expect("the last use");
    assert!(ending.try_ref().is_none());
    drop(ending);
    let held = fixture.index.get(5).expect("it lives on");
    fixture
        .index
        .free(held.release_last().expect("the last use"));
    fixture.settle(0);
}

#[test]
fn references_outlive_their_index_and_the_last_frees() {
    let left: Arc<AtomicU64> = Arc::default();
    let index = Index::new();
    let value = |key| Tracked::new(key, &left);
    let now = || left.load(Ordering::Relaxed);
    let plain = index.publish(1, value(1)).unwrap();
    let freeing = index.publish(2, value(2)).unwrap();
    let raw = index.publish(3, value(3)).unwrap();
    let ended = index.publish(4, value(4)).unwrap();
    drop(index.publish(5, value(5)).unwrap());
    index.publish(6, value(6)).unwrap().into_raw();
    raw.clone().into_raw();
    assert!(freeing.mark_freeing().is_none() && ended.mark_freeing().is_none());
    let ended = ended.release().unwrap();
    drop(index);
    assert_eq!(now(), 4, "those in use");
    plain.check(1);
    let copy = plain.clone();
    assert!(plain.release().is_none() && now() == 4);
    drop(copy);
    assert_eq!(now(), 3);
    let end = freeing.release().expect("still told of its end");
    end.check(2);
    drop(end);
    assert_eq!(now(), 2);
    raw.into_raw();
    assert_eq!(now(), 1, "nobody could give a raw use back");
    ended.check(4);
    drop(ended);
    assert_eq!(now(), 0);
}

#[test]
fn an_eviction_in_another_index_panics_and_revives() {
    let (here, there) = (Fixture::with([5]), Fixture::with([5]));
    let guard = epoch::pin();
    let held = here.index.peek(5, &guard).unwrap();
    let freeing = here.index.begin_evict(held).unwrap();
    let outcome = thread::scope(|scope| scope.spawn(|| there.index.free(freeing)).join());
    assert!(outcome.is_err());
    assert!(held.is_live() && there.index.get(5).is_some());
    assert_eq!((here.index.len(), there.index.len()), (1, 1));
}

/// Runs `resolve` on a freeing object at key 5 while another thread runs `wait`.
fn while_freeing<R: Send>(
    wait: impl FnOnce(&Fixture) -> R + Send,
    resolve: impl FnOnce(&Fixture, Freeing<Tracked>),
) -> R {
    let fixture = Fixture::new();
    let held = fixture.publish(5).unwrap();
    assert!(held.mark_freeing().is_none());
    let freeing = held.release().unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| wait(&fixture));
        thread::sleep(Duration::from_millis(30));
        assert!(!waiter.is_finished(), "did not wait");
        resolve(&fixture, freeing);
        waiter.join().unwrap()
    })
}

#[test]
fn a_publisher_waits_for_a_revival_and_is_refused() {
    let published = while_freeing(
        |fixture| fixture.publish(5).is_some(),
        |_, freeing| drop(freeing),
    );
    assert!(!published);
}

#[test]
fn what_was_met_under_a_guard_stays_as_long() {
    let fixture = Fixture::with([5]);
    let guard = epoch::pin();
    let held = fixture.index.peek(5, &guard).unwrap();
    assert!(fixture.evict(5));
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..10 {
                epoch::flush();
            }
        });
    });
    held.check(5);
    drop(guard);
    fixture.settle(0);
}

#[test]
fn uses_that_threads_take_in_turn_are_counted_and_the_last_one_ends_a_marked_object() {
    let fixture = Fixture::with([5]);
    let mut kept = Vec::new();
    // Enough changes of user for the uses to be counted per core.
    for round in 1..=40 {
        let held = thread::scope(|scope| {
            let taken = scope.spawn(|| {
                let held = fixture.index.get(5).unwrap();
                drop(held.clone());
                held
            });
            taken.join().unwrap()
        });
        assert_eq!(held.uses(), round, "one kept in each round before");
        drop(held.clone());
        kept.push(held);
    }
    for _ in 0..3 {
        kept.pop().unwrap().into_raw();
    }
    assert_eq!(kept[0].uses(), 40);
    let guard = epoch::pin();
    let held = fixture.index.peek(5, &guard).unwrap();
    assert!(fixture.index.begin_evict(held).is_none() && held.mark_freeing().is_none());
    for held in kept {
        thread::scope(|scope| {
            scope.spawn(move || assert!(held.release().is_none()));
        });
    }
    assert_eq!(held.uses(), 3);
    let freeing = held.forget(3).expect("the last uses");
    fixture.index.free(freeing);
}

#[test]
fn looks_alone_share_nothing_and_looks_between_uses_do() {
    let index = Index::new();
    drop(index.publish(7, ()).ok().unwrap());
    let look = || {
        thread::scope(|scope| {
            let look = || index.peek(7, &epoch::pin()).unwrap().note_look();
            scope.spawn(look).join().unwrap();
        });
    };
    // No thread can be sure that a shared object is unused.
    let is_shared = || index.peek(7, &epoch::pin()).unwrap().may_be_used();
    for _ in 0..100 {
        look();
        index.peek(7, &epoch::pin()).unwrap().note_look();
    }
    assert!(!is_shared());
    for _ in 0..8 {
        drop(index.get(7));
        look();
    }
    assert!(is_shared());
    let evicted = index.begin_evict(index.peek(7, &epoch::pin()).unwrap());
    index.free(evicted.expect("unused all the same"));
}
