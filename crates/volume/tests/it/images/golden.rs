//! Images that an earlier Holdfast wrote. Every later one must open them.
//!
//! `HOLDFAST_MAKE_GOLDEN=1 cargo test -p holdfast-volume --test it golden` writes the images of the
//! present format, those that are not there yet. One that is there is never written again: users have
//! volumes like it. The names carry the version of the format.

use super::sample::{
    self, Hand, closed, crashed, crashed_beyond_marks, flagged_closed, flagged_crashed,
};
use super::snapshot::{Snapshot, differences, take};
use super::sparse::{pack, unpack};
use holdfast_core::store::Behind;
use holdfast_core::{FileSystem, MemoryLimits, MemoryStore, Options, Store};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_testkit::device::{CrashStates, RecordingDevice};
use holdfast_types::{FileType, Ino};
use holdfast_volume::dump::Dump;
use holdfast_volume::superblock::{Superblock, VERSION};
use holdfast_volume::{CheckOptions, check, upgrade};
use std::path::PathBuf;
use std::sync::Arc;

const CLOSED: &[u8] = include_bytes!("golden/v1-closed.hfz");
const CRASHED: &[u8] = include_bytes!("golden/v1-crashed.hfz");
/// The same with the bitmaps of several groups together.
const BUNDLED_CLOSED: &[u8] = include_bytes!("golden/v1-bundled-closed.hfz");
const BUNDLED_CRASHED: &[u8] = include_bytes!("golden/v1-bundled-crashed.hfz");
/// With marks of inode numbers, in the superblock and in the journal.
const MARKED_CRASHED: &[u8] = include_bytes!("golden/v1-marked-crashed.hfz");

/// With inodes that say how much space files take.
const SPACED_CLOSED: &[u8] = include_bytes!("golden/v1-spaced-closed.hfz");
const SPACED_CRASHED: &[u8] = include_bytes!("golden/v1-spaced-crashed.hfz");

/// With file flags, projects and times after 2262.
const FLAGGED_CLOSED: &[u8] = include_bytes!("golden/v1-flagged-closed.hfz");
const FLAGGED_CRASHED: &[u8] = include_bytes!("golden/v1-flagged-crashed.hfz");

/// What the steps make of a file system that no volume keeps.
fn expected(changed: bool) -> Snapshot {
    let store = Arc::new(MemoryStore::new(MemoryLimits::default()));
    let fs = FileSystem::new(store, Options::default()).unwrap();
    Hand::new(&fs).fill();
    if changed {
        Hand::new(&fs).change();
    }
    take(&fs).unwrap()
}

/// Without the times that were those of the making.
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
    // As it is, then as this Holdfast leaves it, with changes of its own.
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
    opens_and_shows(BUNDLED_CLOSED, false);
    opens_and_shows(SPACED_CLOSED, false);
    opens_and_shows(FLAGGED_CLOSED, false);
}

#[test]
fn the_golden_image_of_a_crashed_volume_opens_and_shows_what_was_committed() {
    opens_and_shows(CRASHED, true);
    opens_and_shows(BUNDLED_CRASHED, true);
    opens_and_shows(MARKED_CRASHED, true);
    opens_and_shows(SPACED_CRASHED, true);
    opens_and_shows(FLAGGED_CRASHED, true);
}

