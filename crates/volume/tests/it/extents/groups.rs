//! Files that are longer than a group.

use holdfast_core::Store;
use holdfast_core::store::{Behind, Change};
use holdfast_device::BlockDevice;
use holdfast_types::Ino;
use holdfast_volume::{BLOCK, CheckOptions, FormatOptions, VolumeStore, check};
use std::sync::Arc;

use super::{BLOCK_LEN, OPTIONS, create, inode};
use crate::stage::formatted;

const FILE: Ino = Ino(1000);
/// Blocks of a group; the file has five times as many.
const GROUP: u64 = 512;
const PART: u64 = 100;

fn open(device: &Arc<dyn BlockDevice>) -> VolumeStore {
    VolumeStore::open(Arc::clone(device), &OPTIONS).expect("opened")
}

fn write(store: &VolumeStore, block: u64, byte: u8) {
    let bytes = vec![byte; PART as usize * BLOCK];
    super::write(store, FILE, 0, block * BLOCK_LEN, &bytes);
}

fn filled(bundle: Option<u64>) -> (Arc<dyn BlockDevice>, VolumeStore) {
    let options = FormatOptions {
        group_blocks: Some(GROUP),
        bundle,
        seed: Some(5),
        ..FormatOptions::default()
    };
    let device = formatted(64 << 20, &options);
    let store = open(&device);
    create(&store, FILE);
    for block in (0..5 * GROUP).step_by(PART as usize) {
        write(&store, block, (block / PART) as u8 + 1);
        if block % (4 * PART) == 0 {
            store.commit(None).expect("committed");
        }
    }
    store.checkpoint().expect("folded");
    (device, store)
}

fn longest(store: &VolumeStore) -> u64 {
    let extents = store.extents(FILE).expect("told");
    let lengths = extents.iter().map(|it| it.extent.length);
    lengths.max().expect("some")
}

fn assert_sound(device: &Arc<dyn BlockDevice>) {
    let report = check(device, &CheckOptions::default(), &|_, _, _| {});
    let findings = report.findings.iter().map(ToString::to_string);
    // The file has no name.
    let of_names = ["there is no root directory", "inode 1000 has no name"];
    let others = findings.filter(|it| !of_names.contains(&it.as_str()));
    assert_eq!(others.collect::<Vec<_>>(), [""; 0]);
}

/// The first byte of each part.
fn bytes(store: &VolumeStore) -> Vec<u8> {
    let parts = (0..5 * GROUP).step_by(PART as usize);
    let read = parts.map(|block| {
        let mut page = vec![0xff; BLOCK];
        store
            .read_data(FILE, block * BLOCK_LEN, &mut page)
            .expect("read");
        page[0]
    });
    read.collect()
}

#[test]
fn a_file_lies_in_a_row_across_the_groups_of_a_bundle() {
    let (_, apart) = filled(Some(1));
    assert!(longest(&apart) < GROUP);
    let (_, together) = filled(None);
    assert!(longest(&together) > 2 * GROUP, "{}", longest(&together));
}

#[test]
fn what_lies_across_groups_is_cut_freed_and_used_again() {
    let (device, store) = filled(None);
    let before = bytes(&store);
    let across = store.extents(FILE).expect("told");
    let longest = across.iter().max_by_key(|it| it.extent.length).unwrap();
    // A range across a group's end, and everything after another one.
    let hole = (longest.logical + GROUP / 2) * BLOCK_LEN..(longest.logical + GROUP) * BLOCK_LEN;
    let punch = Change::Zero {
        ino: FILE,
        offset: hole.start,
        len: hole.end - hole.start,
        keep: false,
    };
    store.change(&[punch]).expect("punched");
    store.commit(None).expect("committed");
    let size = (longest.logical + 2 * GROUP) * BLOCK_LEN;
    let attributes = Change::Attributes {
        inode: inode(FILE, size),
    };
    let truncate = Change::Truncate { ino: FILE, size };
    store.change(&[attributes, truncate]).expect("cut");
    store.commit(None).expect("committed");
    // Nothing of this is in the trees yet, so it is replayed.
    drop(store);
    let store = open(&device);
    let now = bytes(&store);
    let parts = (0..5 * GROUP).step_by(PART as usize);
    for (place, block) in parts.enumerate() {
        let at = block * BLOCK_LEN;
        let kept = !hole.contains(&at) && at < size;
        assert_eq!(
            now[place],
            if kept { before[place] } else { 0 },
            "block {block}"
        );
    }
    store.checkpoint().expect("folded");
    for block in (0..5 * GROUP - PART).step_by(PART as usize) {
        write(&store, block, 99);
    }
    store.checkpoint().expect("folded");
    store.close().expect("closed");
    assert_sound(&device);
}
