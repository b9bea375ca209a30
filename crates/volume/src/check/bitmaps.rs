//! Compares the bitmaps on disk with the blocks that are referenced.

use std::sync::Arc;

use holdfast_device::{BlockDevice, ReadRequest};

use super::block_set::BlockSet;
use super::finding::Finding;
use super::sink::Sink;
use crate::block::BLOCK;
use crate::space::{Layout, Seal, recorded};
use crate::superblock::Superblock;

/// The number of bitmaps read at once.
const GROUPS: u64 = 256;
/// A group's two slots.
type Pair = Box<[u8; 2 * BLOCK]>;

/// Reads all bitmaps, and reports the differences from the claims.
pub(super) fn check(
    device: &Arc<dyn BlockDevice>,
    superblock: &Superblock,
    references: &BlockSet,
    sink: &Sink,
) {
    let layout = superblock.layout();
    let mut seal = Seal::default();
    let (mut suspects, mut missing) = (0, false);
    let groups = layout.groups();
    for first in (0..groups).step_by(GROUPS as usize) {
        let some = first..groups.min(first + GROUPS);
        let pairs = read(device, &layout, some.clone());
        for (group, pair) in some.zip(pairs) {
            let Some(pair) = pair else {
                sink.put(Finding::BitmapUnreadable { group });
                missing = true;
                continue;
            };
            let (blocks, _) = pair.as_chunks::<BLOCK>();
            match recorded(
                &layout,
                group,
                superblock.generation,
                [&blocks[0], &blocks[1]],
            ) {
                Ok(recorded) => {
                    seal.fingerprint ^= recorded.print;
                    suspects += u64::from(recorded.is_suspect());
                    seal.free +=
                        compare(&layout, group, recorded.words.as_deref(), references, sink);
                }
                Err(slots) => {
                    sink.put(Finding::Bitmap { group, slots });
                    missing = true;
                }
            }
        }
    }
    if !missing && seal != superblock.seal {
        sink.put(Finding::Seal { suspects });
    }
}

/// The slots of some groups; `None` if unreadable.
fn read(
    device: &Arc<dyn BlockDevice>,
    layout: &Layout,
    groups: std::ops::Range<u64>,
) -> Vec<Option<Pair>> {
    let place = |group| layout.slot(group, 0) * BLOCK as u64;
    let mut pairs: Vec<Pair> = groups.clone().map(|_| Box::new([0; 2 * BLOCK])).collect();
    let mut requests: Vec<ReadRequest<'_>> = groups
        .clone()
        .zip(&mut pairs)
        .map(|(group, pair)| ReadRequest::new(place(group), &mut pair[..]))
        .collect();
    if device.read_batch(&mut requests).is_ok() {
        return pairs.into_iter().map(Some).collect();
    }
    groups
        .zip(pairs)
        .map(|(group, mut pair)| {
            device
                .read(place(group), &mut pair[..])
                .is_ok()
                .then_some(pair)
        })
        .collect()
}

/// Compares one group; returns the number of free blocks in its bitmap.
fn compare(
    layout: &Layout,
    group: u64,
    words: Option<&[u64]>,
    references: &BlockSet,
    sink: &Sink,
) -> u64 {
    let extent = layout.group(group);
    let mut free = 0;
    // Runs of blocks that are wrong in the same way.
    let mut run: Option<(bool, u64, u64)> = None;
    let end_run = |run: &mut Option<(bool, u64, u64)>| match run.take() {
        Some((true, start, length)) => sink.put(Finding::Leaked { start, length }),
        Some((false, start, length)) => sink.put(Finding::Unmarked { start, length }),
        None => {}
    };
    for index in layout.reserved(group)..extent.length {
        let block = extent.start + index;
        let is_used =
            words.is_some_and(|words| words[(index / 64) as usize] >> (index % 64) & 1 != 0);
        free += u64::from(!is_used);
        if is_used == references.has(block) {
            end_run(&mut run);
            continue;
        }
        match &mut run {
            Some((used, _, length)) if *used == is_used => *length += 1,
            _ => {
                end_run(&mut run);
                run = Some((is_used, block, 1));
            }
        }
    }
    end_run(&mut run);
    free
}
