//! The epochs under every interleaving of a few threads, and every order in which their memory
//! accesses may be seen.
//!
//! Records and domain are compiled here once more with loom's atomics, and with a barrier which is
//! what membarrier(2) is (`primitive`). A scenario has a thread that looks at a value under
//! pins, one that takes it away and frees it as soon as the epochs allow, and perhaps a third that
//! advances them. The value is watched: read when it is freed, loom says so.
#![expect(
    unsafe_code,
    reason = "values that loom watches, records that are given out"
)]

/// As it is.
#[path = "../../src/padded.rs"]
pub mod padded;

#[path = "../../src/epoch/bag.rs"]
#[expect(dead_code, reason = "a scenario makes no garbage but boxes")]
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

/// A value that is there, until it is taken away and freed.
struct World {
    domain: Domain,
    is_there: AtomicBool,
    value: UnsafeCell<bool>,
    seen: std::sync::Arc<Seen>,
}

/// What was so in at least one execution; the threads do not see it.
#[derive(Default)]
struct Seen {
    freed: std::sync::atomic::AtomicBool,
    /// Somebody was pinned without a fence, and without being counted, while the value was there.
    brief: std::sync::atomic::AtomicBool,
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

    /// Reads the value, if it is still there.
    fn look(&self) {
        self.pinned(|| {
            self.read();
        });
    }

    /// As [`look`](Self::look), by a pin that a thread only has without a fence, or not at all: as
    /// `epoch::Brief` does it.
    fn look_briefly(&self) {
        if self.record.pin_if_trusted(self.world.domain.epoch()) && self.read() {
            self.world.seen.brief.store(true, Ordering::Relaxed);
        }
        self.record.unpin();
    }

    /// To be called under a pin. Was the value there?
    fn read(&self) -> bool {
        // Acquire as whoever follows a pointer has it.
        let is_there = self.world.is_there.load(Ordering::Acquire);
        if is_there {
            primitive::here();
            // SAFETY: not freed under a pin; loom says whether that is true.
            self.world.value.with(|value| assert!(unsafe { *value }));
        }
        is_there
    }

    /// Comes so often that it is trusted.
    fn become_trusted(&self) {
        for _ in 0..primitive::TRUSTED_AFTER {
            self.pinned(|| ());
        }
    }

    /// Takes the value away, and frees it if two advances are had in so many attempts.
    fn take_away(&self, attempts: u32) -> bool {
        self.world.is_there.store(false, Ordering::Release);
        let sealed = self.world.domain.seal(vec![Deferred::free(Box::new(()))]);
        for _ in 0..attempts {
            let epoch = self.world.domain.try_advance(Some(self.record), true);
            if sealed.is_due(epoch) {
                // SAFETY: nobody reads it any more; loom says whether that is true.
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

/// Runs a scenario of two or three threads in every order; was the value freed in one of them?
fn model(
    preemptions: usize,
    available: bool,
    others: &'static [fn(&Thread<'_>)],
    own: impl Fn(&Thread<'_>) -> bool + Send + Sync + 'static,
) -> bool {
    let seen = explore(preemptions, available, others, own);
    seen.freed.load(Ordering::Relaxed)
}

/// Runs a scenario, and tells what was seen.
fn explore(
    preemptions: usize,
    available: bool,
    others: &'static [fn(&Thread<'_>)],
    own: impl Fn(&Thread<'_>) -> bool + Send + Sync + 'static,
) -> std::sync::Arc<Seen> {
    let seen = std::sync::Arc::<Seen>::default();
    let also = std::sync::Arc::clone(&seen);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        primitive::begin(available);
        let world = Arc::new(World {
            domain: Domain::new(),
            is_there: AtomicBool::new(true),
            value: UnsafeCell::new(true),
            seen: std::sync::Arc::clone(&also),
        });
        let threads: Vec<_> = others
            .iter()
            .map(|other| {
                let world = Arc::clone(&world);
                loom::thread::spawn(move || other(&Thread::new(&world)))
            })
            .collect();
        if own(&Thread::new(&world)) {
            also.freed.store(true, Ordering::Relaxed);
        }
        for thread in threads {
            thread.join().expect("no panic");
        }
    });
    seen
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

fn looks_briefly(thread: &Thread<'_>) {
    thread.look_briefly();
    thread.become_trusted();
    thread.look_briefly();
}

fn looks_briefly_twice(thread: &Thread<'_>) {
    thread.become_trusted();
    thread.look_briefly();
    thread.look_briefly();
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
fn brief_pins_keep_what_they_meet() {
    for available in [true, false] {
        let looks: &[fn(&Thread<'_>)] = &[looks_briefly];
        let seen = explore(PREEMPTIONS, available, looks, |thread| thread.take_away(2));
        assert!(seen.freed.load(Ordering::Relaxed));
        // Nobody is trusted where there is no barrier.
        assert_eq!(seen.brief.load(Ordering::Relaxed), available);
    }
}

#[test]
fn a_brief_pin_is_refused_once_trust_is_lost() {
    let looks: &[fn(&Thread<'_>)] = &[looks_briefly_twice];
    let seen = explore(2, true, looks, |thread| thread.take_away(3));
    assert!(seen.freed.load(Ordering::Relaxed) && seen.brief.load(Ordering::Relaxed));
}

#[test]
fn several_may_advance_the_epoch() {
    assert!(model(2, true, &[looks_once, advances], |thread| thread
        .take_away(1)));
    assert!(model(2, true, &[looks_when_trusted, advances], |thread| {
        thread.take_away(1)
    }));
}