#[test]
fn the_golden_images_with_flags_show_them_and_late_times() {
    for packed in [FLAGGED_CLOSED, FLAGGED_CRASHED] {
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
fn the_golden_image_with_marks_goes_on_above_them_and_older_ones_far_above() {
    let last = |packed: &[u8]| {
        let device: Arc<dyn BlockDevice> = Arc::new(unpack(packed));
        let (store, fs) = sample::open(&device).unwrap();
        let last = store.last_ino().unwrap().0;
        drop((fs, store));
        last
    };
    let device: Arc<dyn BlockDevice> = Arc::new(unpack(MARKED_CRASHED));
    let mut batches = String::new();
    let dump = Dump::open(device).unwrap();
    dump.journal(|batch| batches += &batch.to_string()).unwrap();
    let marks = batches.split("change: numbers").skip(1);
    let marks = marks.map(|mark| {
        let digits = mark.split("up to: ").nth(1).unwrap();
        let digits: String = digits.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u64>().unwrap()
    });
    assert_eq!(marks.max(), Some(last(MARKED_CRASHED)));
    assert!(last(MARKED_CRASHED) < 100_000);
    assert!(last(CRASHED) > 1 << 32);
}

fn spaces(device: &Arc<dyn BlockDevice>) -> bool {
    let superblock = holdfast_volume::read_superblock(device).unwrap();
    superblock.features.has_spaces()
}

/// The blocks that all files say, in ascending order, before anything of them is loaded: the numbers of files are dealt otherwise
/// than they were.
fn said(device: &Arc<dyn BlockDevice>) -> Vec<Option<u64>> {
    let (store, fs) = sample::open(device).unwrap();
    let mut run = Vec::new();
    store
        .walk()
        .unwrap()
        .walk(Ino(0), 10_000, &mut run)
        .unwrap();
    fs.close().unwrap();
    store.close().unwrap();
    let files = run.iter().filter(|record| record.kind == FileType::Regular);
    let mut said: Vec<_> = files
        .map(|record| record.space.pages(record.size))
        .collect();
    said.sort_unstable();
    said
}

#[test]
fn golden_images_of_before_are_lifted_and_show_what_they_did() {
    let expected = [SPACED_CLOSED, SPACED_CRASHED].map(|packed| {
        let device: Arc<dyn BlockDevice> = Arc::new(unpack(packed));
        said(&device)
    });
    for (packed, changed) in [
        (CLOSED, false),
        (CRASHED, true),
        (BUNDLED_CLOSED, false),
        (BUNDLED_CRASHED, true),
    ] {
        let device: Arc<dyn BlockDevice> = Arc::new(unpack(packed));
        assert!(!spaces(&device));
        let (_, lifted) = upgrade(&device, &CheckOptions::default(), &|_, _, _| {}).unwrap();
        assert!(lifted && spaces(&device));
        assert_sound(&device, false);
        assert_eq!(said(&device), expected[usize::from(changed)]);
        let (_, lifted) = upgrade(&device, &CheckOptions::default(), &|_, _, _| {}).unwrap();
        assert!(!lifted);
        let (store, fs) = sample::open(&device).unwrap();
        let found = timeless(take(&fs).unwrap());
        let differences = differences(&timeless(self::expected(changed)), &found);
        assert!(differences.is_empty(), "{differences:#?}");
        drop((fs, store));
    }
}

#[test]
fn a_crash_while_a_golden_image_is_lifted_leaves_it_as_it_was_or_as_it_is_to_be() {
    let image = unpack(CRASHED).image();
    let recording = Arc::new(RecordingDevice::from_image(image));
    let device: Arc<dyn BlockDevice> = recording.clone();
    upgrade(&device, &CheckOptions::default(), &|_, _, _| {}).unwrap();
    let states = CrashStates::new(recording.history(), 5);
    let most = states.systematic() + 60;
    let (mut old, mut new) = (0, 0);
    let expected = timeless(expected(true));
    for state in states.iter().take(most as usize) {
        let device: Arc<dyn BlockDevice> =
            Arc::new(MemoryDevice::from_image("crashed", state.image.clone()));
        let report = check(&device, &CheckOptions::default(), &|_, _, _| {});
        assert!(report.is_clean(), "{state:?}: {:#?}", report.findings);
        match spaces(&device) {
            true => new += 1,
            false => old += 1,
        }
        let (store, fs) = sample::open(&device).unwrap();
        let found = timeless(take(&fs).unwrap());
        let differences = differences(&expected, &found);
        assert!(differences.is_empty(), "{differences:#?}");
        drop((fs, store));
        let (_, _) = upgrade(&device, &CheckOptions::default(), &|_, _, _| {}).unwrap();
        assert!(spaces(&device));
        assert_sound(&device, false);
    }
    assert!(old > 0 && new > 0, "{old} {new}");
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
    assert_eq!(bundle(CLOSED), 1);
    assert!(bundle(BUNDLED_CLOSED) > 1);
    for packed in [CLOSED, CRASHED, BUNDLED_CLOSED, BUNDLED_CRASHED] {
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
        ("bundled-closed", closed(), false),
        ("bundled-crashed", crashed(), true),
        ("marked-crashed", crashed_beyond_marks(), true),
        ("spaced-closed", closed(), false),
        ("spaced-crashed", crashed(), true),
        ("flagged-closed", flagged_closed(), false),
        ("flagged-crashed", flagged_crashed(), true),
    ];
    for (name, made, changed) in made {
        let packed = pack(&made);
        assert!(packed.len() < 100 << 10, "{name}: {} bytes", packed.len());
        // What would be written now must hold as well.
        opens_and_shows(&packed, changed);
        let path = folder.join(format!("v{VERSION}-{name}.hfz"));
        let kept = std::fs::metadata(&path).map_or(0, |meta| meta.len());
        if std::env::var_os("HOLDFAST_MAKE_GOLDEN").is_some() && kept == 0 {
            std::fs::write(path, packed).unwrap();
        }
    }
}
