//! Faulty devices: cut short, or with an unreadable block.

use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_device::{Cause, DeviceError, Operation};
use holdfast_types::Errno;

use super::*;
use crate::block::BLOCK;

type DeviceResult<T> = holdfast_device::Result<T>;

/// No faulty block.
const NONE: u64 = u64::MAX;

/// A device with an unreadable block, which a write repairs, as on disks.
#[derive(Debug)]
struct Worn {
    below: Arc<dyn BlockDevice>,
    block: AtomicU64,
    /// A write does not repair it.
    for_ever: bool,
}

impl Worn {
    fn holds(&self, offset: u64, len: usize) -> bool {
        let block = self.block.load(Ordering::Relaxed);
        let first = offset / BLOCK as u64;
        let end = (offset + len as u64).div_ceil(BLOCK as u64);
        (first..end).contains(&block)
    }
}

impl BlockDevice for Worn {
    holdfast_device::pass_on!(below: size, alignment, flush, discard, resize);

    fn describe(&self) -> String {
        "a worn device".to_owned()
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> DeviceResult<()> {
        if self.holds(offset, buf.len()) {
            let (operation, len) = (Operation::Read, buf.len() as u64);
            let cause = Cause::Os(Errno::EIO);
            let device = self.describe();
            return Err(DeviceError::new(device, operation, offset, len, cause));
        }
        self.below.read(offset, buf)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> DeviceResult<()> {
        if self.holds(offset, bytes.len()) && !self.for_ever {
            self.block.store(NONE, Ordering::Relaxed);
        }
        self.below.write(offset, bytes)
    }
}

/// The sound volume on a device that cannot read one block.
fn worn(block: u64, for_ever: bool) -> Arc<dyn BlockDevice> {
    Arc::new(Worn {
        below: sound(),
        block: AtomicU64::new(block),
        for_ever,
    })
}

/// The bitmaps of the sound volume's groups.
fn slots() -> Vec<u64> {
    let layout = newest_superblock(&sound()).unwrap().layout();
    let groups = 0..layout.groups();
    groups
        .flat_map(|group| [layout.slot(group, 0), layout.slot(group, 1)])
        .collect()
}

#[test]
fn bitmaps_that_cannot_be_read_are_written_anew() {
    let slots = slots();
    assert!(slots.len() >= 4, "several groups, with two slots each");
    for block in slots {
        let device = worn(block, false);
        let outcome = repair(&device, &CheckOptions::default(), &|_, _, _| {}).unwrap();
        let before = codes(&outcome.before);
        assert_eq!(before, BTreeSet::from(["bitmap-unreadable"]), "{block}");
        let after = &outcome.after;
        assert!(after.is_clean(), "{block}: {:?}", after.findings);
        assert!(!outcome.actions.is_empty());
        assert_eq!(kept(&device), BTreeSet::from(ALL), "{block}");
    }
}

#[test]
fn bitmaps_that_never_can_be_read_are_told_again_after_the_repair() {
    for block in slots() {
        let device = worn(block, true);
        match repair(&device, &CheckOptions::default(), &|_, _, _| {}) {
            Ok(outcome) => {
                let after = codes(&outcome.after);
                assert_eq!(after, BTreeSet::from(["bitmap-unreadable"]), "{block}");
            }
            Err(error) => assert_eq!(error.errno(), Errno::EIO, "{block}: {error}"),
        }
    }
}

/// A copy of a device's first blocks, on a device of `blocks` blocks.
fn copy(device: &Arc<dyn BlockDevice>, first: u64, blocks: u64) -> Arc<dyn BlockDevice> {
    let copy: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(blocks * BLOCK as u64));
    let mut bytes = vec![0; (first * BLOCK as u64) as usize];
    device.read(0, &mut bytes).unwrap();
    copy.write(0, &bytes).unwrap();
    copy
}

#[test]
fn a_device_that_was_cut_short_is_left_alone_until_it_has_its_length_again() {
    let device = sound();
    let blocks = newest_superblock(&device).unwrap().blocks;
    for left in [blocks - 1, blocks / 2, 3] {
        let short = copy(&device, left, left);
        let outcome = repair(&short, &CheckOptions::default(), &|_, _, _| {}).unwrap();
        let expected = Finding::CutShort {
            found: left,
            expected: blocks,
        };
        assert_eq!(outcome.before.findings, [expected]);
        assert!(outcome.actions.is_empty() && !outcome.after.is_clean());
        let (mut before, mut after) = (vec![0; left as usize * BLOCK], vec![]);
        after.clone_from(&before);
        device.read(0, &mut before).unwrap();
        short.read(0, &mut after).unwrap();
        assert!(before == after, "nothing was written to it");
    }
    // The removed end has free blocks only.
    let long = copy(&copy(&device, blocks - 1, blocks - 1), blocks - 1, blocks);
    let report = crate::check(&long, &CheckOptions::default(), &|_, _, _| {});
    assert!(report.is_clean(), "{:?}", report.findings);
    assert_eq!(kept(&long), BTreeSet::from(ALL));
}
