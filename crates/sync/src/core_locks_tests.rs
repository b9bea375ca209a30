//! Locks of cores; their models compile them without these.

use crate::CoreLocks;
use crate::core_locks_primitive::is_available;
use crate::per_core::slots;
use crate::thread_slot::own_thread_slot;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use std::{iter, thread};

/// Waits until it is known whether the kernel has the barrier. Locks that learn it later are closed once for that: readers must
/// not wait for each other meanwhile.
fn know_the_barrier() {
    let begun = Instant::now();
    while !is_available() && begun.elapsed() < Duration::from_secs(2) {
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn whoever_closes_is_alone_and_loses_nothing_of_what_threads_did() {
    // More threads than slots on small machines, so that some share.
    let locks = CoreLocks::new(|_| (0_u64, 0_u64));
    let (threads, rounds) = (24, 4000);
    thread::scope(|scope| {
        for thread in 0..threads {
            let locks = &locks;
            scope.spawn(move || {
                for round in 0..rounds {
                    if round % 500 == thread {
                        let mut closed = locks.close();
                        let all: Vec<_> = closed.iter_mut().collect();
                        for pair in all {
                            assert_eq!(pair.0, pair.1);
                            pair.0 += 1000;
                            pair.1 += 1000;
                        }
                    }
                    {
                        let mut pair = locks.lock();
                        pair.0 += 1;
                        std::hint::spin_loop();
                        pair.1 += 1;
                    }
                    let pair = locks.read();
                    let again = locks.read();
                    assert_eq!(pair.0, again.1);
                }
            });
        }
    });
    let closings = threads * rounds / 500;
    let sum: u64 = locks.close().iter().map(|pair| pair.0).sum();
    let values = CoreLocks::<()>::count() as u64;
    assert_eq!(sum, threads * rounds + closings * values * 1000);
}

#[test]
fn a_thread_meets_its_own_value_and_whoever_closes_meets_each() {
    let locks = CoreLocks::new(|number| number);
    let number = *locks.read();
    assert_eq!(number, *locks.lock());
    let closed = locks.close();
    assert!(closed.iter().copied().eq(0..CoreLocks::<usize>::count()));
}

#[test]
fn a_value_is_changed_by_one_at_a_time() {
    let locks = CoreLocks::new(|_| 0);
    let refused = || {
        let attempt = || {
            // Of a shared lock it would wait for itself: other tests may have all slots.
            own_thread_slot().filter(|number| *number < slots())?;
            let _reading = locks.read();
            let changing = AssertUnwindSafe(|| drop(locks.lock()));
            Some(catch_unwind(changing).is_err())
        };
        thread::scope(|scope| scope.spawn(attempt).join().unwrap())
    };
    let first = iter::repeat_with(refused).flatten().next();
    assert_eq!(first, Some(true));
}

#[test]
fn who_waits_for_somebody_inside_sleeps_until_he_leaves() {
    let locks = CoreLocks::new(|_| 0);
    thread::scope(|scope| {
        let reading = locks.read();
        let closer = scope.spawn(|| locks.close().iter_mut().for_each(|value| *value += 1));
        thread::sleep(std::time::Duration::from_millis(30));
        assert!(!closer.is_finished());
        assert_eq!(*reading, 0);
        drop(reading);
        closer.join().unwrap();
        assert_eq!(*locks.read(), 1);
    });
}

#[test]
fn who_reads_may_read_again_while_somebody_waits_to_close() {
    know_the_barrier();
    // As many threads as have no slots of their own, too.
    let locks = CoreLocks::new(|_| 0_u64);
    let threads = CoreLocks::<u64>::count() + 8;
    let ready = std::sync::Barrier::new(threads + 1);
    thread::scope(|scope| {
        for _ in 0..threads {
            let (locks, ready) = (&locks, &ready);
            scope.spawn(move || {
                let before = locks.read();
                ready.wait();
                // The closer is at it by now.
                thread::sleep(std::time::Duration::from_millis(20));
                assert_eq!(*before, *locks.read());
            });
        }
        ready.wait();
        locks.close().iter_mut().for_each(|value| *value += 1);
    });
    assert!(locks.close().iter().all(|value| *value == 1));
}
