//! Objects that leave the index while they have raw uses: evict | FORGET | LOOKUP | unlink.
//!
//! These are the steps of a file system for inodes that a kernel holds. Invariant: the raw uses in
//! the object and in `EvictedUses` are those given less those given back. A file without a name is
//! freed with the last of them, once.

use super::{PAIR, Probe, World, epoch, model, spawn};
use crate::index::{Freeing, Prepared, Ref};
use loom::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

const KEY: u64 = 1;
/// Three threads with many steps each: with two preemptions these models take minutes.
const ONE: usize = 1;

/// What the store knows of the file.
struct File {
    names: AtomicU64,
    freed: AtomicU64,
}

impl File {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            names: AtomicU64::new(1),
            freed: AtomicU64::new(0),
        })
    }

    fn is_unlinked(&self) -> bool {
        self.names.load(Ordering::Relaxed) == 0
    }

    fn is_freed(&self) -> bool {
        self.freed.load(Ordering::Relaxed) > 0
    }
}

impl World {
    /// Raw uses, wherever they are counted.
    fn raw_uses(&self) -> u64 {
        let there = self.with(KEY, |held| held.raw_uses()).flatten();
        there.unwrap_or(0) + self.evicted_uses.lock().runs().get(KEY)
    }

    fn load(&self, file: &File) -> Option<Ref<Probe>> {
        loop {
            if let Some(held) = self.index.get(KEY) {
                return Some(held);
            }
            let mut locked = self.evicted_uses.lock();
            if self.index.peek(KEY, &epoch::pin()).is_some() {
                continue;
            }
            if file.is_freed() {
                return None;
            }
            let object = Prepared::new(self.probe(KEY));
            let object = locked.give_back(KEY, object);
            return self.index.publish_prepared(KEY, object).ok();
        }
    }

    fn end(&self, file: &File, freeing: Freeing<Probe>) {
        freeing.check(KEY);
        if file.is_unlinked() {
            assert_eq!(freeing.raw_uses(), Some(0), "somebody holds it");
            file.freed.fetch_add(1, Ordering::Relaxed);
        }
        self.evicted_uses.lock().free(&self.index, freeing);
    }

    fn give_up(&self, file: &File, held: Ref<Probe>) {
        if let Some(freeing) = held.release() {
            self.end(file, freeing);
        }
    }

    /// Looks a name up, and keeps a raw use of its inode.
    fn look_up(&self, file: &File) {
        if let Some(held) = self.load(file) {
            held.check(KEY);
            held.into_raw();
        }
    }

    fn forget_one(&self, file: &File) {
        if let Some(freeing) = self.evicted_uses.forget(&self.index, KEY, 1) {
            self.end(file, freeing);
        }
    }

    fn evict(&self, file: &File) {
        let evict = |held: &_| self.index.begin_evict_though_held(held);
        let freeing = self.with(KEY, evict).flatten();
        let freeing = freeing.and_then(|freeing| match file.is_unlinked() {
            true => freeing.unless_held(),
            false => Some(freeing),
        });
        if let Some(freeing) = freeing {
            self.end(file, freeing);
        }
    }

    fn unlink(&self, file: &File) {
        let held = self.load(file).expect("it has a name");
        file.names.store(0, Ordering::Relaxed);
        assert!(held.mark_freeing().is_none(), "in use");
        self.give_up(file, held);
    }
}

type Step = fn(&World, &File);

/// Runs all steps concurrently on a file with one raw use, in memory or (`away`) evicted. In the
/// end it has `left` raw uses, and is freed if that is 0 and it has no name.
fn beside(switches: usize, away: bool, steps: &'static [Step], left: u64) {
    model(switches, move |world| {
        let file = File::new();
        world.look_up(&file);
        if away {
            world.evict(&file);
            assert!(world.index.is_empty());
        }
        let (first, others) = steps.split_first().expect("one");
        let others: Vec<_> = others
            .iter()
            .map(|step| {
                let file = Arc::clone(&file);
                spawn(world, move |world| step(world, &file))
            })
            .collect();
        first(world, &file);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(world.raw_uses(), left);
        let is_held = left > 0;
        let freed = u64::from(file.is_unlinked() && !is_held);
        assert_eq!(file.freed.load(Ordering::Relaxed), freed);
        if is_held {
            (0..left).for_each(|_| world.forget_one(&file));
            assert_eq!(world.raw_uses(), 0);
            assert_eq!(file.is_freed(), file.is_unlinked());
        }
        world.evict(&file);
        assert!(world.index.is_empty());
    });
}

#[test]
fn what_is_forgotten_beside_an_eviction_is_forgotten_once() {
    beside(PAIR, false, &[World::evict, World::forget_one], 0);
}

#[test]
fn what_is_looked_up_beside_an_eviction_is_held_once_more() {
    beside(PAIR, false, &[World::evict, World::look_up], 2);
}

#[test]
fn what_comes_back_beside_a_forget_is_held_as_often_as_it_should() {
    beside(PAIR, true, &[World::look_up, World::forget_one], 1);
}

#[test]
fn an_eviction_a_lookup_and_a_forget_lose_and_invent_nothing() {
    let steps: &[Step] = &[World::evict, World::look_up, World::forget_one];
    beside(ONE, false, steps, 1);
}

#[test]
fn what_is_unlinked_beside_an_eviction_lives_as_long_as_it_is_held() {
    beside(PAIR, false, &[World::evict, World::unlink], 1);
}

#[test]
fn what_is_unlinked_while_it_is_away_ends_with_its_last_forget() {
    beside(PAIR, true, &[World::unlink, World::forget_one], 0);
}

#[test]
fn an_eviction_an_unlink_and_the_last_forget_free_once() {
    let steps: &[Step] = &[World::evict, World::unlink, World::forget_one];
    beside(ONE, false, steps, 0);
}

/// Looks at the object, then in `EvictedUses`, as if no object could return in between.
fn forget_without_a_second_look(world: &World, _: &File) {
    if world.with(KEY, |held| held.raw_uses()).flatten().is_some() {
        let end = world.with(KEY, |held| held.forget(1)).flatten();
        assert!(end.is_none(), "it has a name");
    } else {
        world.evicted_uses.lock().forget(KEY, 1);
    }
}

#[test]
#[should_panic(expected = "left: 2")]
fn a_forget_that_looks_for_the_object_once_is_lost() {
    beside(
        PAIR,
        true,
        &[World::look_up, forget_without_a_second_look],
        1,
    );
}
