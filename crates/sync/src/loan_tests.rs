//! What is lent, and how that ends.

use crate::loan::{Errand, lend};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

#[test]
fn what_nobody_begins_is_taken_back() {
    let called = AtomicUsize::new(0);
    let help = || {
        called.fetch_add(1, Ordering::Relaxed);
    };
    let mut kept = None;
    assert_eq!(lend(&help, |errand| kept = Some(errand), || 7), 7);
    kept.expect("it was offered").run();
    assert_eq!(lend(&help, drop, || 8), 8);
    assert_eq!(called.into_inner(), 0);
}

#[test]
fn what_has_begun_is_waited_for_on_every_way_out() {
    for fails in [false, true] {
        let (begun, has_begun) = channel();
        let (go_on, may_go_on) = channel();
        let may_go_on = std::sync::Mutex::new(may_go_on);
        let ended = AtomicUsize::new(0);
        let help = || {
            begun.send(()).expect("the owner is there");
            may_go_on
                .lock()
                .unwrap()
                .recv()
                .expect("the owner is there");
            thread::sleep(std::time::Duration::from_millis(20));
            ended.fetch_add(1, Ordering::Relaxed);
        };
        let helper = thread::scope(|scope| {
            let offer = |errand: Errand| drop(scope.spawn(|| errand.run()));
            let own = || {
                has_begun.recv().expect("the helper is there");
                go_on.send(()).expect("the helper is there");
                assert!(!fails, "planted");
            };
            let outcome = catch_unwind(AssertUnwindSafe(|| lend(&help, offer, own)));
            assert_eq!(ended.load(Ordering::Relaxed), 1, "it was not waited for");
            outcome
        });
        assert_eq!(helper.is_err(), fails);
    }
}

#[test]
fn a_panic_of_the_helper_is_the_owners_too() {
    let help = || panic!("planted");
    let helped = AtomicUsize::new(0);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        lend(
            &help,
            |errand| {
                thread::spawn(|| errand.run()).join().expect("caught");
                helped.fetch_add(1, Ordering::Relaxed);
            },
            || (),
        );
    }));
    assert_eq!((outcome.is_err(), helped.into_inner()), (true, 1));
}
