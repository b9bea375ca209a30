//! The inodes, in the order of numbers.
//!
//! 72 bytes for each inode: 720 MB for ten million.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use holdfast_core::store::{InodeRecord, StoredSpace};
use holdfast_types::{FileFlags, FileType, Ino};

use super::context::{Context, Records};
use super::finding::{Branch, Finding};
use crate::tree::{Inode, Inodes};

/// It has inline bytes.
pub(super) const INLINE: u8 = 1;
/// It has extents.
pub(super) const BLOCKS: u8 = 2;
/// Its parent has a name of it.
pub(super) const AT_PARENT: u8 = 4;
/// A path leads from the root to it.
pub(super) const REACHED: u8 = 8;
/// It is on the path being followed.
pub(super) const ON_THE_WAY: u8 = 16;
/// It is in the orphan tree.
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

// All relaxed: counts and marks are read after the threads that set them were joined.
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

    /// Counts a name of it.
    pub(super) fn name(&self) {
        self.names.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a subdirectory in it.
    pub(super) fn directory(&self) {
        self.directories.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts blocks of it.
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

    /// Sets a mark; returns the previous marks.
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

/// All inodes, by number.
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

impl Records<Inodes> for Taker<'_> {
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

/// The file flags of a record that its inode may have.
pub(crate) fn file_flags(record: &InodeRecord) -> FileFlags {
    (record.flags & FileFlags::all()).of_kind(record.kind)
}

/// Reads the inode tree.
pub(super) fn census(context: &Context<'_>) -> Census {
    let taker = || Taker {
        context,
        known: Vec::new(),
    };
    let parts = context.check::<Inodes, _>(Branch::Inodes, taker);
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

impl Records<Inodes> for Orphans<'_> {
    fn record(&mut self, ino: Ino, _value: Inode) {
        match self.census.get(ino) {
            Some(known) if known.nlink == 0 => {
                known.mark(ORPHAN);
            }
            _ => self.context.sink.put(Finding::NoOrphan { ino }),
        }
    }
}

/// Reads the tree of orphans.
pub(super) fn orphans(context: &Context<'_>, census: &Census) {
    context.check::<Inodes, _>(Branch::Orphans, || Orphans { context, census });
}
