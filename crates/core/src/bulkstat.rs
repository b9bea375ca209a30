//! Attributes of all inodes, in the order of their numbers.
//!
//! A scanner that meets every inode once must not fill the memory with them, nor push out what
//! others use. So what it alone brings in is let go with its last use, soon (XFS's
//! `DONTCACHE`); what was in memory before, or is asked for by others meanwhile, stays.

use holdfast_cache::PAGE_SIZE;
use holdfast_sync::epoch;

use crate::FileSystem;
use crate::evictions::Evictions;
use crate::file_system::Core;
use crate::inode::Numbered as _;
use crate::inodes::{InodeWalk, Visit};
use crate::node::Node;
use crate::store::InodeRecord;
use crate::types::{Attr, Errno, FileType, Ino, Result};

/// Records asked of the store at once.
const BATCH: usize = 256;
/// The same where nothing is done with them but to show them.
const STREAM: usize = 1024;

/// A scan of all inodes, or what is left of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bulkstat {
    after: Ino,
    /// The last number that is shown.
    upto: Ino,
    /// Records asked of the store at once, at most.
    batch: usize,
    done: bool,
}

impl Bulkstat {
    /// Of all inodes.
    #[must_use]
    pub fn new() -> Self {
        Self::between(Ino(0), Ino(u64::MAX))
    }

    /// Of those with numbers above `after`, up to `upto`.
    #[must_use]
    pub fn between(after: Ino, upto: Ino) -> Self {
        Self {
            after,
            upto,
            batch: STREAM,
            done: after >= upto,
        }
    }

    /// Asks the store for no more than so many at once: for a visitor who stops after as many.
    #[must_use]
    pub fn with_batch(mut self, batch: usize) -> Self {
        self.batch = batch.clamp(1, STREAM);
        self
    }

    /// The numbers that are still to come: those above the first, up to the second.
    #[must_use]
    pub fn rest(&self) -> (Ino, Ino) {
        (self.after, self.upto)
    }

    /// Has it come to its end?
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
    /// Shows every inode of the file system, in memory or not, with its attributes, in the order
    /// of numbers, until the visitor wants no more, fails, or the scan is done; it goes on from
    /// there the next time. Inodes that are not in memory are let go after the visit of a batch.
    ///
    /// # Errors
    /// The visitor's; what the store answers; `EOPNOTSUPP` over a store that does not
    /// [walk](crate::Store::walk); `EIO` when revoked.
    pub fn bulkstat(
        &self,
        scan: &mut Bulkstat,
        mut visit: impl FnMut(&Node, &Attr) -> Result<Visit>,
    ) -> Result<()> {
        let core = &self.core;
        core.alive()?;
        let mut show = |node: &Node| visit(node, &self.attributes(node)?);
        if core.pinned {
            return core.bulkstat_memory(scan, &mut show);
        }
        let walk = core.store.walk().ok_or(Errno::EOPNOTSUPP)?;
        let mut run = Vec::with_capacity(BATCH);
        let mut shown: Vec<Node> = Vec::with_capacity(BATCH);
        while !scan.done {
            run.clear();
            // All at once: the end of an inode makes records of its neighbours that were read before
            // it out of date, which would then be read one by one.
            shown.drain(..).for_each(|node| core.put(node));
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
                        match core.take_in(record, Evictions::of(&evictions, record.ino), true)? {
                            Some(node) => Ok(node),
                            None => core.load(record.ino, true),
                        }
                    }
                };
                let node = match node {
                    Ok(node) => node,
                    // Freed since the store was asked.
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
    /// Scans that show all inodes together, about equally many each: for several threads. Fewer
    /// than asked for where there are few inodes.
    ///
    /// # Errors
    /// What the store answers; `EIO` when revoked.
    pub fn bulkstats(&self, parts: usize) -> Result<Vec<Bulkstat>> {
        self.core.alive()?;
        let walk = self.core.store.walk();
        let cuts = walk.map_or_else(|| Ok(Vec::new()), |walk| walk.split(parts))?;
        let begins = [Ino(0)].into_iter().chain(cuts.iter().copied());
        let evictions = cuts.iter().copied().chain([Ino(u64::MAX)]);
        let scans = begins
            .zip(evictions)
            .map(|(after, upto)| Bulkstat::between(after, upto));
        Ok(scans.collect())
    }

    /// As [`FileSystem::bulkstat`], for a visitor who needs only attributes: nothing is brought into
    /// memory, so it is much faster over a store. An inode that goes or changes meanwhile may be shown
    /// as it was before.
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
                if visit(&core.newest(record))? == Visit::Stop {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

impl Core {
    /// An inode's attributes: those in memory, which may be ahead of the store's, or the record's.
    fn newest(&self, record: &InodeRecord) -> Attr {
        let guard = epoch::pin();
        match self.index.peek(record.ino.0, &guard) {
            Some(inode) => inode.told(),
            None => attributes_of(record),
        }
    }
}

/// What a record says, as the inode would once it is loaded.
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

impl Core {
    /// Memory is all there is.
    fn bulkstat_memory(
        &self,
        scan: &mut Bulkstat,
        show: &mut dyn FnMut(&Node) -> Result<Visit>,
    ) -> Result<()> {
        let mut walk = InodeWalk::after(scan.after);
        let (mut last, upto, mut over) = (scan.after, scan.upto, false);
        let walked = self.walk_inodes(&mut walk, &mut |node| {
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
}
