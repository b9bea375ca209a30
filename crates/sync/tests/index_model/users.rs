//! What the core does with the index in several steps, concurrently. Walks end early, scanners pass
//! by, and a file system is revoked.

use super::{CROWD, PAIR, Probe, World, epoch, model, spawn};
use crate::index::Ref;
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::Arc;

impl World {
    /// What a walk takes into use at once.
    fn batch(&self) -> Vec<Ref<Probe>> {
        let guard = epoch::pin();
        let mut batch = Vec::new();
        let mut next = Some(0);
        while let Some(from) = next {
            next = self.index.scan(from, 64, &guard, |held| {
                batch.extend(held.try_ref());
                true
            });
        }
        batch
    }

    /// A walk that ends with its first visit, because its visitor stops or fails, and releases the
    /// rest of its batch. Returns how many objects ended with that.
    fn walk_one(&self) -> usize {
        let evictions = self.batch().into_iter().enumerate().map(|(place, held)| {
            if place == 0 {
                held.check(held.key());
                assert!(held.is_live(), "I3: in use while it is visited");
            }
            self.put(held)
        });
        evictions.filter(|ended| *ended).count()
    }

    /// Evicts everything that is not in use.
    fn evict_all(&self) -> usize {
        let mut evictions = Vec::new();
        {
            let guard = epoch::pin();
            let mut next = Some(0);
            while let Some(from) = next {
                next = self.index.scan(from, 64, &guard, |held| {
                    evictions.extend(self.index.begin_evict(held));
                    true
                });
            }
        }
        let ended = evictions.len();
        evictions
            .into_iter()
            .for_each(|freeing| self.index.free(freeing));
        ended
    }

    /// The walk of a revocation: every object is marked, and ends with its last use or at once.
    fn take_away(&self) -> usize {
        {
            let guard = epoch::pin();
            let mut next = Some(0);
            while let Some(from) = next {
                next = self.index.scan(from, 64, &guard, |held| {
                    // If it is freeing now, the next pass ends it.
                    drop(held.mark_freeing());
                    true
                });
            }
        }
        self.evict_all()
    }
}

#[test]
fn two_publishers_of_a_key_beside_a_walk_show_it_one_object() {
    model(CROWD, |world| {
        let publish = |world: &World| world.publish(2).is_some();
        let (first, second) = (spawn(world, publish), spawn(world, publish));
        let met: Vec<u64> = world.batch().iter().map(|held| held.key()).collect();
        assert!(met.is_empty() || met == [2], "I1: {met:?}");
        assert!(first.join().unwrap() != second.join().unwrap());
        assert_eq!(world.keys(), [2]);
    });
}

/// Removing a name ends an object without another name and without users, in one step.
#[test]
fn what_loses_its_only_name_ends_or_got_another() {
    model(PAIR, |world| {
        drop(world.publish(1));
        let names = Arc::new(AtomicU64::new(1));
        let linking = {
            let names = Arc::clone(&names);
            spawn(world, move |world| {
                let Some(held) = world.index.get(1) else {
                    return false;
                };
                names.fetch_add(1, Ordering::Relaxed);
                assert!(!world.put(held), "it has a name");
                true
            })
        };
        let end = world.with(1, |held| {
            let has_one = || names.load(Ordering::Relaxed) == 1;
            let freeing = has_one().then(|| world.index.begin_evict(held))?;
            // Otherwise it lives on.
            freeing.filter(|_| has_one())
        });
        let ended = world.free(end.flatten());
        let linked = linking.join().unwrap();
        assert!(!(ended && linked), "what has a name is gone");
        assert_eq!(world.keys().is_empty(), ended);
    });
}

#[test]
fn a_walk_that_ends_early_beside_an_eviction_gives_back_every_use() {
    model(PAIR, |world| {
        drop(world.publish(1).unwrap());
        drop(world.publish(2).unwrap());
        let walker = spawn(world, World::walk_one);
        let evicted = world.evict_all();
        assert_eq!(walker.join().unwrap(), 0, "nothing was marked");
        // I2: with a use left, it could not be evicted now.
        assert_eq!(evicted + world.evict_all(), 2);
        assert!(world.index.is_empty());
    });
}

