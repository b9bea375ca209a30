//! Attributes of all inodes, in the order of their numbers.
//!
//! A scan of all inodes must not evict those that others use. So an inode that only the scan loaded
//! is evicted soon after its last use (XFS's `DONTCACHE`). An inode that was in memory before, or
//! that others look up meanwhile, stays.

use holdfast_cache::PAGE_SIZE;
use holdfast_sync::epoch;

use crate::FileSystem;
use crate::core::Core;
use crate::evictions::Evictions;
use crate::inode::Numbered as _;
use crate::inodes::free::put_node;
use crate::inodes::walk::walk_inodes;
use crate::inodes::{InodeWalk, Visit};
use crate::load::{load_inode, take_in};
use crate::node::Node;
use crate::store::InodeRecord;
use crate::types::{Attr, Errno, FileType, Ino, Result};

/// Records read from the store in one call.
const BATCH: usize = 256;
/// The same for a scan that loads no inodes.
const STREAM: usize = 1024;

/// The state of a scan of all inodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bulkstat {
    after: Ino,
    /// The last number that is shown.
    upto: Ino,
    /// Records read from the store in one call, at most.
    batch: usize,
    done: bool,
}

impl Bulkstat {
    /// A scan of all inodes.
    #[must_use]
    pub fn new() -> Self {
        Self::between(Ino(0), Ino(u64::MAX))
    }

    /// A scan of the inodes with numbers above `after`, up to `upto`.
    #[must_use]
    pub fn between(after: Ino, upto: Ino) -> Self {
        Self {
            after,
            upto,
            batch: STREAM,
            done: after >= upto,
        }
    }

    /// Limits the records read in one call, for a visitor that stops after as many.
    #[must_use]
    pub fn with_batch(mut self, batch: usize) -> Self {
        self.batch = batch.clamp(1, STREAM);
        self
    }

    /// The remaining numbers: those above the first, up to the second.
    #[must_use]
    pub fn rest(&self) -> (Ino, Ino) {
        (self.after, self.upto)
    }

    /// Is the scan complete?
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.done
    }
}

impl Default for Bulkstat {
    fn default() -> Self {
        Self::new()
    }
}

