//! Images of earlier versions of Holdfast, which every later one must open.
//!
//! `HOLDFAST_MAKE_GOLDEN=1 cargo test -p holdfast-fs-volume --test it golden` writes missing images of
//! the present format. An existing image is never overwritten: users have such volumes. The names
//! carry the version of the format.

use super::sample::{self, Hand, closed, crashed, crashed_beyond_marks, unbundled};
use super::snapshot::{Snapshot, differences, take};
use super::sparse::{pack, unpack};
use holdfast_core::store::Behind;
use holdfast_core::{FileSystem, MemoryLimits, MemoryStore, Options};
use holdfast_device::BlockDevice;
use holdfast_testkit::dump::Dump;
use holdfast_volume::superblock::{Superblock, VERSION};
use holdfast_volume::{CheckOptions, check};
use std::path::PathBuf;
use std::sync::Arc;

const CLOSED: &[u8] = include_bytes!("golden/v1-closed.hfz");
const CRASHED: &[u8] = include_bytes!("golden/v1-crashed.hfz");
/// The same without flex groups.
const UNBUNDLED: &[u8] = include_bytes!("golden/v1-unbundled.hfz");
/// With inode number marks that only the journal has.
const MARKED: &[u8] = include_bytes!("golden/v1-marked.hfz");

/// What the steps make of a file system in memory.
fn expected(changed: bool) -> Snapshot {
    let store = Arc::new(MemoryStore::new(MemoryLimits::default()));
    let fs = FileSystem::new(store, Options::default()).unwrap();
    Hand::new(&fs).fill();
    if changed {
        Hand::new(&fs).change();
    }
    take(&fs).unwrap()
}

/// Without the times of creation.
fn timeless(mut snapshot: Snapshot) -> Snapshot {
    for seen in snapshot.values_mut() {
        if seen.mtime > 1 << 50 {
            seen.mtime = 0;
        }
    }
    snapshot
}

fn assert_sound(device: &Arc<dyn BlockDevice>, replayed: bool) {
    let report = check(device, &CheckOptions::default(), &|_, _, _| {});
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert_eq!(report.replayed, replayed);
}

fn opens_and_shows(packed: &[u8], changed: bool) {
    let device: Arc<dyn BlockDevice> = Arc::new(unpack(packed));
    assert_sound(&device, changed);
    let expected = timeless(expected(changed));
    // As it is, then as this version leaves it, with further changes.
    for _ in 0..2 {
        let (store, fs) = sample::open(&device).unwrap();
        let found = timeless(take(&fs).unwrap());
        let differences = differences(&expected, &found);
        assert!(differences.is_empty(), "{differences:#?}");
        let hand = Hand::new(&fs);
        hand.write("scratch", 0, 1, 10_000);
        hand.unlink("scratch");
        fs.close().unwrap();
        store.close().unwrap();
        assert_sound(&device, false);
    }
}

#[test]
fn the_golden_image_of_a_closed_volume_opens_and_shows_what_was_written() {
    opens_and_shows(CLOSED, false);
    opens_and_shows(UNBUNDLED, false);
}

#[test]
fn the_golden_image_of_a_crashed_volume_opens_and_shows_what_was_committed() {
    opens_and_shows(CRASHED, true);
    opens_and_shows(MARKED, true);
}

#[test]
fn the_golden_images_show_flags_and_late_times() {
    for packed in [CLOSED, CRASHED] {
        let device: Arc<dyn BlockDevice> = Arc::new(unpack(packed));
        for _ in 0..2 {
            let (store, fs) = sample::open(&device).unwrap();
            let hand = Hand::new(&fs);
            for (path, flags, project) in Hand::FLAGGED {
                let node = hand.node(path);
                assert_eq!(
                    (fs.flags(&node), fs.project(&node)),
                    (flags, project),
                    "{path}"
                );
                assert_eq!(fs.getattr(&node).atime, Hand::LATE, "{path}");
            }
            fs.close().unwrap();
            store.close().unwrap();
            assert_sound(&device, false);
        }
    }
}

#[test]
fn the_golden_image_with_marks_goes_on_above_them() {
    let last = |packed: &[u8]| {
        let device: Arc<dyn BlockDevice> = Arc::new(unpack(packed));
        let (store, fs) = sample::open(&device).unwrap();
        let last = store.last_ino().unwrap().0;
        drop((fs, store));
        last
    };
    let device: Arc<dyn BlockDevice> = Arc::new(unpack(MARKED));
    let mut batches = String::new();
    let dump = Dump::open(device).unwrap();
    dump.journal(|batch| batches += batch).unwrap();
    let marks = batches.split("change: Numbers(Ino(").skip(1);
    let marks = marks.map(|mark| {
        let digits: String = mark.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u64>().unwrap()
    });
    assert_eq!(marks.max(), Some(last(MARKED)));
    assert!(last(MARKED) < 100_000);
}

#[test]
fn golden_images_hold_every_kind_of_node_and_change() {
    let kinds = |packed: &[u8]| {
        let device = unpack(packed);
        let mut found = std::collections::BTreeSet::new();
        for block in 0..device.size() / 4096 {
            let mut bytes = [0; 4096];
            device.read(block * 4096, &mut bytes).unwrap();
            if bytes.starts_with(b"HfTn") {
                found.insert((bytes[4], bytes[5]));
            }
        }
        found
    };
    let bundle = |packed| {
        let mut bytes = [0; 4096];
        unpack(packed).read(0, &mut bytes).unwrap();
        Superblock::decode(&bytes, 0).unwrap().bundle
    };
    assert_eq!(bundle(UNBUNDLED), 1);
    assert!(bundle(CLOSED) > 1);
    for packed in [CLOSED, CRASHED, UNBUNDLED, MARKED] {
        let found = kinds(packed);
        for kind in 1..=4 {
            assert!(found.contains(&(kind, 0)), "no leaf of kind {kind}");
        }
        assert!(found.contains(&(2, 1)), "no interior node");
    }
}

#[test]
fn golden_images_that_are_missing_are_made_when_asked_for() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/images/golden");
    let made = [
        ("closed", closed(), false),
        ("crashed", crashed(), true),
        ("unbundled", unbundled(), false),
        ("marked", crashed_beyond_marks(), true),
    ];
    for (name, made, changed) in made {
        let packed = pack(&made);
        assert!(packed.len() < 100 << 10, "{name}: {} bytes", packed.len());
        // An image written now must pass as well.
        opens_and_shows(&packed, changed);
        let path = folder.join(format!("v{VERSION}-{name}.hfz"));
        let kept = std::fs::metadata(&path).map_or(0, |meta| meta.len());
        if std::env::var_os("HOLDFAST_MAKE_GOLDEN").is_some() && kept == 0 {
            std::fs::write(path, packed).unwrap();
        }
    }
}
