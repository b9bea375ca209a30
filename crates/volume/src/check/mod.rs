//! The check: the consistency of all parts of a volume.
//!
//! It only reads. A volume that was not closed cleanly is first opened on an overlay in memory, so
//! that the state after its journal's replay is checked.
//!
//! Trees are walked in parallel. Memory: 72 bytes for each inode, one bit for each block, 32 KiB of
//! sums of names, a node for each thread, and the blocks that the journal's replay writes. If names
//! and their hashes differ, at most 4 Mi keys of either. The findings up to the limit.

mod bitmaps;
mod block_set;
mod contents;
mod context;
mod finding;
mod inodes;
mod meter;
mod names;
mod paths;
mod recognize;
mod sink;
#[cfg(test)]
mod tests;
mod walk;

pub(crate) use block_set::BlockSet;
pub(crate) use finding::shown;
pub use finding::{Branch, Finding, Owner};
pub(crate) use inodes::file_flags;
pub use meter::{Progress, Stage};
pub(crate) use names::is_name;
pub use recognize::recognize;
pub(crate) use walk::{visit, walk};

use std::sync::Arc;

use holdfast_device::BlockDevice;

use crate::block::BLOCK;
use crate::cow_device::CowDevice;
use crate::error::Result;
use crate::nodes::Nodes;
use crate::space::Seal;
use crate::store::{OpenOptions, VolumeStore};
use crate::superblock::{SLOTS, SlotError, Superblock};
use crate::tree::NodeCache;
use context::Context;
use meter::Meter;
use sink::Sink;

/// Bytes of nodes that are kept: only single names are looked up.
const CACHE: usize = 1 << 20;

/// Options of a check.
#[derive(Clone, Copy, Debug)]
pub struct CheckOptions {
    /// Threads that walk a tree.
    pub jobs: usize,
    /// The most findings that are kept; more are counted.
    pub findings_max: usize,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self {
            jobs: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            findings_max: 10_000,
        }
    }
}

/// The result of a check.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The defects, in the order in which they were found.
    pub findings: Vec<Finding>,
    /// The number of findings that were not kept.
    pub more: u64,
    /// The superblock, if there is one; after the replay of a journal.
    pub superblock: Option<Superblock>,
    /// Was a journal replayed?
    pub replayed: bool,
    /// Inodes in the trees.
    pub inodes: u64,
    /// Extents of files.
    pub extents: u64,
    /// Blocks of trees, files and attributes.
    pub blocks: u64,
}

impl Report {
    /// Is nothing wrong?
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.more == 0
    }
}

/// Checks the volume on a device, and changes nothing.
#[must_use]
pub fn check(
    device: &Arc<dyn BlockDevice>,
    options: &CheckOptions,
    progress: &Progress<'_>,
) -> Report {
    let sink = Sink::new(options.findings_max);
    let mut report = Report::default();
    if let Some(superblock) = superblocks(device, &sink) {
        let (device, superblock) = replay(device, superblock, &sink, &mut report);
        look(&device, &superblock, options, progress, &sink, &mut report);
        report.superblock = Some(superblock);
    }
    (report.findings, report.more) = sink.into_findings();
    report
}

/// The newest superblock, if the device is as long as it says.
fn superblocks(device: &Arc<dyn BlockDevice>, sink: &Sink) -> Option<Superblock> {
    let read = |slot: u64| {
        let mut bytes = vec![0; BLOCK];
        match device.read(slot * BLOCK as u64, &mut bytes) {
            Ok(()) => Superblock::decode(&bytes, slot),
            Err(_) => Err(SlotError::Magic),
        }
    };
    let slots = SLOTS.map(read);
    if let [Ok(one), Ok(other)] = &slots
        && !may_stand_together(one, other)
    {
        let generations = [one.generation, other.generation];
        sink.put(Finding::Superblocks { generations });
    }
    for (slot, result) in SLOTS.iter().zip(&slots) {
        // A crash may leave one torn, but not beside a clean one: see the store's `close`.
        let mut whole = slots.iter().flatten().peekable();
        if let Err(error) = result
            && (whole.peek().is_none() || whole.any(|superblock| superblock.clean))
        {
            let error = error.clone();
            sink.put(Finding::Superblock { slot: *slot, error });
        }
    }
    let [one, other] = slots.map(Result::ok);
    let newest = match (one, other) {
        (Some(one), Some(other)) if other.generation > one.generation => other,
        (one, other) => one.or(other)?,
    };
    let (found, expected) = (device.size() / BLOCK as u64, newest.blocks);
    if found < expected {
        sink.put(Finding::CutShort { found, expected });
        return None;
    }
    if newest.layout().check().is_err() {
        let error = SlotError::Field("the place of the groups");
        sink.put(Finding::Superblock { slot: 0, error });
        return None;
    }
    for branch in [
        Branch::Inodes,
        Branch::Entries,
        Branch::Hashes,
        Branch::Data,
    ] {
        let roots = newest.roots[branch as usize];
        if roots[1..].iter().any(Option::is_some) {
            sink.put(Finding::Root { branch });
        }
    }
    Some(newest)
}

