//! The ticker's word under every interleaving of those who keep it and those who go by it, and every order in
//! which their accesses may be seen.
//!
//! A clock goes on while they are at work. Whatever comes, nobody is told an older time after a newer one, and
//! when all keepers have gone nothing is told.

/// As it is.
#[path = "../../src/padded.rs"]
pub mod padded;

/// As it is.
#[path = "../../src/ticker/told.rs"]
pub mod told;

mod ticker_primitive;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use told::Told;

/// A word, and the clock that it is to be near to.
struct World {
    told: Told,
    clock: AtomicU64,
}

impl World {
    fn now(&self) -> u64 {
        // An addition of nothing meets the latest, as a look at a clock does.
        self.clock.fetch_add(0, Ordering::AcqRel)
    }
}

fn passes(world: &World) {
    world.clock.fetch_add(1, Ordering::AcqRel);
}

/// Keeps it, if nobody does, for some rounds.
fn keeps(world: &World) {
    if let Some(mut keeper) = world.told.keep() {
        while keeper.round(|| world.now()) {}
    }
}

fn keeps_twice(world: &World) {
    keeps(world);
    keeps(world);
}

/// Goes by it twice; the first time with a look of his own.
fn asks(world: &World) {
    let first = world.told.word();
    let seen = world.now();
    assert!(first <= seen, "told what has not come yet");
    world.told.correct(first, seen);
    world.told.want();
    let second = world.told.word();
    assert!(second == 0 || second >= first, "told what was before");
    // Kept all the time, it was corrected: no older answer has taken its place.
    assert!(
        first == 0 || second == 0 || second >= seen,
        "corrected in vain"
    );
}

fn model(preemptions: Option<usize>, threads: &'static [fn(&World)]) {
    let mut builder = loom::model::Builder::new();
    if builder.preemption_bound.is_none() {
        builder.preemption_bound = preemptions;
    }
    builder.check(move || {
        let world = Arc::new(World {
            told: Told::new(),
            clock: AtomicU64::new(1),
        });
        let others: Vec<_> = threads[1..]
            .iter()
            .map(|each| {
                let world = Arc::clone(&world);
                loom::thread::spawn(move || each(&world))
            })
            .collect();
        threads[0](&world);
        for other in others {
            other.join().expect("no panic");
        }
        assert_eq!(world.told.word(), 0, "told when nobody keeps it");
        assert!(world.told.keep().is_some(), "nobody can keep it any more");
    });
}

#[test]
fn who_asks_is_told_the_time_or_nothing() {
    model(Some(3), &[keeps, asks, passes]);
}

#[test]
fn two_who_ask_correct_the_same() {
    model(Some(2), &[keeps, asks, asks, passes]);
}

#[test]
fn one_keeper_comes_after_the_other() {
    model(Some(3), &[keeps_twice, asks, keeps]);
}
