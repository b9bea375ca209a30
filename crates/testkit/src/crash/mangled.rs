//! Images of volumes that were changed on purpose, with valid checksums, as a fuzzer or an attacker
//! makes them.
//!
//! Input bytes are read as changes: which block, which offset, which bytes. The checksums of
//! changed blocks are then made valid, so that the code behind them is reached. Then the volume is
//! checked, opened, read, written, closed and repaired. All of these may return errors, but none
//! may panic, hang, or allocate without bound.

use std::sync::Arc;

use holdfast_device::{BlockDevice, Image, MemoryDevice};
use holdfast_volume::checksum::checksum;
use holdfast_volume::{CheckOptions, check, repair};

use super::step::Step;
use super::subject::{Bases, Subject};
use crate::rng::Rng;

const BLOCK: usize = 4096;
/// Where all checksums lie.
const FIELD: std::ops::Range<usize> = 8..16;
/// Bytes of a change.
const CHANGE: usize = 8;
/// Changes of one image at most.
const CHANGES_MAX: usize = 64;

const CHECK: CheckOptions = CheckOptions {
    jobs: 1,
    findings_max: 200,
};

/// Images to begin with, and where their metadata lies.
#[derive(Debug)]
pub struct Images(Vec<(Image, Vec<u64>)>);

impl Images {
    /// Makes them.
    ///
    /// # Errors
    /// What went wrong.
    pub fn make() -> Result<Self, String> {
        let images = Bases::make(1)?.images;
        let images = images.into_iter().map(|image| {
            let metadata = metadata(&image);
            (image, metadata)
        });
        Ok(Self(images.collect()))
    }

    /// Random input, as a fuzzer would make it.
    #[must_use]
    pub fn input(seed: u64) -> Vec<u8> {
        let mut rng = Rng::new(seed);
        let changes = 1 + rng.below(6) as usize;
        (0..=changes * CHANGE)
            .map(|_| rng.below(256) as u8)
            .collect()
    }

    /// Changes an image as the input says, and does everything with it that can be done.
    pub fn try_input(&self, input: &[u8]) {
        let Some((choice, changes)) = input.split_first() else {
            return;
        };
        let (image, metadata) = &self.0[usize::from(*choice) % self.0.len()];
        let mut mangled = image.clone();
        for change in changes.chunks_exact(CHANGE).take(CHANGES_MAX) {
            mangle(&mut mangled, metadata, change);
        }
        let device = |image: &Image| -> Arc<dyn BlockDevice> {
            Arc::new(MemoryDevice::from_image("mangled", image.clone()))
        };
        let _ = check(&device(&mangled), &CHECK, &|_, _, _| {});
        if let Ok(mut subject) = Subject::open(device(&mangled)) {
            let _ = subject.tree();
            for (step, fill) in STEPS.iter().zip(1..) {
                let _ = subject.perform(step, fill);
            }
            let _ = subject.tree();
            let _ = subject.close();
        }
        let device = device(&mangled);
        if repair(&device, &CHECK, &|_, _, _| {}).is_ok()
            && let Ok(subject) = Subject::open(device)
        {
            let _ = subject.tree();
        }
    }
}

/// What is done to a volume that opens.
const STEPS: [Step; 8] = [
    Step::Write("new", 0, 100),
    Step::Write("big", 4000, 9000),
    Step::Rename("small", "dir/leaf"),
    Step::Unlink("big"),
    Step::SetXattr("new", 5000),
    Step::Checkpoint,
    Step::Truncate("dir/data", 5),
    Step::Sync,
];

/// Blocks that something begins at: superblocks, bitmaps, nodes, frames of the journal.
fn metadata(image: &Image) -> Vec<u64> {
    let blocks = 0..image.size() / BLOCK as u64;
    let begins = |block: &u64| {
        let mut magic = [0; 8];
        image.read(block * BLOCK as u64, &mut magic);
        let begins = |with: &[u8]| magic.starts_with(with);
        begins(b"HOLDFAST") || begins(b"HFgb") || begins(b"HfTn") || begins(b"HFJf")
    };
    blocks.filter(begins).collect()
}

/// One change: two bytes choose the block, two the place, one what is done, three the value.
fn mangle(image: &mut Image, metadata: &[u64], change: &[u8]) {
    let short = |at: usize| usize::from(u16::from_le_bytes([change[at], change[at + 1]]));
    let Some(block) = metadata.get(short(0) % metadata.len().max(1)) else {
        return;
    };
    let offset = block * BLOCK as u64;
    let mut head = vec![0; BLOCK];
    image.read(offset, &mut head);
    let len = length(&head);
    let mut bytes = vec![0; len];
    image.read(offset, &mut bytes);
    // Mostly where headers are and the first records.
    let at = if change[4] & 0x80 == 0 {
        short(2) % 256
    } else {
        short(2) % len
    };
    let value = [change[5], change[6], change[7]];
    match change[4] % 6 {
        0 => bytes[at] ^= 1 << (value[0] % 8),
        1 => bytes[at] = value[0],
        2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][usize::from(value[0]) % 5],
        3 => {
            let end = (at + 8).min(len);
            bytes[at..end].fill(value[0]);
        }
        4 => {
            let from = usize::from(u16::from_le_bytes([value[0], value[1]])) % len;
            let count = usize::from(value[2]).min(len - at.max(from));
            bytes.copy_within(from..from + count, at);
        }
        _ => {
            let end = (at + usize::from(value[0])).min(len);
            bytes[at..end].fill(0);
        }
    }
    seal(&mut bytes);
    image.write(offset, &bytes);
}

/// Bytes that the checksum in a header is over.
fn length(head: &[u8]) -> usize {
    match &head[..4] {
        b"HfTn" => usize::from(u16::from_le_bytes([head[6], head[7]])).clamp(1, 16) * BLOCK,
        _ => BLOCK,
    }
}

/// Makes the checksum right.
fn seal(bytes: &mut [u8]) {
    let upper = match &bytes[..4] {
        b"HfTn" => u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]),
        _ => 0,
    };
    let covered = match &bytes[..4] {
        // Of a frame only what is in use; longer ones than a block stay torn.
        b"HFJf" => {
            let used = u32::from_le_bytes([bytes[64], bytes[65], bytes[66], bytes[67]]);
            (used as usize).clamp(16, bytes.len())
        }
        _ => bytes.len(),
    };
    let sum = checksum(&bytes[..covered], FIELD) | u64::from(upper) << 32;
    bytes[FIELD].copy_from_slice(&sum.to_le_bytes());
}