/// Can these two slots coexist, with or without a crash? Slot 0 is written first: by a checkpoint
/// as a whole, by opening and closing with another `clean` and `last_ino`, by growing with another
/// size.
fn may_stand_together(one: &Superblock, other: &Superblock) -> bool {
    if one.generation == other.generation {
        return has_grown(one, other)
            || *other
                == Superblock {
                    clean: other.clean,
                    last_ino: other.last_ino,
                    ..one.clone()
                };
    }
    // A later Holdfast may increase the generation by more than one.
    one.generation > other.generation && !one.clean && !other.clean
}

/// Is `one` the same superblock as `other` with more blocks?
fn has_grown(one: &Superblock, other: &Superblock) -> bool {
    let gained = one
        .layout()
        .capacity()
        .wrapping_sub(other.layout().capacity());
    one.blocks > other.blocks
        && !one.clean
        && *other
            == Superblock {
                blocks: other.blocks,
                written: other.written,
                seal: Seal {
                    free: one.seal.free.wrapping_sub(gained),
                    ..one.seal
                },
                ..one.clone()
            }
}

/// Opens and closes an unclean volume on an overlay in memory; returns the overlay.
fn replay(
    device: &Arc<dyn BlockDevice>,
    superblock: Superblock,
    sink: &Sink,
    report: &mut Report,
) -> (Arc<dyn BlockDevice>, Superblock) {
    if superblock.clean {
        return (Arc::clone(device), superblock);
    }
    let cow_device: Arc<dyn BlockDevice> = Arc::new(CowDevice::new(Arc::clone(device)));
    match open_and_close(&cow_device) {
        Ok(()) => {
            if let Some(superblock) = superblocks(&cow_device, sink) {
                report.replayed = true;
                return (cow_device, superblock);
            }
        }
        Err(error) => {
            let reason = error.to_string();
            sink.put(Finding::Journal { reason });
        }
    }
    (Arc::clone(device), superblock)
}

/// Replays the journal, by opening and closing the volume.
pub(crate) fn open_and_close(device: &Arc<dyn BlockDevice>) -> Result<()> {
    let options = OpenOptions {
        commit_every: None,
        ..OpenOptions::default()
    };
    VolumeStore::open(Arc::clone(device), &options)?.close()
}

/// Checks the trees and bitmaps of a superblock.
fn look(
    device: &Arc<dyn BlockDevice>,
    superblock: &Superblock,
    options: &CheckOptions,
    progress: &Progress<'_>,
    sink: &Sink,
    report: &mut Report,
) {
    let cache = NodeCache::new(
        Nodes {
            device: Arc::clone(device),
            volume: superblock.identity(),
        },
        CACHE,
    );
    let references = BlockSet::new(superblock.layout());
    let records = superblock.roots.iter().map(|tree| tree[0]);
    let records = records.flatten().map(|root| root.records);
    let records = records.fold(0, u64::saturating_add);
    let meter = Meter::new(progress, records);
    let context = Context {
        superblock,
        cache: &cache,
        references: &references,
        sink,
        meter: &meter,
        jobs: options.jobs.max(1),
    };
    meter.begin(Stage::Inodes);
    let census = inodes::census(&context);
    inodes::orphans(&context, &census);
    meter.begin(Stage::Names);
    names::check(&context, &census);
    paths::check(&context, &census);
    meter.begin(Stage::Data);
    report.extents = contents::check(&context, &census);
    meter.begin(Stage::Space);
    bitmaps::check(device, superblock, &references, sink);
    meter.begin(Stage::Done);
    report.inodes = census.len() as u64;
    report.blocks = references.count();
}
