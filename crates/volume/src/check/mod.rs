//! The check: everything that must hold between the parts of a volume.
//!
//! It only reads. A volume that was not closed cleanly is first opened on a device in memory over its
//! own, so that what is checked is what its journal leads to.
//!
//! Trees are walked in parallel. Memory: 72 bytes for each inode, one bit for each block, 32 KiB of
//! sums of names; a node for each thread; the blocks that the journal's replay writes; where names and
//! their hashes differ, at most 4 Mi keys of either; as many findings as were asked for.

mod bitmaps;
mod blocks;
mod contents;
mod finding;
mod inodes;
mod meter;
mod names;
mod nodes;
mod overlay;
mod paths;
mod recognize;
mod sink;
#[cfg(test)]
mod tests;

pub use finding::{Branch, Finding, Owner};
pub(crate) use inodes::file_flags;
pub use meter::{Progress, Stage};
pub(crate) use overlay::Overlay;
pub use recognize::recognize;

use std::sync::Arc;

use holdfast_device::BlockDevice;

use crate::BLOCK;
use crate::nodes::Nodes;
use crate::space::{Extent, Seal};
use crate::store::{OpenOptions, VolumeStore};
use crate::superblock::{SLOTS, SlotError, Superblock};
use crate::tree::{NodeCache, Pointer, Record, Root, Tree};
use blocks::Claims;
use finding::Owner as BlockOwner;
use meter::Meter;
use sink::Sink;

/// Bytes of nodes that are kept: only single names are looked up.
const CACHE: usize = 1 << 20;

/// How to check.
#[derive(Clone, Copy, Debug)]
pub struct CheckOptions {
    /// Threads that walk a tree.
    pub jobs: usize,
    /// Findings that are kept; more are counted.
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

/// What a check saw.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What is wrong, in the order in which it was found.
    pub findings: Vec<Finding>,
    /// Findings that were not kept.
    pub more: u64,
    /// What the volume says of itself, if it says anything: where a journal was replayed, after that.
    pub superblock: Option<Superblock>,
    /// Was there a journal to replay?
    pub replayed: bool,
    /// Inodes that the trees have.
    pub inodes: u64,
    /// Extents of files.
    pub extents: u64,
    /// Blocks that trees, files and attributes have.
    pub blocks: u64,
}

impl Report {
    /// Is nothing wrong?
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.more == 0
    }
}

/// What all parts of a check need.
struct Context<'c> {
    superblock: &'c Superblock,
    cache: &'c NodeCache<Nodes>,
    claims: &'c Claims,
    sink: &'c Sink,
    meter: &'c Meter<'c>,
    jobs: usize,
}

impl<'c> Context<'c> {
    fn root(&self, branch: Branch) -> Option<Root> {
        let [inodes, entries, hashes, data] = self.superblock.roots.map(|tree| tree[0]);
        match branch {
            Branch::Inodes => inodes,
            Branch::Entries => entries,
            Branch::Hashes => hashes,
            Branch::Data => data,
            Branch::Orphans => self.superblock.orphans,
        }
    }

    fn tree<R: Record>(&self, branch: Branch) -> Tree<'c, R, Nodes> {
        Tree::new(self.cache, self.root(branch))
    }

    /// A pointer leads to a node.
    fn node(&self, branch: Branch, node: Pointer) {
        let extent = Extent::new(node.block, u64::from(node.blocks));
        self.claims
            .claim(extent, BlockOwner::Node(branch), self.sink);
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
        if let Err(error) = result
            && (slots.iter().all(Result::is_err) || is_clean(&slots))
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

/// Can a crash leave these two, or nothing at all having happened? The first one is written first: by
/// a checkpoint as a whole, by opening and closing with another flag and another mark of inode numbers, by growing with
/// another size.
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
    // A later Holdfast may count on by more than one.
    one.generation > other.generation && !one.clean && !other.clean
}

/// Is the first one that of the second with more blocks?
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

fn is_clean(slots: &[Result<Superblock, SlotError>; 2]) -> bool {
    slots.iter().flatten().any(|superblock| superblock.clean)
}

/// Opens and closes a volume in memory that was not closed; what is left to be checked is there.
fn replay(
    device: &Arc<dyn BlockDevice>,
    superblock: Superblock,
    sink: &Sink,
    report: &mut Report,
) -> (Arc<dyn BlockDevice>, Superblock) {
    if superblock.clean {
        return (Arc::clone(device), superblock);
    }
    let overlay: Arc<dyn BlockDevice> = Arc::new(Overlay::new(Arc::clone(device)));
    let options = OpenOptions {
        commit_every: None,
        ..OpenOptions::default()
    };
    let replayed =
        VolumeStore::open(Arc::clone(&overlay), &options).and_then(|store| store.close());
    match replayed {
        Ok(()) => {
            if let Some(superblock) = superblocks(&overlay, sink) {
                report.replayed = true;
                return (overlay, superblock);
            }
        }
        Err(error) => {
            let reason = error.to_string();
            sink.put(Finding::Journal { reason });
        }
    }
    (Arc::clone(device), superblock)
}

/// Looks at the trees and bitmaps of a superblock.
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
    let claims = Claims::new(superblock.layout());
    let records = superblock.roots.iter().map(|tree| tree[0]);
    let records = records.flatten().map(|root| root.records);
    let records = records.fold(0, u64::saturating_add);
    let meter = Meter::new(progress, records);
    let context = Context {
        superblock,
        cache: &cache,
        claims: &claims,
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
    bitmaps::check(device, superblock, &claims, sink);
    meter.begin(Stage::Done);
    report.inodes = census.len() as u64;
    report.blocks = claims.count();
}
