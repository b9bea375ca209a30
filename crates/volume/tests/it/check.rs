//! The check: sound volumes are sound, and damage is found.

use holdfast_core::FileSystem;
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_testkit::diff::cast::cast;
use holdfast_testkit::diff::host::AtimeRule;
use holdfast_testkit::diff::library::{LibraryTarget, options};
use holdfast_testkit::diff::run::{Plan, Sides, generated};
use holdfast_volume::check::{Finding, Report};
use holdfast_volume::superblock::{SLOTS, Superblock};
use holdfast_volume::{CheckOptions, FormatOptions, OpenOptions, VolumeStore, check, format};
use std::collections::BTreeSet;
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

#[test]
fn damage_of_metadata_in_use_is_found_and_names_its_block() {
    let sound = exercised(6, 3000, true);
    let image = sound.image();
    let mut found = 0;
    for block in 0..image.size() / 4096 {
        let mut bytes = vec![0; 4096];
        image.read(block * 4096, &mut bytes);
        let is_node = bytes.starts_with(b"HfTn");
        if !is_node && !bytes.starts_with(b"HOLDFAST") && !bytes.starts_with(b"HFgb") {
            continue;
        }
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::from_image("bad", image.clone()));
        bytes[200] ^= 4;
        device.write(block * 4096, &bytes).unwrap();
        let report = look(&device);
        // Nodes and bitmaps of earlier checkpoints lie about, too: nobody means them any more.
        if !report.is_clean() {
            found += 1;
            let mut blocks = report.findings.iter().map(|finding| finding.block());
            assert!(!is_node || blocks.any(|named| named == Some(block)));
        }
    }
    // Two superblocks, a bitmap, the nodes of four trees.
    assert!(found >= 7, "damage was found in {found} blocks");
}

/// What is found if a closed volume's superblock said something else.
fn codes(sound: &MemoryDevice, change: impl Fn(&mut Superblock)) -> BTreeSet<&'static str> {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::from_image("bad", sound.image()));
    for slot in SLOTS {
        let mut bytes = vec![0; 4096];
        device.read(slot * 4096, &mut bytes).unwrap();
        let mut superblock = Superblock::decode(&bytes, slot).unwrap();
        change(&mut superblock);
        device.write(slot * 4096, &superblock.encode(slot)).unwrap();
    }
    let report = look(&device);
    report.findings.iter().map(Finding::code).collect()
}

#[test]
fn parts_that_do_not_fit_each_other_are_found() {
    let sound = exercised(7, 3000, true);
    let none = BTreeSet::new();
    assert_eq!(codes(&sound, |_| {}), none);
    let found = codes(&sound, |superblock| superblock.inodes += 1);
    assert_eq!(found, BTreeSet::from(["inode-count"]));
    let found = codes(&sound, |superblock| superblock.last_ino = 1);
    assert_eq!(found, BTreeSet::from(["inode-number"]));
    let found = codes(&sound, |superblock| superblock.seal.free += 1);
    assert_eq!(found, BTreeSet::from(["seal"]));
    let found = codes(&sound, |superblock| superblock.hash_seed ^= 1);
    assert_eq!(
        found,
        BTreeSet::from(["no-hash", "no-entry", "xattr-place"])
    );
    // Without one of the trees: inodes, entries, hashes, data.
    let without = |tree: usize| codes(&sound, |superblock| superblock.roots[tree][0] = None);
    assert_eq!(without(2), BTreeSet::from(["no-hash", "leaked"]));
    assert_eq!(without(3), BTreeSet::from(["no-target", "leaked", "space"]));
    let found = without(1);
    for code in ["nameless", "unreachable", "links", "no-entry", "leaked"] {
        assert!(found.contains(code), "{code}: {found:?}");
    }
    let found = without(0);
    for code in [
        "entry-nowhere",
        "entry-directory",
        "data-owner",
        "inode-count",
    ] {
        assert!(found.contains(code), "{code}: {found:?}");
    }
    // One tree in the place of another one, and twice.
    let found = codes(&sound, |superblock| {
        superblock.orphans = superblock.roots[0][0]
    });
    assert_eq!(found, BTreeSet::from(["used-twice", "no-orphan"]));
    let found = codes(&sound, |superblock| {
        superblock.roots[3] = superblock.roots[1]
    });
    assert!(found.contains("node"), "{found:?}");
}
