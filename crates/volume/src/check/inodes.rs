//! What is known of each inode, in the order of numbers.
//!
//! 72 bytes for each inode: for ten million of them, 720 MB less what alignment saves.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use holdfast_core::store::{InodeRecord, StoredSpace};
use holdfast_types::{FileFlags, FileType, Ino};

use super::Context;
use super::finding::{Branch, Finding};
use super::nodes::tell;
use crate::tree::{self, Inode, Inodes, Inspect, Pointer};

/// It has bytes in the tree.
pub(super) const INLINE: u8 = 1;
/// It has blocks.
pub(super) const BLOCKS: u8 = 2;
/// Its parent has a name of it.
pub(super) const AT_PARENT: u8 = 4;
/// A path leads from the root to it.
pub(super) const REACHED: u8 = 8;
/// It is on the way that is being looked at.
pub(super) const ON_THE_WAY: u8 = 16;
/// It is among the orphans.
pub(super) const ORPHAN: u8 = 32;

/// An inode.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) ino: Ino,
    pub(super) parent: Ino,
    pub(super) size: u64,
    pub(super) space: StoredSpace,
    pub(super) nlink: u32,
    pub(super) kind: FileType,
    /// May it have extended attributes?
    pub(super) xattrs: bool,
    names: AtomicU32,
    directories: AtomicU32,
    blocks: AtomicU64,
    marks: AtomicU8,
}

// All relaxed: counts and marks are looked at when those who made them have been joined.
impl Known {
    fn new(ino: Ino, inode: &Inode) -> Self {
        let record = &inode.record;
        Self {
            ino,
            parent: record.parent,
            size: record.size,
            space: record.space,
            nlink: record.nlink,
            kind: record.kind,
            xattrs: record.xattrs,
            names: AtomicU32::new(0),
            directories: AtomicU32::new(0),
            blocks: AtomicU64::new(0),
            marks: AtomicU8::new(0),
        }
    }

    /// A name leads to it.
    pub(super) fn name(&self) {
        self.names.fetch_add(1, Ordering::Relaxed);
    }

    /// A directory has its name in it.
    pub(super) fn directory(&self) {
        self.directories.fetch_add(1, Ordering::Relaxed);
    }

    /// It takes so many blocks more.
    pub(super) fn takes(&self, blocks: u64) {
        self.blocks.fetch_add(blocks, Ordering::Relaxed);
    }

    pub(super) fn blocks(&self) -> u64 {
        self.blocks.load(Ordering::Relaxed)
    }

    pub(super) fn names(&self) -> u32 {
        self.names.load(Ordering::Relaxed)
    }

    pub(super) fn directories(&self) -> u32 {
        self.directories.load(Ordering::Relaxed)
    }

    /// Sets a mark; says which were set.
    pub(super) fn mark(&self, mark: u8) -> u8 {
        self.marks.fetch_or(mark, Ordering::Relaxed)
    }

    pub(super) fn unmark(&self, mark: u8) {
        self.marks.fetch_and(!mark, Ordering::Relaxed);
    }

    pub(super) fn has(&self, mark: u8) -> bool {
        self.marks.load(Ordering::Relaxed) & mark != 0
    }
}

/// All inodes, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Census {
    known: Vec<Known>,
}

impl Census {
    pub(super) fn get(&self, ino: Ino) -> Option<&Known> {
        let at = self.known.binary_search_by_key(&ino, |known| known.ino);
        at.ok().map(|at| &self.known[at])
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Known> {
        self.known.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }
}

struct Taker<'c> {
    context: &'c Context<'c>,
    known: Vec<Known>,
}

impl Inspect<Inodes> for Taker<'_> {
    fn finding(&mut self, finding: tree::Finding) {
        tell(self.context.sink, Branch::Inodes, finding);
    }

    fn node(&mut self, node: Pointer, _level: u8) {
        self.context.node(Branch::Inodes, node);
    }

    fn record(&mut self, key: Ino, value: Inode) {
        self.context.meter.step();
        let record = &value.record;
        if file_flags(record) != record.flags {
            self.context.sink.put(Finding::FileFlags {
                ino: key,
                flags: record.flags.bits(),
                project: record.project,
            });
        }
        self.known.push(Known::new(key, &value));
    }
}

/// The file flags that an inode may have of those that its record has.
pub(crate) fn file_flags(record: &InodeRecord) -> FileFlags {
    (record.flags & FileFlags::all()).of_kind(record.kind)
}

/// Reads the inode tree.
pub(super) fn census(context: &Context<'_>) -> Census {
    let tree = context.tree::<Inodes>(Branch::Inodes);
    let taker = || Taker {
        context,
        known: Vec::new(),
    };
    let parts = tree.check(context.superblock.generation, context.jobs, taker);
    let mut known: Vec<Known> = Vec::new();
    known.reserve_exact(parts.iter().map(|part| part.known.len()).sum());
    for part in parts {
        known.extend(part.known);
    }
    let last = context.superblock.last_ino;
    if let Some(known) = known.last()
        && known.ino.0 > last
    {
        let ino = known.ino;
        context.sink.put(Finding::InodeNumber { ino, last });
    }
    let (expected, found) = (context.superblock.inodes, known.len() as u64);
    if expected != found {
        let count = Finding::InodeCount { expected, found };
        context.sink.put(count);
    }
    Census { known }
}

struct Orphans<'c> {
    context: &'c Context<'c>,
    census: &'c Census,
}

impl Inspect<Inodes> for Orphans<'_> {
    fn finding(&mut self, finding: tree::Finding) {
        tell(self.context.sink, Branch::Orphans, finding);
    }

    fn node(&mut self, node: Pointer, _level: u8) {
        self.context.node(Branch::Orphans, node);
    }

    fn record(&mut self, ino: Ino, _value: Inode) {
        match self.census.get(ino) {
            Some(known) if known.nlink == 0 => {
                known.mark(ORPHAN);
            }
            _ => self.context.sink.put(Finding::NoOrphan { ino }),
        }
    }
}

/// Reads the tree of inodes without names.
pub(super) fn orphans(context: &Context<'_>, census: &Census) {
    let tree = context.tree::<Inodes>(Branch::Orphans);
    tree.check(context.superblock.generation, context.jobs, || Orphans {
        context,
        census,
    });
}
