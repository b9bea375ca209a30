//! The catalog under every interleaving of writers and readers, and every order in which their memory
//! accesses may be seen.
//!
//! The modules of the catalog are compiled here once more, with loom's atomics and small sizes in
//! place of the real ones (`catalog_primitive`), and with epochs that free at the first moment at
//! which the real ones might. Items are watched: one that is looked at too early or too late is an
//! error. `LOOM_LOG=trace` with the name of one test tells the order that failed.
#![expect(unsafe_code, reason = "the same interfaces as those of the real parts")]

#[path = "../../src/catalog/mod.rs"]
pub mod catalog;
#[path = "../../../sync/tests/model/epoch.rs"]
pub mod epoch;

mod catalog_primitive;
mod changes;
mod forms;
mod lookup_hints;

use catalog::{Catalog, CatalogWriter, Item};
use catalog_primitive::{forget_locks, free, memory};
use loom::sync::Arc;
use loom::thread::JoinHandle;

/// Switches from a thread that could have gone on, in scenarios of two threads.
const PAIR: usize = 3;
/// The same for three threads.
const CROWD: usize = 2;

/// Runs `scenario` in every order, on a catalog with these names, of orders 10, 20, 30, ... (which
/// are no positions) and with values as large.
fn model(
    switches: usize,
    names: &'static [&'static str],
    scenario: impl Fn(&Arc<Catalog>) + Send + Sync + 'static,
) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(switches);
    builder.max_branches = 100_000;
    builder.check(move || {
        // What an execution that failed has left.
        memory::forget();
        forget_locks();
        free();
        let catalog = Arc::new(Catalog::new());
        for name in names {
            add(&mut catalog.lock(), name);
        }
        scenario(&catalog);
        {
            let writer = catalog.lock();
            assert_eq!(writer.len() as usize, writer.after(0).count());
            assert_eq!(
                memory::left(),
                writer.after(0).count(),
                "what was removed is gone"
            );
        }
        drop(catalog);
        assert_eq!(memory::left(), 0, "leaked");
    });
    free();
}

fn add(writer: &mut CatalogWriter<'_>, name: &str) {
    let order = writer.last_order() + 10;
    writer
        .insert(name.as_bytes(), order, order, 1)
        .expect("a new name");
}

fn remove(writer: &mut CatalogWriter<'_>, name: &str) {
    assert!(writer.remove(name.as_bytes()).is_some());
}

/// Runs `change` in a thread of its own, with the lock.
fn writing(
    catalog: &Arc<Catalog>,
    change: impl FnOnce(&mut CatalogWriter<'_>) + 'static,
) -> JoinHandle<()> {
    let catalog = Arc::clone(catalog);
    loom::thread::spawn(move || change(&mut catalog.lock()))
}

/// The name as a reader finds it, complete.
fn find(catalog: &Catalog, name: &str) -> Option<u64> {
    let guard = epoch::pin();
    let item = catalog.get(name.as_bytes(), &guard)?;
    assert_eq!(item.key(), name.as_bytes());
    Some(item.value())
}

/// The keys that a reader lists behind `after`, which must ascend.
fn list(catalog: &Catalog, after: u64) -> Vec<String> {
    let guard = epoch::pin();
    let items: Vec<Item<'_>> = catalog.after(after, &guard).collect();
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
