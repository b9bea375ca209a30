//! The freeze barrier under every interleaving of a reader, a change and the end of a checkpoint.
//!
//! Its module is compiled here once more, with loom's atomics and locks (`primitive`) in place of
//! the real ones. There is no test harness, so the module's own tests stay out. An argument selects
//! models by a part of their names. Each model also runs over a barrier that is broken on purpose,
//! and must notice.
#![expect(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "the module's tests are compiled and, without the harness, never run"
)]

mod primitive;
mod store;

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use primitive::{Broken, break_on_purpose};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use store::act::Passage;

const SWITCHES: usize = 3;

fn main() {
    let chosen = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let models: [(&str, fn(), Broken); 2] = [
        (
            "what_a_current_snapshot_read_is_of_its_trees",
            a_reader_beside_a_checkpoint,
            Broken::Count,
        ),
        (
            "nobody_works_inside_a_gate_that_is_closed",
            a_change_beside_a_cut,
            Broken::Closing,
        ),
    ];
    for (name, model, broken) in models {
        if chosen.as_ref().is_some_and(|part| !name.contains(part)) {
            continue;
        }
        check(model);
        println!("model {name} ... ok");
        break_on_purpose(broken);
        let noticed = catch_unwind(AssertUnwindSafe(|| check(model)));
        break_on_purpose(Broken::Nothing);
        assert!(noticed.is_err(), "{name} does not notice {broken:?}");
        println!("model {name} over {broken:?} ... noticed");
    }
}

fn check(model: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(SWITCHES);
    builder.check(model);
}

/// A block of the device. Device calls order what comes before and after them.
struct Block(AtomicU64);

/// The contents of a block of the trees with these roots.
const fn of_trees(roots: u64) -> u64 {
    100 + roots
}

fn a_reader_beside_a_checkpoint() {
    let freeze_barrier = Arc::new(Passage::over(0));
    // One block for each of two trees; the first block is reused when its tree is gone.
    let blocks = Arc::new([0, 1].map(|roots| Block(AtomicU64::new(of_trees(roots)))));
    let checkpoint = {
        let (freeze_barrier, blocks) = (Arc::clone(&freeze_barrier), Arc::clone(&blocks));
        thread::spawn(move || freeze_barrier.succeed(1, || blocks[0].0.store(7, Ordering::SeqCst)))
    };
    let load = |roots: usize| blocks[roots].0.load(Ordering::SeqCst);
    let (roots, found, is_current) = freeze_barrier.read(|| [load(0), load(1)]);
    if is_current {
        assert_eq!(found[roots as usize], of_trees(roots), "another's block");
    }
    checkpoint.join().expect("it ends");
    let (roots, found, is_current) = freeze_barrier.read(|| load(1));
    assert_eq!((roots, found, is_current), (1, of_trees(1), true));
}

fn a_change_beside_a_cut() {
    let freeze_barrier = Arc::new(Passage::over(0));
    let half = Arc::new(AtomicU64::new(0));
    let change = {
        let (freeze_barrier, half) = (Arc::clone(&freeze_barrier), Arc::clone(&half));
        thread::spawn(move || {
            freeze_barrier.pass(|_| {
                half.store(1, Ordering::SeqCst);
                half.store(2, Ordering::SeqCst);
            });
        })
    };
    let seen = freeze_barrier.exclude(|| half.load(Ordering::SeqCst));
    assert_ne!(seen, 1, "a change half made");
    change.join().expect("it ends");
}
