//! Uses that are counted per core, and the end of an object that has such.

use super::{CROWD, PAIR, Probe, World, model, one_end, spawn};
use crate::index::{Held, Ref};

/// An object with uses counted per core, and a use of it that is counted there.
fn shared(world: &World) -> Ref<Probe> {
    let first = world.publish(1).unwrap();
    first.share();
    let held = first.clone();
    drop(first);
    assert_eq!(held.uses(), 1);
    held
}

#[test]
fn a_mark_beside_uses_that_come_and_go_leaves_one_end() {
    model(PAIR, |world| {
        let held = shared(world);
        let other = spawn(world, |world| {
            world.index.get(1).is_some_and(|held| {
                held.check(1);
                assert!(held.is_live(), "I3");
                world.put(held)
            })
        });
        assert!(held.mark_freeing().is_none(), "in use");
        one_end([world.put(held), other.join().unwrap()]);
    });
}

#[test]
fn a_mark_without_a_use_beside_the_last_put_leaves_one_end() {
    model(PAIR, |world| {
        let held = shared(world);
        let other = spawn(world, World::mark);
        held.check(1);
        one_end([world.put(held), other.join().unwrap()]);
    });
}

#[test]
fn two_marks_beside_the_last_put_leave_one_end() {
    model(CROWD, |world| {
        let held = shared(world);
        let (first, second) = (spawn(world, World::mark), spawn(world, World::mark));
        one_end([
            world.put(held),
            first.join().unwrap(),
            second.join().unwrap(),
        ]);
    });
}

#[test]
fn an_eviction_beside_a_use_fails_or_the_use_does() {
    model(PAIR, |world| {
        drop(shared(world));
        let user = spawn(world, |world| {
            let held = world.with(1, |held| held.try_ref()).flatten();
            if let Some(held) = held {
                held.check(1);
                assert!(held.is_live(), "I3");
            }
        });
        if let Some(freeing) = world.begin_evict(1) {
            assert_eq!(freeing.uses(), 0);
            world.index.free(freeing);
        }
        user.join().unwrap();
    });
}

#[test]
fn becoming_shared_beside_the_last_put_and_a_mark_loses_no_use() {
    model(PAIR, |world| {
        let held = world.publish(1).unwrap();
        let second = held.clone();
        let other = spawn(world, move |world| {
            second.share();
            second.check(1);
            world.put(second)
        });
        assert!(held.mark_freeing().is_none());
        one_end([world.put(held), other.join().unwrap()]);
    });
}

#[test]
fn closing_and_sharing_again_beside_a_put_loses_no_use() {
    model(PAIR, |world| {
        let held = shared(world);
        let second = held.clone();
        let other = spawn(world, move |world| {
            second.check(1);
            world.put(second)
        });
        assert!(held.mark_freeing().is_none());
        held.unmark_freeing();
        held.share();
        assert!(!other.join().unwrap());
        assert_eq!(held.uses(), 1);
        assert!(held.mark_freeing().is_none());
        assert!(world.put(held));
    });
}

#[test]
fn sharing_again_beside_a_use_and_a_mark_keeps_the_use_of_who_shares() {
    model(PAIR, |world| {
        let held = shared(world);
        let other = spawn(world, |world| {
            let held = world.with(1, |held| held.try_ref()).flatten();
            held.is_some_and(|held| {
                assert!(held.mark_freeing().is_none(), "in use");
                world.put(held)
            })
        });
        assert!(held.mark_freeing().is_none(), "in use");
        held.unmark_freeing();
        held.share();
        held.check(1);
        assert!(held.is_live(), "I3");
        let ended = world.put(held);
        assert!([ended, other.join().unwrap()] != [true, true]);
    });
}

