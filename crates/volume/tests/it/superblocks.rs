//! The two superblocks: what crashes leave of them, and what that means.

use crate::stage::formatted;
use holdfast_core::{FileSystem, Options};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_testkit::device::{CrashStates, RecordingDevice};
use holdfast_types::Caller;
use holdfast_volume::check::Finding;
use holdfast_volume::superblock::{SLOTS, Superblock};
use holdfast_volume::{CheckOptions, FormatOptions, OpenOptions, VolumeStore, check, format};
use std::sync::Arc;

const MIB: u64 = 1 << 20;
/// Random states of an opening that are tried besides the systematic ones.
const SAMPLED: usize = 300;

fn open(device: &Arc<dyn BlockDevice>) -> Arc<VolumeStore> {
    let options = OpenOptions {
        commit_every: None,
        ..OpenOptions::default()
    };
    Arc::new(VolumeStore::open(Arc::clone(device), &options).unwrap())
}

/// A volume with a directory; closed, or dropped after a checkpoint.
fn volume(close: bool) -> Arc<dyn BlockDevice> {
    let device = formatted(8 * MIB, &FormatOptions::default());
    let store = open(&device);
    let fs = FileSystem::new(store.clone(), Options::default()).unwrap();
    fs.mkdir_at(&Caller::root(), &fs.root(), b"dir", 0o755)
        .unwrap();
    fs.sync().unwrap();
    store.checkpoint().unwrap();
    if close {
        fs.close().unwrap();
        store.close().unwrap();
    }
    device
}

fn slot(device: &Arc<dyn BlockDevice>, slot: u64) -> Option<Superblock> {
    let mut bytes = vec![0; 4096];
    device.read(slot * 4096, &mut bytes).unwrap();
    Superblock::decode(&bytes, slot).ok()
}

fn findings(device: &Arc<dyn BlockDevice>) -> Vec<&'static str> {
    let report = check(device, &CheckOptions::default(), &|_, _, _| {});
    report.findings.iter().map(Finding::code).collect()
}

#[test]
fn a_slot_that_a_crash_left_behind_is_written_before_the_next_checkpoint() {
    for behind in SLOTS {
        for is_torn in [true, false] {
            let device = volume(false);
            let mut older = slot(&device, behind).unwrap();
            older.generation -= 1;
            let mut bytes = older.encode(behind);
            if is_torn {
                bytes[600] ^= 1;
            }
            device.write(behind * 4096, &bytes).unwrap();
            let is_possible = behind == SLOTS[1] || is_torn;
            let expected: &[&str] = if is_possible {
                &[]
            } else {
                &["superblocks-differ"]
            };
            assert_eq!(findings(&device), expected);
            // As after an immediate crash.
            drop(open(&device));
            let slots = SLOTS.map(|number| slot(&device, number).unwrap());
            assert_eq!(slots[0], slots[1]);
            assert!(findings(&device).is_empty());
        }
    }
}

/// A crash during the checkpoint of the open must not leave the older superblock as the only valid
/// one: its blocks are reused.
#[test]
fn a_slot_that_a_crash_left_behind_is_written_before_the_journal_goes_into_the_trees() {
    for behind in SLOTS {
        let memory = Arc::new(MemoryDevice::new(8 * MIB));
        let device: Arc<dyn BlockDevice> = memory.clone();
        format(&device, &FormatOptions::default()).unwrap();
        let store = open(&device);
        let fs = FileSystem::new(store.clone(), Options::default()).unwrap();
        let mkdir = |name: &[u8]| {
            let made = fs.mkdir_at(&Caller::root(), &fs.root(), name, 0o755);
            made.unwrap();
            fs.sync().unwrap();
        };
        mkdir(b"first");
        store.checkpoint().unwrap();
        let mut older = vec![0; 4096];
        device.read(behind * 4096, &mut older).unwrap();
        mkdir(b"second");
        store.checkpoint().unwrap();
        mkdir(b"third");
        mkdir(b"fourth");
        drop((fs, store));
        // The first slot is written first: it was torn, or the other would be older.
        older[600] ^= u8::from(behind == SLOTS[0]);
        device.write(behind * 4096, &older).unwrap();

        let recorded = Arc::new(RecordingDevice::from_image(memory.image()));
        let at_once = OpenOptions {
            commit_every: None,
            changes: Some(0),
            ..OpenOptions::default()
        };
        let store = VolumeStore::open(recorded.clone(), &at_once).unwrap();
        assert!(store.activity().checkpoints.count > 1);
        drop(store);
        let states = CrashStates::new(recorded.history(), 1);
        for state in states.iter().take(states.systematic() as usize + SAMPLED) {
            let shown = format!("slot {behind} behind, {state}");
            let device: Arc<dyn BlockDevice> =
                Arc::new(MemoryDevice::from_image("crash", state.image));
            assert_eq!(findings(&device), [""; 0], "{shown}");
            let fs = FileSystem::new(open(&device), Options::default()).unwrap();
            for name in [&b"first"[..], b"second", b"third", b"fourth"] {
                let found = fs.lookup(&Caller::root(), &fs.root(), name);
                assert!(found.is_ok(), "{shown}: {name:?}");
            }
        }
    }
}

#[test]
fn beside_a_superblock_that_was_closed_no_crash_leaves_a_torn_one() {
    for torn in SLOTS {
        let device = volume(true);
        assert!(findings(&device).is_empty());
        device.write(torn * 4096 + 512, &[1; 512]).unwrap();
        assert_eq!(findings(&device), ["superblock"]);
        drop(open(&device));
        assert!(findings(&device).is_empty());
    }
}

#[test]
fn opening_and_closing_change_one_sector_of_a_superblock() {
    let device = volume(true);
    let read = || {
        let mut bytes = vec![0; 2 * 4096];
        device.read(0, &mut bytes).unwrap();
        bytes
    };
    let closed = read();
    drop(open(&device));
    let opened = read();
    for slot in SLOTS.map(|slot| slot as usize * 4096) {
        assert_ne!(closed[slot..slot + 512], opened[slot..slot + 512]);
        assert_eq!(
            closed[slot + 512..slot + 4096],
            opened[slot + 512..slot + 4096]
        );
    }
}
