use super::*;
use crate::store::{FormatOptions, OpenOptions, VolumeStore, format};
use holdfast_core::store::Behind as _;
use holdfast_core::{FileSystem, Options};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_types::{Caller, FileType};
use std::collections::HashSet;
use std::sync::Arc;

fn marks_above(last: Ino) -> HighWater {
    HighWater::above(last, 100)
}

#[test]
fn a_mark_is_renewed_at_half_and_binding_once_it_is_durable() {
    let marks = marks_above(Ino(1000));
    assert_eq!(marks.latest(), Ino(1100));
    assert!(marks.allows(Ino(1100)) && !marks.allows(Ino(1101)));
    assert_eq!(marks.next_mark(Ino(1050), Lsn(5)), None, "none is wanted");
    assert!(!marks.judge(Ino(1101), Lsn(6)));
    // Four times what was allocated.
    let next = Ino(1101 + 4 * 101);
    assert_eq!(marks.next_mark(Ino(1051), Lsn(7)), Some(next));
    assert_eq!(marks.next_mark(Ino(1051), Lsn(8)), None, "once");
    assert_eq!(marks.latest(), next);
    // The old mark counts until the new one is durable.
    assert!(!marks.judge(Ino(1101), Lsn(6)));
    assert!(marks.judge(Ino(1101), Lsn(7)));
    assert!(marks.allows(next) && !marks.allows(Ino(next.0 + 1)));
}

#[test]
fn numbers_end_without_a_wrap() {
    let marks = marks_above(Ino(NUMBERS_END - 10));
    let last = Ino(NUMBERS_END - 1);
    assert_eq!(marks.latest(), last);
    assert!(marks.judge(last, Lsn(0)));
    assert_eq!(marks.next_mark(last, Lsn(1)), None);
}

fn open(device: &Arc<dyn BlockDevice>, numbers_reserved: u64) -> (Arc<VolumeStore>, FileSystem) {
    let options = OpenOptions {
        commit_every: None,
        numbers_reserved,
        ..OpenOptions::default()
    };
    let store = Arc::new(VolumeStore::open(Arc::clone(device), &options).unwrap());
    let fs = FileSystem::new(Arc::clone(&store) as _, Options::default()).unwrap();
    (store, fs)
}

fn create(fs: &FileSystem, name: &str) -> u64 {
    let (who, root) = (Caller::root(), fs.root());
    let made = fs.mknod(&who, &root, name.as_bytes(), FileType::Regular, 0o644, 0);
    made.unwrap().ino().0
}

fn device() -> Arc<dyn BlockDevice> {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(64 << 20));
    format(&device, &FormatOptions::default()).unwrap();
    device
}

#[test]
fn a_thousand_crashes_in_a_row_leave_numbers_unique_and_short() {
    let device = device();
    let mut dealt = HashSet::new();
    for crash in 0..1000 {
        let (store, fs) = open(&device, OpenOptions::default().numbers_reserved);
        for file in 0..3 {
            let ino = create(&fs, &format!("{crash} {file}"));
            assert!(u32::try_from(ino).is_ok(), "{ino} after {crash} crashes");
            assert!(dealt.insert(ino), "{ino} was dealt twice");
        }
        // Most crashes lose what was created.
        if crash % 7 == 0 {
            fs.sync().unwrap();
        }
        drop(fs);
        drop(store);
    }
}

#[test]
fn marks_that_only_the_journal_has_hold_after_a_crash() {
    let device = device();
    let mut dealt = HashSet::new();
    for crash in 0..20 {
        let (store, fs) = open(&device, 8);
        for file in 0..600 {
            let ino = create(&fs, &format!("{crash} {file}"));
            assert!(dealt.insert(ino), "{ino} was dealt twice");
        }
        match crash % 3 {
            0 => store.checkpoint().unwrap(),
            1 => fs.sync().unwrap(),
            _ => {}
        }
        drop(fs);
        drop(store);
    }
}

#[test]
fn closing_leaves_no_number_out() {
    let device = device();
    let (store, fs) = open(&device, 1000);
    let before = create(&fs, "before");
    fs.close().unwrap();
    store.close().unwrap();
    let (store, fs) = open(&device, 1000);
    assert_eq!(store.last_ino().unwrap().0, before);
    assert!(create(&fs, "after") <= before + 64);
    fs.close().unwrap();
    store.close().unwrap();
}
