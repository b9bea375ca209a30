//! The stores of this crate under the library.

use holdfast_core::{FileSystem, Options};
use holdfast_testkit::diff::cast::cast;
use holdfast_testkit::diff::host::AtimeRule;
use holdfast_testkit::diff::library::{LibraryTarget, options};
use holdfast_testkit::diff::run::{Plan, Sides, generated};
use holdfast_testkit::diff::target::Target;
use holdfast_testkit::effort;
use holdfast_testkit::fsx;
use holdfast_testkit::memory::{partial, within};
use holdfast_testkit::store::{Call, Fault, Faults, FaultyStore, Hook, ModelStore, Wrapped};
use holdfast_types::{Caller, Errno, Ino, OpenFlags, Result};
use std::sync::Arc;

fn plan(seed: u64, steps: usize) -> Plan {
    Plan {
        cast: cast(),
        atime: AtimeRule::Strict,
        opens_local: false,
        seed,
        steps,
        between_snapshots: 1000,
        collect: false,
        cpu: None,
    }
}

#[test]
fn a_tree_is_the_same_in_memory_and_over_a_store_and_loaded_again() {
    for (seed, memory, whole) in [
        (1, None, true),
        (2, None, true),
        (3, Some(0), true),
        (4, Some(20_000), true),
        (5, None, false),
        (6, Some(20_000), false),
    ] {
        let plan = plan(seed, effort().of(1_000, 10_000));
        let store = Arc::new(ModelStore::new());
        let options = match whole {
            true => options(plan.atime),
            false => partial(options(plan.atime)),
        };
        let fs = within(store.clone(), options, memory).unwrap();
        let sides = Sides {
            kernel: Box::new(LibraryTarget::memory(&plan.cast, plan.atime)),
            library: Box::new(LibraryTarget::over(fs.clone(), &plan.cast)),
        };
        if let Err(failure) = generated(sides, &plan) {
            panic!("seed {seed}: {failure}");
        }
        assert_eq!(store.contradictions(), [""; 0], "seed {seed}");
        let before = LibraryTarget::over(fs.clone(), &plan.cast)
            .snapshot()
            .unwrap();
        drop(fs);
        let loaded = within(store, options, memory).unwrap();
        let after = LibraryTarget::over(loaded, &plan.cast).snapshot().unwrap();
        assert!(before.keys().eq(after.keys()), "seed {seed}");
        for (path, view) in before {
            let mut loaded = after[&path].clone();
            // Reading links for the first snapshot moved their access times; space beyond the
            // end of a file is not loaded.
            loaded.times.atime = view.times.atime;
            loaded.blocks = view.blocks;
            assert_eq!(loaded, view, "seed {seed}: {path:?}");
        }
    }
}

#[test]
fn fsx_finds_nothing_over_a_store_either() {
    // With content that stays in memory, goes at once, and goes in part; in a file that is brought
    // as a whole, and in one that is not.
    for (memory, most) in [
        (None, 256 << 10),
        (Some(0), 256 << 10),
        (Some(300 << 10), 256 << 10),
        (Some(0), 1 << 20),
        (Some(300 << 10), 1 << 20),
    ] {
        let store = Arc::new(ModelStore::new());
        let fs = within(store, Options::default(), memory).unwrap();
        let plan = fsx::Plan {
            seed: 9,
            operations: effort().of(1_000, 10_000),
            most,
            between_checks: 500,
        };
        fsx::exercise(&fs, "fsx", &plan).unwrap_or_else(|report| panic!("{memory:?}: {report}"));
    }
}

/// Lets others go on when bytes have been read.
struct Yields;

impl Hook for Yields {
    fn before(&self, _call: Call) -> Result<()> {
        Ok(())
    }

    fn has_read(&self, _ino: Ino, _offset: u64) {
        std::thread::yield_now();
    }
}

#[test]
fn fsx_finds_nothing_beside_readers_either() {
    for (seed, most) in [(1, 256 << 10), (2, 1 << 20), (3, 1 << 20)] {
        let store = Wrapped::new(Arc::new(ModelStore::new()), Yields);
        let fs = within(store, Options::default(), Some(300 << 10)).unwrap();
        let plan = fsx::Plan {
            seed,
            operations: effort().of(1_000, 3_000),
            most,
            between_checks: 100,
        };
        let done = fsx::exercise_beside_readers(&fs, "fsx", &plan);
        done.unwrap_or_else(|report| panic!("{seed}: {report}"));
    }
}

#[test]
fn no_space_in_the_store_is_no_space_in_the_file_system() {
    let store = FaultyStore::new(Arc::new(ModelStore::new()), Faults::default());
    let fs = FileSystem::new(store.clone(), Options::default()).unwrap();
    let (who, root) = (Caller::root(), fs.root());
    let flags = OpenFlags::READ_WRITE | OpenFlags::CREATE;
    let file = fs.create(&who, &root, b"f", 0o644, flags).unwrap();
    // A write that is refused at once asks a second time, with what is reserved for changes in
    // place.
    store.hook().plan(Fault {
        call: Some(Call::Reserve),
        after: 0,
        times: Some(2),
        error: Errno::ENOSPC,
    });
    assert_eq!(fs.write(&who, &file, 0, b"x"), Err(Errno::ENOSPC));
    assert_eq!(fs.getattr(file.node()).size, 0);
    assert_eq!(fs.write(&who, &file, 0, b"x"), Ok(1));
}

#[test]
fn links_of_one_file_made_at_once_reach_the_store_at_their_own_places() {
    let store = Arc::new(ModelStore::new());
    let fs = FileSystem::new(store.clone(), Options::default()).unwrap();
    let who = Caller::root();
    let flags = OpenFlags::WRITE_ONLY;
    let file = fs.create(&who, &fs.root(), b"file", 0o644, flags).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (fs, who, file) = (&fs, &who, &file);
            scope.spawn(move || {
                let name = format!("dir-{thread}").into_bytes();
                let dir = fs.mkdir(who, &fs.root(), &name, 0o755).unwrap();
                for round in 0..5000 {
                    let name = format!("link-{}", round % (3 + thread)).into_bytes();
                    fs.link(who, file.node(), &dir, &name).unwrap();
                    fs.unlink(who, &dir, &name).unwrap();
                }
            });
        }
    });
    assert_eq!(store.refusal(), None);
    assert_eq!(store.contradictions(), [""; 0]);
}
