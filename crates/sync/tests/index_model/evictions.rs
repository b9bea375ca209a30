//! Which thread ends an object, and when.

use super::{CROWD, PAIR, Probe, World, model, one_end, spawn};
use crate::index::Ref;
use loom::sync::Arc;

#[test]
fn a_final_put_a_lookup_and_an_eviction_agree_on_one_end() {
    model(CROWD, |world| {
        let held = world.publish(1).unwrap();
        assert!(held.mark_freeing().is_none());
        let looker = spawn(world, |world| {
            world.index.get(1).is_some_and(|held| {
                held.check(1);
                assert!(held.is_live(), "I3: in use, hence not freeing");
                world.put(held)
            })
        });
        let evictor = spawn(world, World::evict_unused);
        one_end([
            world.put(held),
            looker.join().unwrap(),
            evictor.join().unwrap(),
        ]);
        assert!(world.index.is_empty());
    });
}

#[test]
fn two_evictions_and_a_put_end_an_unused_object_once() {
    model(CROWD, |world| {
        let held = world.publish(1).unwrap();
        let other = spawn(world, World::evict_unused);
        let third = spawn(world, World::evict_unused);
        assert!(held.release().is_none(), "not marked");
        let evictions = [other.join().unwrap(), third.join().unwrap()];
        assert!(evictions != [true, true], "R-I8: evicted twice");
        assert_eq!(world.index.is_empty(), evictions.contains(&true));
    });
}

#[test]
fn the_last_put_sees_a_mark_or_the_mark_sees_no_use() {
    model(PAIR, |world| {
        let held = world.publish(1).unwrap();
        let other = spawn(world, World::mark);
        one_end([world.put(held), other.join().unwrap()]);
    });
}

#[test]
fn raw_uses_and_references_given_back_at_once_leave_one_end() {
    model(PAIR, |world| {
        let held = world.publish(1).unwrap();
        assert!(held.mark_freeing().is_none());
        held.clone().into_raw();
        let other = spawn(world, |world| world.forget(2));
        one_end([world.put(held), other.join().unwrap()]);
    });
}

#[test]
fn what_a_user_wrote_is_seen_by_whoever_ends_the_object() {
    model(PAIR, |world| {
        let held = world.publish(1).unwrap();
        let other = held.clone();
        assert!(held.mark_freeing().is_none());
        let end = |world: &World, held: Ref<Probe>| {
            let end = held.release();
            world.free(end.inspect(|freeing| assert_eq!(freeing.note(), 7)))
        };
        let other = spawn(world, move |world| {
            other.write(7);
            end(world, other)
        });
        // `Probe` reports an end that is not ordered after this.
        held.check(1);
        one_end([end(world, held), other.join().unwrap()]);
    });
}

#[test]
fn the_last_references_and_the_end_of_the_index_free_once() {
    model(CROWD, |world| {
        // Another world, so that it can be dropped while `world` judges the rest.
        let inner = Arc::new(World {
            index: crate::index::Index::new(),
            evicted_uses: crate::index::EvictedUses::new(),
            left: std::sync::Arc::clone(&world.left),
        });
        let plain = inner.publish(1).unwrap();
        let freeing = inner.publish(2).unwrap();
        assert!(freeing.mark_freeing().is_none());
        let first = loom::thread::spawn(move || {
            plain.check(1);
            drop(plain.clone());
            plain.into_raw();
        });
        let second = loom::thread::spawn(move || {
            let end = freeing.release().expect("the last use");
            end.check(2);
        });
        drop(inner);
        first.join().unwrap();
        second.join().unwrap();
    });
}
