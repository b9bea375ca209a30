//! The epochs under every interleaving of a few threads, and every order in which their memory
//! accesses may become visible.
//!
//! Records and domain are compiled here once more with loom's atomics, and with a barrier that does
//! what membarrier(2) does (`primitive`). In a scenario one thread reads a value under pins.
//! Another takes it away and frees it as soon as the epochs allow, and a third may advance them.
//! Loom watches the value: a read of the freed value is an error.
#![expect(
    unsafe_code,
    reason = "values that loom watches, records that are given out"
)]

/// The original.
#[path = "../../src/padded.rs"]
pub mod padded;

#[path = "../../src/epoch/bag.rs"]
mod bag;
#[path = "../../src/epoch/domain.rs"]
#[expect(dead_code, reason = "scenarios wait for nothing")]
mod domain;
#[path = "../../src/epoch/record.rs"]
#[expect(dead_code, reason = "threads have no guards here")]
mod record;

mod primitive;

use bag::{Deferred, STEP};
use domain::Domain;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use primitive::{AtomicBool, Member, Ordering};
use record::Record;

/// Switches from a thread that could have gone on.
const PREEMPTIONS: usize = 3;

/// A value that can be read until it is taken away and freed.
struct World {
    domain: Domain,
    is_there: AtomicBool,
    value: UnsafeCell<bool>,
}

// SAFETY: whether accesses are ordered is loom's to judge.
unsafe impl Sync for World {}
// SAFETY: as above.
unsafe impl Send for World {}

/// A thread with its record.
struct Thread<'w> {
    world: &'w World,
    record: &'static Record,
    _member: Member,
}

impl<'w> Thread<'w> {
    fn new(world: &'w World) -> Self {
        let _member = Member::new();
        Self {
            world,
            record: world.domain.take_record(),
            _member,
        }
    }

    fn pinned(&self, look: impl FnOnce()) {
        // SAFETY: the record was taken by this thread.
        unsafe { self.record.pin(self.world.domain.epoch()) };
        look();
        self.record.unpin();
    }

    /// Reads the value, unless it was taken away.
    fn look(&self) {
        self.pinned(|| self.read());
    }

    /// Called under a pin.
    fn read(&self) {
        // Acquire, as for following a pointer.
        if self.world.is_there.load(Ordering::Acquire) {
            primitive::here();
            // SAFETY: not freed under a pin; loom checks that.
            self.world.value.with(|value| assert!(unsafe { *value }));
        }
    }

    /// Pins until the record is trusted.
    fn become_trusted(&self) {
        for _ in 0..primitive::TRUSTED_AFTER {
            self.pinned(|| ());
        }
    }

    /// Takes the value away, and frees it if that many attempts advance the epoch twice.
    fn take_away(&self, attempts: u32) -> bool {
        self.world.is_there.store(false, Ordering::Release);
        // SAFETY: nothing is dropped.
        let garbage = unsafe { Deferred::with(std::ptr::null_mut(), |_| ()) };
        let sealed = self.world.domain.seal(vec![garbage]);
        for _ in 0..attempts {
            let epoch = self.world.domain.try_advance(Some(self.record), true);
            if sealed.is_due(epoch) {
                // SAFETY: no thread reads it any more; loom checks that.
                self.world.value.with_mut(|value| unsafe { *value = false });
                sealed.bag.into_iter().for_each(Deferred::run);
                return true;
            }
        }
        sealed.bag.into_iter().for_each(Deferred::run);
        false
    }

    fn advance(&self) {
        let before = self.world.domain.try_advance(Some(self.record), true);
        assert_eq!(before % STEP, 0);
    }
}

impl Drop for Thread<'_> {
    fn drop(&mut self) {
        self.record.give_back();
    }
}

/// Runs a scenario of two or three threads in every order. Was the value freed in one of them?
fn model(
    preemptions: usize,
    available: bool,
    others: &'static [fn(&Thread<'_>)],
    own: impl Fn(&Thread<'_>) -> bool + Send + Sync + 'static,
) -> bool {
    let freed = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let also = std::sync::Arc::clone(&freed);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        primitive::begin(available);
        let world = Arc::new(World {
            domain: Domain::new(),
            is_there: AtomicBool::new(true),
            value: UnsafeCell::new(true),
        });
        let threads: Vec<_> = others
            .iter()
            .map(|other| {
                let world = Arc::clone(&world);
                loom::thread::spawn(move || other(&Thread::new(&world)))
            })
            .collect();
        if own(&Thread::new(&world)) {
            also.store(true, Ordering::Relaxed);
        }
        for thread in threads {
            thread.join().expect("no panic");
        }
    });
    freed.load(Ordering::Relaxed)
}

fn looks_once(thread: &Thread<'_>) {
    thread.look();
}

fn looks_twice(thread: &Thread<'_>) {
    thread.look();
    thread.look();
}

fn looks_when_trusted(thread: &Thread<'_>) {
    thread.become_trusted();
    thread.look();
}

fn looks_often(thread: &Thread<'_>) {
    thread.become_trusted();
    thread.look();
    thread.look();
}

fn advances(thread: &Thread<'_>) {
    thread.advance();
    thread.advance();
}

#[test]
fn fenced_pins_keep_what_they_meet() {
    assert!(model(PREEMPTIONS, false, &[looks_twice], |thread| thread
        .take_away(2)));
}

#[test]
fn pins_without_a_fence_keep_what_they_meet() {
    assert!(model(PREEMPTIONS, true, &[looks_when_trusted], |thread| {
        thread.take_away(2)
    }));
}

#[test]
fn trust_may_be_lost_between_two_pins() {
    assert!(model(2, true, &[looks_often], |thread| thread.take_away(3)));
}

#[test]
fn trust_that_was_lost_before_makes_pins_fence() {
    assert!(model(PREEMPTIONS, true, &[looks_when_trusted], |thread| {
        thread.advance();
        thread.advance();
        thread.take_away(2)
    }));
}

#[test]
fn pins_without_a_fence_keep_what_they_meet_when_the_barrier_is_refused_later() {
    for attempts in [2, 3] {
        assert!(model(2, true, &[looks_often], move |thread| {
            primitive::refuse();
            thread.take_away(attempts)
        }));
    }
}

#[test]
fn several_may_advance_the_epoch() {
    assert!(model(2, true, &[looks_once, advances], |thread| thread
        .take_away(1)));
    assert!(model(2, true, &[looks_when_trusted, advances], |thread| {
        thread.take_away(1)
    }));
}
