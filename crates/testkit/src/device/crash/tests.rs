use super::*;
use crate::device::{DeviceCall, DeviceFault, FaultyDevice, RecordingDevice};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_types::Errno;
use std::collections::BTreeSet;

const SECTORS: u64 = 24;

fn sector(image: &Image, at: u64) -> [u8; 512] {
    let mut bytes = [0; 512];
    image.read(at * SECTOR, &mut bytes);
    bytes
}

/// A recording of random calls; each write has bytes of its own, and some calls fail.
fn random(seed: u64) -> History {
    let mut rng = Rng::new(seed);
    let memory = Arc::new(MemoryDevice::new(SECTORS * SECTOR));
    let faulty = Arc::new(FaultyDevice::new(memory));
    let device = RecordingDevice::new(Arc::clone(&faulty) as Arc<dyn BlockDevice>).unwrap();
    for step in 1..60 {
        let at = rng.below(SECTORS);
        let len = rng.below((SECTORS - at).min(6) + 1);
        if rng.one_in(10) {
            faulty.plan(DeviceFault::once(Some(DeviceCall::Write), 0, Errno::EIO));
        }
        match rng.below(10) {
            0..6 => {
                let bytes = vec![step as u8; (len * SECTOR) as usize];
                device.write(at * SECTOR, &bytes).ok();
            }
            6 => {
                device.discard(at * SECTOR, len * SECTOR).unwrap();
            }
            _ => device.flush().unwrap(),
        }
        device.mark(step);
    }
    device.history()
}

/// What a sector may hold at a time, worked out from the rule alone: what the last durable change
/// left, or a change that came after it. A discard that is not durable may leave junk.
fn legal(history: &History, time: u64, at: u64) -> BTreeSet<[u8; 512]> {
    let flushed = history
        .ops
        .iter()
        .filter(|op| op.is_flush() && op.ended < time)
        .map(|op| op.began)
        .max()
        .unwrap_or(0);
    let mut versions = BTreeSet::from([sector(&history.start, at)]);
    for op in history.ops.iter().take_while(|op| op.began < time) {
        let (offset, len) = op.range();
        if !(offset..offset + len).contains(&(at * SECTOR)) {
            continue;
        }
        let durable = op.ended < flushed;
        if durable {
            versions.clear();
        }
        match &op.what {
            What::Write { image, .. } => {
                versions.insert(sector(image, at));
            }
            _ => {
                versions.insert([0; 512]);
                if !durable {
                    versions.insert([0xdb; 512]);
                }
            }
        }
    }
    versions
}

#[test]
fn every_state_is_legal_sector_by_sector() {
    for seed in 0..60 {
        let states = CrashStates::new(random(seed), seed);
        for state in states.iter().take(states.systematic() as usize + 200) {
            for at in 0..SECTORS {
                let legal = legal(&states.history, state.time, at);
                assert!(
                    legal.contains(&sector(&state.image, at)),
                    "sector {at} of {state}"
                );
            }
        }
    }
}

#[test]
fn every_version_of_every_sector_is_tried_sooner_or_later() {
    for seed in 0..8 {
        let states = CrashStates::new(random(seed), seed);
        let mut open: BTreeSet<(u64, [u8; 512])> = (0..SECTORS)
            .flat_map(|at| {
                legal(&states.history, NEVER, at)
                    .into_iter()
                    .map(move |it| (at, it))
            })
            .filter(|(_, version)| *version != [0xdb; 512])
            .collect();
        for state in states.iter().take(20_000) {
            for at in 0..SECTORS {
                if state.time > states.history.now {
                    open.remove(&(at, sector(&state.image, at)));
                }
            }
        }
        assert!(
            open.is_empty(),
            "seed {seed}: {} versions never seen",
            open.len()
        );
    }
}

#[test]
fn a_state_can_be_made_again_from_seed_and_number() {
    let history = random(7);
    let one = CrashStates::new(history.clone(), 1);
    let again = CrashStates::new(history.clone(), 1);
    let other = CrashStates::new(history, 2);
    let count = one.systematic() as usize + 100;
    let mut differ = 0;
    for state in one.iter().take(count) {
        let rebuilt = again.state(state.index);
        assert!(state.image == rebuilt.image, "{state}");
        assert_eq!(state.to_string(), rebuilt.to_string());
        assert!(state.reached().eq(rebuilt.reached()));
        differ += usize::from(state.image != other.state(state.index).image);
    }
    assert!(differ > 20, "{differ}");
}

#[test]
fn what_a_mark_promises_is_in_every_state_that_has_reached_it() {
    let device = RecordingDevice::from_image(Image::new(1 << 16));
    for number in 1..=20 {
        device.write(number * SECTOR, &[number as u8; 512]).unwrap();
        device.write(64 * SECTOR, &[number as u8; 2048]).unwrap();
        device.flush().unwrap();
        device.mark(number);
    }
    let states = CrashStates::new(device.history(), 3);
    let (mut missing, mut torn) = (0, 0);
    for state in states.iter().take(3_000) {
        let reached = state.reached().next_back().unwrap_or(0);
        for number in 1..=20 {
            let there = sector(&state.image, number)[0] == number as u8;
            assert!(there || number > reached, "{number} of {state}");
            missing += u32::from(!there && number == reached + 1);
        }
        let parts = [64, 65, 66, 67].map(|at| sector(&state.image, at)[0]);
        assert!(parts.iter().all(|&it| u64::from(it) >= reached), "{state}");
        torn += u32::from(parts.iter().any(|&it| it != parts[0]));
    }
    // States in which nothing is lost or torn would test nothing.
    assert!(
        missing > 100 && torn > 100,
        "{missing} missing, {torn} torn"
    );
}

#[test]
fn a_write_beside_a_flush_is_not_durable_with_it() {
    let mut history = History::new(Image::new(4096));
    let op = |began, ended, what| Op { began, ended, what };
    history.ops.push(op(2, 5, What::write(0, &[1; 512])));
    history.ops.push(op(3, 4, What::Flush));
    history.marks.push((6, 1));
    history.now = 7;
    let states = CrashStates::new(history, 0);
    let lost = states
        .iter()
        .take(100)
        .any(|state| state.reached().count() == 1 && sector(&state.image, 0)[0] == 0);
    assert!(lost);
}

#[test]
fn a_device_that_grew_may_come_back_smaller_until_flushed() {
    let device = RecordingDevice::from_image(Image::new(4096));
    device.resize(8192).unwrap();
    device.write(4096, &[1; 512]).unwrap();
    device.mark(1);
    device.flush().unwrap();
    device.mark(2);
    let states = CrashStates::new(device.history(), 0);
    let mut sizes = BTreeSet::new();
    for state in states.iter().take(200) {
        let reached = state.reached().count();
        sizes.insert((reached, state.image.size()));
    }
    assert!(sizes.contains(&(1, 4096)) && sizes.contains(&(1, 8192)));
    assert!(sizes.contains(&(2, 8192)) && !sizes.contains(&(2, 4096)));
}

#[test]
fn an_empty_history_has_one_state() {
    let device = RecordingDevice::from_image(Image::new(4096));
    let states = CrashStates::new(device.history(), 0);
    assert!(
        states
            .iter()
            .take(10)
            .all(|state| state.image == Image::new(4096))
    );
}
