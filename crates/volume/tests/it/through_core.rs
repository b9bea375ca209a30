//! The core over a volume: the suites of every store, and what is required of a volume only.

use crate::stage::formatted;
use holdfast_core::{FileSystem, Options};
use holdfast_device::BlockDevice;
use holdfast_testkit::conformance::{LibrarySubject, all, failures};
use holdfast_testkit::diff::cast::cast;
use holdfast_testkit::diff::host::AtimeRule;
use holdfast_testkit::diff::library::{LibraryTarget, options};
use holdfast_testkit::diff::run::{Plan, Sides, generated};
use holdfast_testkit::diff::target::Target;
use holdfast_testkit::fsx;
use holdfast_testkit::memory::within;
use holdfast_volume::{FormatOptions, OpenOptions, VolumeStore};
use std::sync::Arc;

const MIB: u64 = 1 << 20;

fn device(size: u64) -> Arc<dyn BlockDevice> {
    formatted(size, &FormatOptions::default())
}

fn open(device: &Arc<dyn BlockDevice>) -> Arc<VolumeStore> {
    Arc::new(VolumeStore::open(Arc::clone(device), &OpenOptions::default()).unwrap())
}

#[test]
fn the_library_over_a_volume_conforms() {
    let device = device(64 * MIB);
    let store = open(&device);
    let fs = FileSystem::new(store.clone(), options(AtimeRule::Relative)).unwrap();
    let subject = Arc::new(LibrarySubject::new(&fs, &cast()));
    let failures = failures(&(subject as _), &all());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    fs.close().unwrap();
    store.close().unwrap();
}

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
fn a_tree_is_the_same_in_memory_and_on_a_volume_and_opened_again() {
    for (seed, memory) in [(1, None), (2, Some(0)), (3, Some(20_000))] {
        let plan = plan(seed, 10_000);
        let device = device(256 * MIB);
        let store = open(&device);
        let fs = within(store.clone(), options(plan.atime), memory).unwrap();
        let sides = Sides {
            kernel: Box::new(LibraryTarget::memory(&plan.cast, plan.atime)),
            library: Box::new(LibraryTarget::over(fs.clone(), &plan.cast)),
        };
        if let Err(failure) = generated(sides, &plan) {
            panic!("seed {seed}: {failure}");
        }
        let before = LibraryTarget::over(fs.clone(), &plan.cast)
            .snapshot()
            .unwrap();
        fs.sync().unwrap();
        drop(fs);
        drop(store);
        // First from the journal, as after a crash; then from the trees.
        for is_clean in [false, true] {
            let store = open(&device);
            let loaded = within(store.clone(), options(plan.atime), memory).unwrap();
            let after = LibraryTarget::over(loaded.clone(), &plan.cast)
                .snapshot()
                .unwrap();
            assert!(before.keys().eq(after.keys()), "seed {seed}");
            for (path, view) in &before {
                let mut loaded = after[path].clone();
                // Reading links for the first snapshot moved their access times; space beyond
                // the end of a file is not loaded.
                loaded.times.atime = view.times.atime;
                loaded.blocks = view.blocks;
                assert_eq!(&loaded, view, "seed {seed}, clean {is_clean}: {path:?}");
            }
            drop(loaded);
            store.close().unwrap();
        }
    }
}

#[test]
fn fsx_finds_nothing_over_a_volume() {
    // With content that stays in memory, is dropped at once, or in part.
    for (memory, most) in [
        (None, 256 << 10),
        (Some(0), 256 << 10),
        (Some(300 << 10), 1 << 20),
    ] {
        let device = device(64 * MIB);
        let store = open(&device);
        let fs = within(store.clone(), Options::default(), memory).unwrap();
        let plan = fsx::Plan {
            seed: 9,
            operations: 10_000,
            most,
            between_checks: 500,
        };
        fsx::exercise(&fs, "fsx", &plan).unwrap_or_else(|report| panic!("{memory:?}: {report}"));
        fs.close().unwrap();
        store.close().unwrap();
    }
}

#[test]
fn fsx_finds_nothing_over_a_volume_beside_readers() {
    for (seed, most) in [(1, 256 << 10), (2, 1 << 20)] {
        let device = device(64 * MIB);
        let store = open(&device);
        let fs = within(store.clone(), Options::default(), Some(300 << 10)).unwrap();
        let plan = fsx::Plan {
            seed,
            operations: 3000,
            most,
            between_checks: 100,
        };
        let done = fsx::exercise_beside_readers(&fs, "fsx", &plan);
        done.unwrap_or_else(|report| panic!("{seed}: {report}"));
        fs.close().unwrap();
        store.close().unwrap();
    }
}
