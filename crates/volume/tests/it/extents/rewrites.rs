//! Bytes that are overwritten while nothing else of their file changes.

use holdfast_core::Store;
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_testkit::device::{CrashStates, RecordingDevice};
use holdfast_types::Ino;
use holdfast_volume::{BLOCK, FormatOptions, VolumeStore};
use std::sync::Arc;

use super::{OPTIONS, create, write};
use crate::stage::formatted;

const FILE: Ino = Ino(1000);
const LEN: u64 = 4 * BLOCK as u64;

fn open(device: Arc<dyn BlockDevice>) -> VolumeStore {
    VolumeStore::open(device, &OPTIONS).expect("opened")
}

fn first_and_last(store: &VolumeStore) -> (u8, u8) {
    let mut bytes = vec![0; LEN as usize];
    store.read_data(FILE, 0, &mut bytes).expect("read");
    (bytes[0], bytes[LEN as usize - 1])
}

#[test]
fn what_is_written_again_in_the_same_moment_is_as_durable_as_the_first_time() {
    let below = formatted(32 << 20, &FormatOptions::default());
    let device = Arc::new(RecordingDevice::new(below).expect("recording"));
    let store = open(Arc::clone(&device) as _);
    create(&store, FILE);
    for round in 1..=6 {
        write(&store, FILE, LEN, 0, &[round; LEN as usize]);
        // With an LSN and without one.
        let upto = match round % 2 {
            0 => None,
            _ => Some(write(&store, FILE, LEN, 0, &[round])),
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
        // Later bytes may be there in part: mapped files are overwritten in place.
        assert!(
            u64::from(first) >= reached && u64::from(last) >= reached,
            "state {index}: {first} and {last} after commit {reached}"
        );
        seen = seen.max(reached);
    }
    assert_eq!(seen, 6);
}
