//! Bytes that are written again while nothing else of their file changes.

use holdfast_core::Store;
use holdfast_core::store::{Behind, Change};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_testkit::device::{CrashStates, RecordingDevice};
use holdfast_types::Ino;
use holdfast_volume::{BLOCK, FormatOptions, OpenOptions, VolumeStore, format};
use std::sync::Arc;

use super::inode;

const FILE: Ino = Ino(1000);
const LEN: u64 = 4 * BLOCK as u64;

fn open(device: Arc<dyn BlockDevice>) -> VolumeStore {
    let options = OpenOptions {
        commit_every: None,
        ..OpenOptions::default()
    };
    VolumeStore::open(device, &options).expect("opened")
}

/// Writes these bytes over all of the file, whose attributes are as they were.
fn write(store: &VolumeStore, byte: u8) {
    let data = vec![byte; LEN as usize];
    let attributes = Change::Attributes {
        inode: inode(FILE, LEN),
    };
    let write = Change::Write {
        ino: FILE,
        offset: 0,
        data: &data,
    };
    store.change(&[attributes, write]).expect("written");
}

fn first_and_last(store: &VolumeStore) -> (u8, u8) {
    let mut bytes = vec![0; LEN as usize];
    store.read_data(FILE, 0, &mut bytes).expect("read");
    (bytes[0], bytes[LEN as usize - 1])
}

#[test]
fn what_is_written_again_in_the_same_moment_is_as_durable_as_the_first_time() {
    let below: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(32 << 20));
    format(&below, &FormatOptions::default()).expect("formatted");
    let device = Arc::new(RecordingDevice::new(below).expect("recording"));
    let store = open(Arc::clone(&device) as _);
    let (inode, target) = (inode(FILE, 0), None);
    store
        .change(&[Change::Create { inode, target }])
        .expect("created");
    for round in 1..=6 {
        write(&store, round);
        // By a stamp as well as without one.
        let upto = match round % 2 {
            0 => None,
            _ => {
                let attributes = Change::Attributes {
                    inode: super::inode(FILE, LEN),
                };
                let nothing = Change::Write {
                    ino: FILE,
                    offset: 0,
                    data: &[round],
                };
                Some(store.change(&[attributes, nothing]).expect("written"))
            }
        };
        store.commit(upto).expect("durable");
        device.mark(u64::from(round));
    }
    drop(store);
    let states = CrashStates::new(device.history(), 1);
    let mut seen = 0;
    for index in (0..states.systematic()).chain(states.systematic()..states.systematic() + 60) {
        let state = states.state(index);
        let Some(reached) = state.reached().next_back() else {
            continue;
        };
        let store = open(Arc::new(MemoryDevice::from_image("crashed", state.image)));
        let (first, last) = first_and_last(&store);
        // What came later may be there as well, in parts: files in blocks are written in place.
        assert!(
            u64::from(first) >= reached && u64::from(last) >= reached,
            "state {index}: {first} and {last} after commit {reached}"
        );
        seen = seen.max(reached);
    }
    assert_eq!(seen, 6);
}
