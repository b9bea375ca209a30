//! The check accepts sound volumes and finds damage.

use holdfast_core::FileSystem;
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_testkit::diff::cast::cast;
use holdfast_testkit::diff::host::AtimeRule;
use holdfast_testkit::diff::library::{LibraryTarget, options};
use holdfast_testkit::diff::run::{Plan, Sides, generated};
use holdfast_volume::check::Report;
use holdfast_volume::{CheckOptions, FormatOptions, OpenOptions, VolumeStore, check, format};
use std::sync::Arc;

const MIB: u64 = 1 << 20;

fn look(device: &Arc<dyn BlockDevice>) -> Report {
    let options = CheckOptions {
        jobs: 3,
        ..CheckOptions::default()
    };
    check(device, &options, &|_, _, _| {})
}

/// A volume with a tree of all kinds of files on it; closed cleanly or not.
fn exercised(seed: u64, steps: usize, close: bool) -> MemoryDevice {
    let memory = Arc::new(MemoryDevice::new(128 * MIB));
    let device: Arc<dyn BlockDevice> = memory.clone();
    format(&device, &FormatOptions::default()).unwrap();
    let plan = Plan {
        cast: cast(),
        atime: AtimeRule::Strict,
        opens_local: false,
        seed,
        steps,
        between_snapshots: 100_000,
        collect: false,
        cpu: None,
    };
    let opened = VolumeStore::open(Arc::clone(&device), &OpenOptions::default()).unwrap();
    let store = Arc::new(opened);
    let fs = FileSystem::new(store.clone(), options(plan.atime)).unwrap();
    let sides = Sides {
        kernel: Box::new(LibraryTarget::memory(&plan.cast, plan.atime)),
        library: Box::new(LibraryTarget::over(fs.clone(), &plan.cast)),
    };
    if let Err(failure) = generated(sides, &plan) {
        panic!("seed {seed}: {failure}");
    }
    fs.sync().unwrap();
    if close {
        fs.close().unwrap();
        store.close().unwrap();
    }
    MemoryDevice::from_image("a copy", memory.image())
}

#[test]
fn whatever_was_done_to_a_volume_it_is_sound() {
    for seed in 1..=4 {
        for close in [false, true] {
            let device: Arc<dyn BlockDevice> = Arc::new(exercised(seed, 4000, close));
            let report = look(&device);
            assert!(
                report.is_clean(),
                "seed {seed}, closed {close}: {:#?}",
                report.findings
            );
            assert_eq!(report.replayed, !close);
            assert!(report.inodes > 10 && report.blocks > 10);
        }
    }
}

#[test]
fn a_check_changes_nothing() {
    let device = Arc::new(exercised(5, 500, false));
    let before = device.image();
    let _ = look(&(device.clone() as _));
    assert!(device.image() == before);
}
