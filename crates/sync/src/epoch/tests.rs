#![expect(unsafe_code, reason = "values of any type")]

use super::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

struct Counts(Arc<AtomicUsize>);

impl Drop for Counts {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Drops a value after the pins of this moment.
fn retire<T: Send + 'static>(value: Box<T>) {
    unsafe fn free<T>(value: *mut ()) {
        // SAFETY: made from a box below, and called once.
        drop(unsafe { Box::from_raw(value.cast::<T>()) });
    }
    // SAFETY: no other thread knows the box, and `T` may be dropped on any thread.
    unsafe { retire_with(Box::into_raw(value).cast(), free::<T>) };
}

/// Waits until `count` values were dropped, and no more. Another test's thread may be dropping some
/// just now. What a destructor retires is in that thread's bag, until it ends at the latest.
fn wait_for(dropped: &AtomicUsize, count: usize) {
    let begun = Instant::now();
    loop {
        synchronize();
        let now = dropped.load(Ordering::Relaxed);
        assert!(now <= count, "{now} were dropped, of {count}");
        if now == count {
            return;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{now} of {count}"
        );
        thread::yield_now();
    }
}

#[test]
fn what_is_retired_is_dropped_after_the_pins_of_its_time() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let (pinned, go) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let reader = thread::spawn({
        let (pinned, go) = (Arc::clone(&pinned), Arc::clone(&go));
        move || {
            let guard = pin();
            pinned.store(true, Ordering::Release);
            while !go.load(Ordering::Acquire) {
                thread::yield_now();
            }
            drop(guard);
        }
    });
    while !pinned.load(Ordering::Acquire) {
        thread::yield_now();
    }
    retire(Box::new(Counts(Arc::clone(&dropped))));
    for _ in 0..100 {
        flush();
    }
    assert_eq!(dropped.load(Ordering::Relaxed), 0, "a pin was still there");
    go.store(true, Ordering::Release);
    reader.join().unwrap();
    wait_for(&dropped, 1);
}

#[test]
fn a_thread_that_ends_leaves_no_garbage_behind() {
    let dropped = Arc::new(AtomicUsize::new(0));
    thread::spawn({
        let dropped = Arc::clone(&dropped);
        move || (0..1000).for_each(|_| retire(Box::new(Counts(Arc::clone(&dropped)))))
    })
    .join()
    .unwrap();
    wait_for(&dropped, 1000);
}

#[test]
fn a_queue_that_was_long_once_does_not_keep_its_room() {
    use super::domain::{Domain, ROOM_KEPT};
    // Records are never freed: a static keeps the leak detector quiet.
    static DOMAIN: LazyLock<Domain> = LazyLock::new(Domain::new);
    let (domain, record) = (&*DOMAIN, DOMAIN.take_record());
    for _ in 0..20 * ROOM_KEPT {
        let sealed = domain.seal(Vec::new());
        record.sealed.lock().push_back(sealed);
    }
    assert!(record.sealed.lock().capacity() > ROOM_KEPT);
    domain.wait_for_grace(None);
    assert!(record.sealed.lock().is_empty());
    assert!(record.sealed.lock().capacity() <= ROOM_KEPT);
}

#[test]
fn destructors_may_retire() {
    struct Chain(u32, Arc<AtomicUsize>);
    impl Drop for Chain {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::Relaxed);
            if self.0 > 0 {
                retire(Box::new(Chain(self.0 - 1, Arc::clone(&self.1))));
            }
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    retire(Box::new(Chain(10, Arc::clone(&dropped))));
    wait_for(&dropped, 11);
}

#[test]
fn pins_nest() {
    let outer = pin();
    let inner = pin();
    drop(outer);
    assert!(guard::is_pinned());
    drop(inner);
    assert!(!guard::is_pinned());
}

#[test]
fn garbage_does_not_pile_up_while_threads_work() {
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100_000 {
                    let _guard = pin();
                    retire(Box::new(0_u64));
                }
            });
        }
    });
    synchronize();
    // Other tests of the process may hold some.
    assert!(pending() < 100_000, "{}", pending());
}