#[test]
fn raw_uses_of_a_shared_object_are_given_back_once() {
    model(PAIR, |world| {
        let held = shared(world);
        let keeps = held.clone();
        let other = spawn(world, |world| {
            let end = world.with(1, |held| held.mark_freeing()).flatten();
            let end = end.or(world.with(1, |held| held.forget(1)).flatten());
            end.map(|freeing| world.index.free(freeing)).is_some()
        });
        held.into_raw();
        keeps.check(1);
        let mut evictions = vec![world.put(keeps), other.join().unwrap()];
        // The use may not have been raw yet above.
        if let Some(freeing) = world.with(1, |held| held.forget(1)).flatten() {
            world.index.free(freeing);
            evictions.push(true);
        }
        assert_eq!(evictions.into_iter().filter(|end| *end).count(), 1);
    });
}

#[test]
fn the_end_of_the_index_beside_shared_uses_frees_once() {
    model(PAIR, |world| {
        let inner = World {
            index: crate::index::Index::new(),
            evicted_uses: crate::index::EvictedUses::new(),
            left: std::sync::Arc::clone(&world.left),
        };
        let held = shared(&inner);
        let user = loom::thread::spawn(move || {
            let second = held.clone();
            drop(held);
            second.share();
            second.check(1);
        });
        drop(inner);
        user.join().unwrap();
    });
}

#[test]
fn a_look_that_shares_beside_the_last_put_and_a_mark_loses_no_use() {
    model(PAIR, |world| {
        let held = world.publish(1).unwrap();
        let looker = spawn(world, |world| {
            world.with(1, |held| {
                held.note_look();
                held.check(1);
            });
        });
        assert!(held.mark_freeing().is_none(), "in use");
        assert!(world.put(held));
        looker.join().unwrap();
    });
}

#[test]
fn a_look_that_shares_beside_an_eviction_and_a_use_leaves_one_end() {
    model(CROWD, |world| {
        drop(world.publish(1).unwrap());
        let looker = spawn(world, |world| {
            world.with(1, Held::note_look);
        });
        let user = spawn(world, |world| {
            let held = world.with(1, |held| held.try_ref()).flatten();
            if let Some(held) = held {
                held.check(1);
                assert!(held.is_live(), "I3");
            }
        });
        if let Some(freeing) = world.begin_evict(1) {
            assert_eq!(freeing.uses(), 0);
            world.index.free(freeing);
        }
        looker.join().unwrap();
        user.join().unwrap();
    });
}

#[test]
fn raw_uses_that_others_give_back_beside_a_mark_leave_one_end() {
    model(PAIR, |world| {
        let held = shared(world);
        let second = held.clone();
        second.into_raw();
        let other = spawn(world, |world| {
            // Counted on the core of the thread that made it.
            world.forget(1)
        });
        held.check(1);
        let freeing = held.mark_freeing();
        assert!(freeing.is_none(), "in use");
        one_end([world.put(held), other.join().unwrap()]);
    });
}

#[test]
fn raw_uses_that_come_and_go_beside_an_eviction_keep_what_they_are_uses_of() {
    model(PAIR, |world| {
        let held = shared(world);
        let other = spawn(world, |world| {
            if let Some(freeing) = world.begin_evict(1) {
                assert_eq!(freeing.uses(), 0);
                world.index.free(freeing);
                return true;
            }
            false
        });
        held.check(1);
        held.into_raw();
        world
            .with(1, |held| held.check(1))
            .expect("a raw use keeps it");
        assert!(!world.forget(1), "not marked");
        if !other.join().unwrap() {
            assert_eq!(world.with(1, |held| held.uses()), Some(0));
        }
    });
}

#[test]
fn no_more_raw_uses_are_given_back_than_there_are() {
    model(CROWD, |world| {
        let held = shared(world);
        held.clone().into_raw();
        let [first, second] = [(); 2].map(|()| spawn(world, |world| world.forget(1)));
        held.check(1);
        assert!(!first.join().unwrap() && !second.join().unwrap());
        assert_eq!(held.uses(), 1);
        assert!(held.mark_freeing().is_none());
        assert!(world.put(held));
    });
}