#[test]
fn a_walk_that_ends_early_beside_the_last_puts_of_marked_objects_leaves_one_end_of_each() {
    model(PAIR, |world| {
        let users = [1, 2].map(|key| world.publish(key).unwrap());
        assert!(users.iter().all(|held| held.mark_freeing().is_none()));
        let walker = spawn(world, World::walk_one);
        let ended = users.map(|held| world.put(held));
        let ended = ended.into_iter().filter(|ended| *ended).count();
        assert_eq!(ended + walker.join().unwrap(), 2);
        assert!(world.index.is_empty());
    });
}

/// The protocol of `DONTCACHE`: an object that only a scanner brought in is marked. A thread that
/// looks it up otherwise clears the mark.
#[test]
fn a_passer_by_lets_go_of_what_nobody_looks_up_and_of_nothing_else() {
    model(PAIR, |world| {
        let passing = world.publish(1).unwrap();
        assert!(passing.mark_freeing().is_none());
        let looker = spawn(world, |world| {
            world.index.get(1).is_some_and(|held| {
                held.check(1);
                if held.is_marked_freeing() {
                    held.unmark_freeing();
                }
                assert!(!world.put(held), "it was to be kept");
                true
            })
        });
        let let_go = world.put(passing);
        let found = looker.join().unwrap();
        assert!(found != let_go, "kept if and only if it was found");
        let kept = world.with(1, |held| held.is_live() && !held.is_marked_freeing());
        assert_eq!(kept, found.then_some(true));
    });
}

#[test]
fn a_passer_by_a_lookup_and_an_eviction_agree_on_one_end() {
    model(CROWD, |world| {
        let passing = world.publish(1).unwrap();
        assert!(passing.mark_freeing().is_none());
        let looker = spawn(world, |world| {
            world.index.get(1).is_some_and(|held| {
                held.check(1);
                held.unmark_freeing();
                world.put(held)
            })
        });
        let evictor = spawn(world, World::evict_all);
        let evictions = usize::from(world.put(passing))
            + usize::from(looker.join().unwrap())
            + evictor.join().unwrap();
        assert_eq!(evictions + world.evict_all(), 1, "R-I8");
        assert!(world.index.is_empty());
    });
}

/// Forced unmount | close | last unlink: each may be the one that ends the object.
#[test]
fn a_revocation_a_close_and_the_last_unlink_leave_one_end_and_nothing_else() {
    model(CROWD, |world| {
        let open = world.publish(1).unwrap();
        let unlinker = spawn(world, |world| {
            world.index.get(1).is_some_and(|held| {
                held.check(1);
                assert!(held.mark_freeing().is_none(), "in use by who unlinks it");
                world.put(held)
            })
        });
        let closer = spawn(world, move |world| {
            open.check(1);
            world.put(open)
        });
        let taken = world.take_away();
        let evictions =
            taken + usize::from(unlinker.join().unwrap()) + usize::from(closer.join().unwrap());
        assert_eq!(evictions, 1, "F4: one end");
        assert!(world.index.is_empty(), "I5: whoever came last has ended it");
    });
}

/// The same for raw uses, which a kernel holds and gives back by number.
#[test]
fn a_revocation_beside_what_a_kernel_gives_back_leaves_one_end() {
    model(PAIR, |world| {
        world.publish(1).unwrap().into_raw();
        let kernel = spawn(world, |world| {
            let end = world.with(1, |held| held.forget(1)).flatten();
            world.free(end)
        });
        let taken = world.take_away();
        assert_eq!(taken + usize::from(kernel.join().unwrap()), 1, "F4");
        assert!(world.index.is_empty());
    });
}

/// An object that is inserted during a revocation. Its maker checks for a revocation after the
/// insertion, and the revoker sets the flag before its walk.
#[test]
fn what_is_published_beside_a_revocation_does_not_stay() {
    model(PAIR, |world| {
        let revoked = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&revoked);
        let maker = spawn(world, move |world| {
            let held = world.publish(1).unwrap();
            fence(Ordering::SeqCst);
            if told.load(Ordering::Acquire) {
                drop(held.mark_freeing());
            }
            world.put(held)
        });
        revoked.swap(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let taken = world.take_away();
        assert_eq!(taken + usize::from(maker.join().unwrap()), 1);
        assert!(world.index.is_empty(), "I5");
    });
}
