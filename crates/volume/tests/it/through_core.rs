//! The core over a volume: the suites that every store passes, and what only a volume has to.

use holdfast_core::{Bulkstat, FileSystem, Options, Visit};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_testkit::conformance::{LibrarySubject, all, failures};
use holdfast_testkit::diff::cast::cast;
use holdfast_testkit::diff::host::AtimeRule;
use holdfast_testkit::diff::library::{LibraryTarget, options};
use holdfast_testkit::diff::run::{Plan, Sides, generated};
use holdfast_testkit::diff::target::Target;
use holdfast_testkit::fsx;
use holdfast_testkit::memory::within;
use holdfast_types::{Caller, Fallocate, OpenFlags, SetAttr};
use holdfast_volume::{FormatOptions, OpenOptions, VolumeStore, format};
use std::sync::Arc;

const MIB: u64 = 1 << 20;

fn device(size: u64) -> Arc<dyn BlockDevice> {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(size));
    format(&device, &FormatOptions::default()).unwrap();
    device
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
    // With content that stays in memory, that goes at once, and that goes in part.
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

#[test]
fn a_file_that_was_not_read_yet_shows_its_space() {
    let device = device(64 * MIB);
    let who = Caller::root();
    {
        let store = open(&device);
        let fs = FileSystem::new(store.clone(), Options::default()).unwrap();
        let flags = OpenFlags::WRITE_ONLY;
        let file = fs.create(&who, &fs.root(), b"f", 0o644, flags).unwrap();
        assert_eq!(fs.write(&who, &file, 0, &[1; 10_000]), Ok(10_000));
        drop(file);
        fs.close().unwrap();
        drop(fs);
        store.close().unwrap();
    }
    let fs = FileSystem::new(open(&device), Options::default()).unwrap();
    let node = fs.lookup(&who, &fs.root(), b"f").unwrap();
    assert_eq!(fs.getattr(&node).blocks, 24, "three pages of eight sectors");
}

#[test]
fn space_that_the_size_does_not_tell_is_shown_before_anything_is_read() {
    let device = device(64 * MIB);
    let who = Caller::root();
    let names: [&[u8]; 4] = [b"sparse", b"sparse and large", b"allocated", b"empty"];
    let shown = |fs: &FileSystem| -> Vec<u64> {
        let blocks = |name: &&[u8]| {
            let at = fs.stat_at(&who, &fs.root(), name, true).unwrap().blocks;
            let node = fs.lookup(&who, &fs.root(), name).unwrap();
            assert_eq!(fs.getattr(&node).blocks, at);
            at
        };
        names.iter().map(blocks).collect()
    };
    let store = open(&device);
    let fs = FileSystem::new(store.clone(), Options::default()).unwrap();
    let flags = OpenFlags::WRITE_ONLY | OpenFlags::CREATE;
    let make = |name| fs.create(&who, &fs.root(), name, 0o644, flags).unwrap();
    let sparse = make(names[0]);
    fs.write(&who, &sparse, 100_000, &[1; 5000]).unwrap();
    let large = make(names[1]);
    for at in [0, 5 << 20, 1 << 30] {
        fs.write(&who, &large, at, &[1; 4096]).unwrap();
    }
    let allocated = make(names[2]);
    fs.write(&who, &allocated, 0, &[1; 10_000]).unwrap();
    fs.fallocate(&who, &allocated, Fallocate::empty(), 8000, 100_000)
        .unwrap();
    drop(make(names[3]));
    drop((sparse, large, allocated));
    let before = shown(&fs);
    assert_eq!(before, [2 * 8, 3 * 8, 27 * 8, 0]);
    // First what waits in the store, then what is committed.
    fs.drop_caches().unwrap();
    assert_eq!(shown(&fs), before);
    fs.close().unwrap();
    drop(fs);
    store.close().unwrap();
    let fs = FileSystem::new(open(&device), Options::default()).unwrap();
    assert_eq!(shown(&fs), before);
    fs.drop_caches().unwrap();
    let root = fs.open(&who, &fs.root(), OpenFlags::DIRECTORY).unwrap();
    let mut listed = Vec::new();
    fs.read_dir_plus(&root, 2, &mut |entry, attr| {
        listed.push((entry.name.to_vec(), attr.unwrap().blocks));
        true
    })
    .unwrap();
    let expected = names.iter().zip(&before);
    assert!(
        listed
            .iter()
            .map(|(name, blocks)| (&name[..], blocks))
            .eq(expected.map(|(name, blocks)| (*name, blocks))),
        "{listed:?}"
    );
}

/// All numbers and permissions that a scan shows, by inodes and by attributes alone; they agree.
fn scanned(fs: &FileSystem) -> Vec<(u64, u16)> {
    let mut shown = Vec::new();
    fs.bulkstat(&mut Bulkstat::new(), |_, attr| {
        shown.push(*attr);
        Ok(Visit::Continue)
    })
    .unwrap();
    let mut streamed = Vec::new();
    fs.bulkstat_attributes(&mut Bulkstat::new(), |attr| {
        streamed.push(*attr);
        Ok(Visit::Continue)
    })
    .unwrap();
    assert_eq!(shown, streamed);
    streamed
        .iter()
        .map(|attr| (attr.ino.0, attr.perm))
        .collect()
}

#[test]
fn scans_and_listings_show_every_file_once_wherever_its_newest_record_is() {
    const FILES: usize = 3000;
    let device = device(64 * MIB);
    let store = open(&device);
    let fs = FileSystem::new(store.clone(), Options::default()).unwrap();
    let (root, who) = (fs.root(), Caller::root());
    for number in 0..FILES {
        let name = format!("/{number}");
        let flags = OpenFlags::CREATE | OpenFlags::WRITE_ONLY;
        let made = fs.open_at(&who, &root, name.as_bytes(), flags, 0o644);
        drop(made.unwrap());
    }
    assert_eq!(scanned(&fs).len(), FILES + 1, "all is in the overlay");
    fs.close().unwrap();
    drop((root, fs));
    store.close().unwrap();
    drop(store);

    let store = open(&device);
    let fs = FileSystem::new(store.clone(), Options::default()).unwrap();
    assert_eq!(scanned(&fs).len(), FILES + 1, "all is in the trees");
    let root = fs.root();
    for number in (0..FILES).step_by(3) {
        fs.unlink_at(&who, &root, format!("/{number}").as_bytes())
            .unwrap();
    }
    let set = SetAttr {
        perm: Some(0o600),
        ..SetAttr::default()
    };
    let changed = fs.resolve(&who, &root, b"/1", true).unwrap();
    fs.setattr(&who, &changed, &set, None).unwrap();
    let left = scanned(&fs);
    assert_eq!(left.len(), FILES - FILES.div_ceil(3) + 1);
    let listing = fs
        .open_at(&who, &root, b"/", OpenFlags::DIRECTORY, 0)
        .unwrap();
    let mut listed = vec![];
    fs.read_dir_plus(&listing, 0, &mut |entry, attr| {
        let attr = attr.unwrap();
        assert_eq!(entry.ino, attr.ino);
        if entry.name != b".." {
            listed.push((attr.ino.0, attr.perm));
        }
        true
    })
    .unwrap();
    listed.sort_unstable();
    assert_eq!(left, listed);
    assert!(left.contains(&(changed.ino().0, 0o600)));
    drop(listing);
    fs.close().unwrap();
    store.close().unwrap();
}
