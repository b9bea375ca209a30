//! The index under every interleaving of writers and readers, and every order in which their memory
//! accesses may become visible.
//!
//! The modules of the index are compiled here once more, with loom's atomics and small sizes
//! (`primitive`). The epochs free at the first moment at which the real ones might. Items
//! are watched: a read before the allocation or after the end is an error. `LOOM_LOG=trace` with
//! the name of one test prints the order that failed.
#![expect(unsafe_code, reason = "the same interfaces as those of the real parts")]

#[path = "../../../sync/tests/model/epoch.rs"]
pub mod epoch;
#[path = "../../src/index/mod.rs"]
pub mod index;

mod changes;
mod forms;
mod primitive;

use index::{DirIndex, DirIndexWriter, Item};
use loom::sync::Arc;
use loom::thread::JoinHandle;
use primitive::{forget_locks, free, memory};

/// Preemptions in scenarios of two threads.
const PAIR: usize = 3;
/// Preemptions in scenarios of three threads.
const CROWD: usize = 2;

/// Runs `scenario` in every order, on an index with these names, of orders 10, 20, 30, ... (which
/// are not positions) and the same values.
fn model(
    switches: usize,
    names: &'static [&'static str],
    scenario: impl Fn(&Arc<DirIndex>) + Send + Sync + 'static,
) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(switches);
    builder.max_branches = 100_000;
    builder.check(move || {
        // What an execution that failed has left behind.
        memory::forget();
        forget_locks();
        free();
        let index = Arc::new(DirIndex::new());
        for name in names {
            add(&mut index.lock(), name);
        }
        scenario(&index);
        {
            let writer = index.lock();
            assert_eq!(writer.len() as usize, writer.after(0).count());
            assert_eq!(
                memory::left(),
                writer.after(0).count(),
                "what was removed is gone"
            );
        }
        drop(index);
        assert_eq!(memory::left(), 0, "leaked");
    });
    free();
}

fn add(writer: &mut DirIndexWriter<'_>, name: &str) {
    let order = writer.last_order() + 10;
    writer
        .insert(name.as_bytes(), order, order, 1)
        .expect("a new name");
}

fn remove(writer: &mut DirIndexWriter<'_>, name: &str) {
    assert!(writer.remove(name.as_bytes()).is_some());
}

/// Runs `change` in a thread of its own, under the lock.
fn writing(
    index: &Arc<DirIndex>,
    change: impl FnOnce(&mut DirIndexWriter<'_>) + 'static,
) -> JoinHandle<()> {
    let index = Arc::clone(index);
    loom::thread::spawn(move || change(&mut index.lock()))
}

/// The name as a reader finds it, complete.
fn find(index: &DirIndex, name: &str) -> Option<u64> {
    let guard = epoch::pin();
    let item = index.get(name.as_bytes(), &guard)?;
    assert_eq!(item.key(), name.as_bytes());
    Some(item.value())
}

/// The keys that a reader lists behind `after`, which must ascend.
fn list(index: &DirIndex, after: u64) -> Vec<String> {
    let guard = epoch::pin();
    let items: Vec<Item<'_>> = index.after(after, &guard).collect();
    assert!(items.is_sorted_by(|one, next| one.order() < next.order()));
    let keys = items
        .iter()
        .map(|item| String::from_utf8(item.key().to_vec()));
    keys.collect::<Result<_, _>>().expect("whole keys")
}

/// How often a listing has this key.
fn times(listed: &[String], key: &str) -> usize {
    listed.iter().filter(|listed| *listed == key).count()
}
