//! Uses, ends and burials, step by step.

use super::{Fixture, Tracked};
use holdfast_sync::{Freeing, Held, Index, Prepared, Ref, epoch};
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
fn what_is_published_is_found_and_counted() {
    let keys = [0, 1, 63, 64, 4095, 4096, 1 << 60, u64::MAX - 1];
    let fixture = Fixture::with(keys);
    let guard = epoch::pin();
    for key in keys {
        let held = fixture.index.peek(key, &guard).expect("published");
        held.check(key);
        assert_eq!((held.key(), held.uses(), held.is_live()), (key, 0, true));
        assert!(fixture.index.peek(key ^ 2, &guard).is_none(), "{key}");
    }
    assert_eq!(fixture.index.len(), keys.len() as u64);
    assert!(fixture.index.get(2).is_none());
}

#[test]
fn what_finds_objects_is_counted_in_bytes() {
    let dense = Fixture::with(0..640);
    // Ten leaves, and the node above them.
    assert_eq!(dense.index.node_bytes(), 11 * 512);
    let scattered = Fixture::with((0..100).map(|number| number * 64));
    assert!(scattered.index.node_bytes() >= 100 * 512);
    for key in 0..640 {
        let found = dense.index.get(key).unwrap();
        assert!(found.mark_freeing().is_none());
        dense.index.free(found.release().unwrap());
    }
    // Those that were emptied last are looked at once others are.
    assert!(dense.index.node_bytes() < 11 * 512);
    scattered.settle(100);
    dense.settle(0);
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
fn the_last_use_of_a_doomed_object_returns_it_and_its_burial_frees_it() {
    let fixture = Fixture::new();
    let first = fixture.publish(5).unwrap();
    let second = first.clone();
    assert!(Ref::ptr_eq(&first, &second) && first.uses() == 2);
    assert!(first.mark_freeing().is_none() && second.is_marked_freeing());
    assert!(first.release().is_none());
    let freeing = second.release().expect("the last use");
    assert!(!freeing.is_live() && freeing.try_ref().is_none());
    freeing.check(5);
    fixture.index.free(freeing);
    assert_eq!(fixture.index.len(), 0);
    fixture.settle(0);
    assert!(fixture.publish(5).is_some(), "the key is free again");
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
fn the_last_use_of_what_is_not_doomed_ends_it_unless_its_end_is_given_up() {
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
fn a_spared_object_stays_when_its_last_use_goes() {
    let fixture = Fixture::new();
    let held = fixture.publish(5).unwrap();
    assert!(held.mark_freeing().is_none());
    held.unmark_freeing();
    assert!(held.release().is_none());
    assert_eq!(fixture.index.get(5).unwrap().uses(), 1);
}

#[test]
fn an_unused_object_is_ended_by_the_very_call_that_dooms_it() {
    let fixture = Fixture::with([5]);
    let guard = epoch::pin();
    let held = fixture.index.peek(5, &guard).unwrap();
    drop(held.mark_freeing().expect("no use is left"));
    assert!(
        held.is_live() && held.is_marked_freeing(),
        "put back, still doomed"
    );
    let held = held.try_ref().unwrap();
    assert!(held.release().is_some());
}

#[test]
fn raw_uses_keep_an_object_and_are_given_back_by_number() {
    let fixture = Fixture::new();
    let held = fixture.publish(5).unwrap();
    assert!(held.mark_freeing().is_none());
    for _ in 0..3 {
        assert_eq!(held.clone().into_raw(), 5);
    }
    assert_eq!((held.uses(), held.into_raw()), (4, 5));
    let guard = epoch::pin();
    let held = fixture.index.peek(5, &guard).unwrap();
    assert_eq!(held.uses(), 4);
    assert!(fixture.index.begin_evict(held).is_none(), "raw uses count");
    assert!(held.forget(0).is_none() && held.forget(3).is_none());
    let freeing = held.forget(u64::MAX).expect("the last one");
    fixture.index.free(freeing);
    assert!(held.forget(1).is_none() && held.mark_freeing().is_none());
    assert!(held.try_ref().is_none() && fixture.index.begin_evict(held).is_none());
    held.check(5);
}

#[test]
fn forgetting_too_much_takes_no_reference_away() {
    let fixture = Fixture::new();
    let held = fixture.publish(5).unwrap();
    held.clone().into_raw();
    assert!(held.mark_freeing().is_none());
    assert!(held.forget(u64::MAX).is_none() && held.forget(1).is_none());
    assert_eq!(held.uses(), 1);
    assert!(held.release().is_some());
}

#[test]
fn only_a_live_object_without_uses_is_evicted_and_only_once() {
    let fixture = Fixture::with([5]);
    let guard = epoch::pin();
    let held = fixture.index.peek(5, &guard).unwrap();
    let used = held.try_ref().unwrap();
    assert!(fixture.index.begin_evict(held).is_none(), "in use");
    drop(used);
    let freeing = fixture.index.begin_evict(held).unwrap();
    assert!(fixture.index.begin_evict(held).is_none(), "dying already");
    assert!(!freeing.is_marked_freeing(), "evicted, not doomed");
    fixture.index.free(freeing);
    assert!(fixture.index.begin_evict(held).is_none(), "buried");
}

#[test]
fn a_dropped_end_brings_the_object_back_to_life() {
    let fixture = Fixture::new();
    let held = fixture.publish(5).unwrap();
    assert!(held.mark_freeing().is_none());
    drop(held);
    let held = fixture.index.get(5).expect("live again");
    assert!(held.is_marked_freeing() && held.uses() == 1);
    fixture.index.free(held.release().unwrap());
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
fn a_burial_in_another_index_panics_and_revives() {
    let (here, there) = (Fixture::with([5]), Fixture::with([5]));
    let guard = epoch::pin();
    let held = here.index.peek(5, &guard).unwrap();
    let freeing = here.index.begin_evict(held).unwrap();
    let outcome = thread::scope(|scope| scope.spawn(|| there.index.free(freeing)).join());
    assert!(outcome.is_err());
    assert!(held.is_live() && there.index.get(5).is_some());
    assert_eq!((here.index.len(), there.index.len()), (1, 1));
}

/// Runs `resolve` on a dying object at key 5 while another thread runs `wait`.
fn while_dying<R: Send>(
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
fn a_lookup_waits_for_a_burial_and_finds_nothing() {
    let found = while_dying(
        |fixture| fixture.index.get(5).is_some(),
        |fixture, freeing| fixture.index.free(freeing),
    );
    assert!(!found);
}

#[test]
fn a_lookup_waits_for_a_revival_and_finds_the_object() {
    let found = while_dying(
        |fixture| fixture.index.get(5).map(|held| held.check(5)).is_some(),
        |_, freeing| drop(freeing),
    );
    assert!(found);
}

#[test]
fn a_publisher_waits_for_a_burial_and_takes_the_key() {
    let published = while_dying(
        |fixture| fixture.publish(5).is_some(),
        |fixture, freeing| fixture.index.free(freeing),
    );
    assert!(published);
}

#[test]
fn a_publisher_waits_for_a_revival_and_is_refused() {
    let published = while_dying(
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
fn uses_that_threads_take_in_turn_are_counted_and_the_last_one_ends_a_doomed_object() {
    let fixture = Fixture::with([5]);
    let mut kept = Vec::new();
    // Enough changes of user for the counts to be spread over the cores.
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
fn an_object_that_was_used_by_many_is_evicted_once_nobody_uses_it() {
    let fixture = Fixture::with([5]);
    for _ in 0..40 {
        thread::scope(|scope| {
            scope.spawn(|| drop(fixture.index.get(5).unwrap()));
        });
        drop(fixture.index.get(5).unwrap());
    }
    let held = fixture.index.get(5).unwrap();
    let before = format!("{held:?}");
    let others = [fixture.index.get(5).unwrap(), held.clone()];
    assert_eq!(
        (format!("{held:?}"), held.uses()),
        (before, 3),
        "a use is written elsewhere"
    );
    drop(others);
    assert!(!fixture.evict(5), "in use");
    drop(held);
    assert!(fixture.evict(5));
    fixture.settle(0);
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
    // Of an object that is shared nobody is sure that it is unused.
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

#[test]
fn objects_that_come_together_are_there_and_can_be_used_and_evicted() {
    let index = Index::<u64>::new();
    let before = index.publish(70, 7).unwrap();
    let mut refused = Vec::new();
    let mut kept = Vec::new();
    let keys = [1, 2, 3, 69, 70, 71, 5000, 4, u64::MAX, 1];
    let objects = keys.into_iter().map(|key| (key, Prepared::new(key ^ 1)));
    index.publish_all(objects, |key, held| match held {
        None => refused.push(key),
        Some(held) => {
            assert_eq!((held.key(), **held, held.uses()), (key, key ^ 1, 0));
            kept.extend((key == 3).then(|| held.try_ref()).flatten());
        }
    });
    assert_eq!(refused, [70, u64::MAX, 1]);
    assert_eq!((index.len(), **before), (8, 7));
    assert_eq!((kept.len(), kept[0].uses()), (1, 1));
    for key in [1, 2, 3, 69, 70, 71, 5000, 4] {
        let uses = index.get(key).map(|held| held.uses());
        assert_eq!(uses, Some(if key == 3 || key == 70 { 2 } else { 1 }));
    }
    let freeing = {
        let guard = epoch::pin();
        let held = index.peek(69, &guard).unwrap();
        index.begin_evict(held).unwrap()
    };
    index.free(freeing);
    assert!(index.get(69).is_none());
}