impl FileSystem {
    /// Visits every inode of the file system, in memory or not, in the order of numbers, with its
    /// attributes. It stops when the visitor asks for it or fails, and a later call continues
    /// there. Inodes that were not in memory are released after each batch.
    ///
    /// # Errors
    /// The visitor's; the store's; `EOPNOTSUPP` over a store without [walk](crate::Store::walk);
    /// `EIO` when revoked.
    pub fn bulkstat(
        &self,
        scan: &mut Bulkstat,
        mut visit: impl FnMut(&Node, &Attr) -> Result<Visit>,
    ) -> Result<()> {
        let core = &self.core;
        core.alive()?;
        let mut show = |node: &Node| visit(node, &self.attributes(node)?);
        if core.pinned {
            return bulkstat_memory(core, scan, &mut show);
        }
        let walk = core.store.walk().ok_or(Errno::EOPNOTSUPP)?;
        let mut run = Vec::with_capacity(BATCH);
        let mut shown: Vec<Node> = Vec::with_capacity(BATCH);
        while !scan.done {
            run.clear();
            // Released together: an eviction outdates the records that were read before it in its
            // shard, and each would then be read again by itself.
            shown.drain(..).for_each(|node| put_node(core, node));
            let evictions = core.evictions.snapshot();
            walk.walk(scan.after, BATCH, &mut run)?;
            scan.done = run.is_empty();
            for record in &run {
                if record.ino <= scan.after {
                    return Err(Errno::EUCLEAN);
                }
                if record.ino > scan.upto {
                    scan.done = true;
                    return Ok(());
                }
                scan.after = record.ino;
                let node = match core.index.get(record.ino.0) {
                    Some(inode) => Ok(Node::new(inode)),
                    None => {
                        match take_in(core, record, Evictions::of(&evictions, record.ino), true)? {
                            Some((node, _)) => Ok(node),
                            None => load_inode(core, record.ino, true),
                        }
                    }
                };
                let node = match node {
                    Ok(node) => node,
                    // Freed since the record was read.
                    Err(Errno::ESTALE) => continue,
                    Err(error) => return Err(error),
                };
                let verdict = show(&node);
                shown.push(node);
                if verdict? == Visit::Stop {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

impl FileSystem {
    /// Scans for several threads that together visit all inodes, about equally many each. Fewer
    /// than `parts` where there are few inodes.
    ///
    /// # Errors
    /// The store's; `EIO` when revoked.
    pub fn bulkstats(&self, parts: usize) -> Result<Vec<Bulkstat>> {
        self.core.alive()?;
        let walk = self.core.store.walk();
        let cuts = walk.map_or_else(|| Ok(Vec::new()), |walk| walk.split(parts))?;
        let begins = [Ino(0)].into_iter().chain(cuts.iter().copied());
        let lasts = cuts.iter().copied().chain([Ino(u64::MAX)]);
        let scans = begins
            .zip(lasts)
            .map(|(after, upto)| Bulkstat::between(after, upto));
        Ok(scans.collect())
    }

    /// As [`FileSystem::bulkstat`], for a visitor that needs only attributes: no inode is loaded,
    /// so it is much faster over a store. An inode that is freed or changed meanwhile may be
    /// visited with its old attributes.
    ///
    /// # Errors
    /// Those of `bulkstat`.
    pub fn bulkstat_attributes(
        &self,
        scan: &mut Bulkstat,
        mut visit: impl FnMut(&Attr) -> Result<Visit>,
    ) -> Result<()> {
        let core = &self.core;
        if core.pinned {
            return self.bulkstat(scan, |_, attr| visit(attr));
        }
        core.alive()?;
        let walk = core.store.walk().ok_or(Errno::EOPNOTSUPP)?;
        let mut run = Vec::with_capacity(STREAM);
        while !scan.done {
            run.clear();
            walk.walk(scan.after, scan.batch, &mut run)?;
            scan.done = run.is_empty();
            for record in &run {
                if record.ino <= scan.after {
                    return Err(Errno::EUCLEAN);
                }
                if record.ino > scan.upto {
                    scan.done = true;
                    return Ok(());
                }
                scan.after = record.ino;
                if visit(&newest(core, record))? == Visit::Stop {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// The attributes of the inode in memory, which may be newer than the store's, or the record's.
fn newest(core: &Core, record: &InodeRecord) -> Attr {
    let guard = epoch::pin();
    match core.index.peek(record.ino.0, &guard) {
        Some(inode) => inode.stat(),
        None => attributes_of(record),
    }
}

/// The attributes that an inode loaded from this record has.
fn attributes_of(record: &InodeRecord) -> Attr {
    let pages = if record.kind == FileType::Regular {
        let space = record.space.pages(record.size);
        space.unwrap_or_else(|| record.size.div_ceil(PAGE_SIZE as u64))
    } else {
        0
    };
    Attr {
        ino: record.ino,
        kind: record.kind,
        perm: record.perm,
        nlink: record.nlink,
        uid: record.uid,
        gid: record.gid,
        rdev: record.rdev,
        size: record.size,
        blocks: pages * 8,
        atime: record.atime,
        mtime: record.mtime,
        ctime: record.ctime,
        btime: record.btime,
    }
}

/// [`FileSystem::bulkstat`] where all inodes are in memory.
fn bulkstat_memory(
    core: &Core,
    scan: &mut Bulkstat,
    show: &mut dyn FnMut(&Node) -> Result<Visit>,
) -> Result<()> {
    let mut walk = InodeWalk::after(scan.after);
    let (mut last, upto, mut over) = (scan.after, scan.upto, false);
    let walked = walk_inodes(core, &mut walk, &mut |node| {
        if node.ino() > upto {
            over = true;
            return Ok(Visit::Stop);
        }
        last = node.ino();
        show(node)
    });
    scan.after = last;
    scan.done = over || walk.is_done();
    walked
}
