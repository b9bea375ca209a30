//! The high-water mark of inode numbers: what may have been allocated before a crash.
//!
//! A number that was visible (in a reply, in an NFS handle) must not be given to another file, even
//! if a crash lost its inode. So numbers are allocated up to a *mark* only, which is made durable
//! first; after a crash allocation continues above it. The first mark of a use is in the
//! superblock, later ones are in the journal. A clean close writes the highest number in use
//! instead.
//!
//! A mark is a record of the commit itself, so it uses no reservation of an operation.
//!
//! *Invariants.* No batch creates an inode above `durable`. `durable` and the journal's later marks
//! only grow. A superblock has a mark at least as high as any in the part of the journal that it
//! releases: a checkpoint takes the commit's mark before it reads [`HighWater::latest`].
//!
//! *Locking.* `marks` is a leaf.

use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_core::store::Lsn;
use holdfast_sync::Padded;
use holdfast_types::Ino;
use parking_lot::Mutex;

/// The next mark exceeds the numbers in use by at least so many times the numbers allocated since
/// the last one.
const DISTANCE_FACTOR: u64 = 4;
/// Exclusive upper bound of inode numbers.
pub(super) const NUMBERS_END: u64 = 1 << 62;

#[derive(Debug)]
pub(super) struct HighWater {
    /// The highest durable mark.
    durable: Padded<AtomicU64>,
    /// The least distance of a mark from the numbers in use.
    distance: u64,
    marks: Mutex<Marks>,
}

#[derive(Debug)]
struct Marks {
    /// A higher one in the journal, and the LSN of its batch.
    next: Option<(Ino, Lsn)>,
    /// The highest number in use when the latest mark was made.
    dealt: Ino,
    /// A number beyond the durable mark, for which the next commit must bring a mark.
    wanted: Option<Ino>,
}

impl HighWater {
    /// The first mark of a use, at least `distance` above `last`, the highest number that may be
    /// known.
    pub(super) fn above(last: Ino, distance: u64) -> Self {
        let distance = distance.max(1);
        Self {
            durable: Padded(AtomicU64::new(mark(last, distance).0)),
            distance,
            marks: Mutex::new(Marks {
                next: None,
                dealt: last,
                wanted: None,
            }),
        }
    }

    /// The highest mark, durable or journalled.
    pub(super) fn latest(&self) -> Ino {
        let next = self.marks.lock().next;
        next.map_or_else(
            || Ino(self.durable.load(Ordering::Relaxed)),
            |(upto, _)| upto,
        )
    }

    /// The mark that this commit must journal: if the numbers in use have passed half of the
    /// distance to the latest mark, or one is wanted. `max_ino`: the highest number in use at its
    /// commit point `cut`.
    pub(super) fn next_mark(&self, max_ino: Ino, cut: Lsn) -> Option<Ino> {
        let mut marks = self.marks.lock();
        let max_ino = max_ino.max(marks.wanted.take().unwrap_or(max_ino));
        let durable = self.durable.load(Ordering::Relaxed);
        let half = marks.dealt.0 + durable.saturating_sub(marks.dealt.0) / 2;
        if marks.next.is_some() || max_ino.0 <= half {
            return None;
        }
        let since = max_ino.0 - marks.dealt.0;
        let upto = mark(
            max_ino,
            self.distance.max(since.saturating_mul(DISTANCE_FACTOR)),
        );
        if upto.0 <= durable {
            return None;
        }
        marks.next = Some((upto, cut));
        marks.dealt = max_ino;
        Some(upto)
    }

    /// Is this number below the durable mark?
    #[inline]
    pub(super) fn allows(&self, ino: Ino) -> bool {
        // Relaxed: it only grows, and the mark was durable before it was stored.
        ino.0 <= self.durable.load(Ordering::Relaxed)
    }

    /// Is this number allowed, given that the journal is durable up to `durable`? If not, the next
    /// commit brings a mark above it.
    pub(super) fn judge(&self, ino: Ino, durable: Lsn) -> bool {
        let mut marks = self.marks.lock();
        if let Some((upto, lsn)) = marks.next
            && lsn <= durable
        {
            marks.next = None;
            self.durable.store(upto.0, Ordering::Relaxed);
        }
        let is_allowed = self.allows(ino);
        if !is_allowed && marks.next.is_none() {
            marks.wanted = marks.wanted.max(Some(ino));
        }
        is_allowed
    }
}

fn mark(last: Ino, distance: u64) -> Ino {
    Ino(last.0.saturating_add(distance).min(NUMBERS_END - 1))
}

#[cfg(test)]
mod tests;
