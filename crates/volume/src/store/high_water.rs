//! The high-water mark of inode numbers: what may have been dealt when a crash came.
//!
//! A number that was shown (in a reply, as an NFS handle) must not be dealt to another file, though the crash may have
//! taken the inode that had it. So numbers are shown up to a *mark* only, which is durable before; after a crash they go on
//! above it. The first mark of a use lies in the superblock, the others come with the journal; closing writes how far
//! numbers were really dealt.
//!
//! A mark is a record of a commit's own: so it takes no room from what operations have reserved.
//!
//! *Invariants.* No batch that creates an inode above `durable` is made. `durable` and the marks that follow it in the journal
//! only grow. A superblock has a mark at least as high as any in the part of the journal that it gives up: a checkpoint
//! takes the commit's mark before it reads [`HighWater::latest`].
//!
//! *Locking.* `marks` is a leaf.

use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_core::store::Lsn;
use holdfast_sync::Padded;
use holdfast_types::Ino;
use parking_lot::Mutex;

/// A mark goes beyond the numbers in use by so many times what was dealt since the last one, at least.
const AHEAD_FACTOR: u64 = 4;
/// Numbers end below this.
pub(super) const NUMBERS_END: u64 = 1 << 62;

/// The marks of a volume in use.
#[derive(Debug)]
pub(super) struct HighWater {
    /// Up to here nobody has to look: half of what the durable mark allows, or all of it while a higher one is on its way.
    unseen: Padded<AtomicU64>,
    /// A mark goes beyond the numbers in use by this, at least.
    ahead: u64,
    /// Is a commit asked for before the numbers are used up? Not where none is made by itself.
    pub(super) early: bool,
    marks: Mutex<Marks>,
}

#[derive(Debug)]
struct Marks {
    /// The highest that no crash takes back.
    durable: Ino,
    /// A higher one that a commit journals, or did, and the stamp of its batch.
    next: Option<(Ino, Lsn)>,
    /// The highest number in use when the latest was made.
    dealt: Ino,
    /// A number for which the next commit is to bring a higher one.
    wanted: Option<Ino>,
}

/// What becomes of a number that is about to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Allowed,
    /// And a commit should come soon: it brings a higher mark.
    AllowedForNow,
    /// Only behind a commit.
    Not,
}

impl HighWater {
    /// The first mark of a use, behind the highest number that may be known, by at least so many `ahead`. `early`: ask for
    /// a commit before they are used up.
    pub(super) fn above(last: Ino, ahead: u64, early: bool) -> Self {
        let ahead = ahead.max(1);
        let marks = Marks {
            durable: mark(last, ahead),
            next: None,
            dealt: last,
            wanted: None,
        };
        Self {
            unseen: Padded(AtomicU64::new(marks.half())),
            ahead,
            early,
            marks: Mutex::new(marks),
        }
    }

    /// The highest mark, durable or on its way.
    pub(super) fn latest(&self) -> Ino {
        let marks = self.marks.lock();
        marks.next.map_or(marks.durable, |(upto, _)| upto)
    }

    /// The mark that a commit has to journal, if one is wanted. `max_ino_seen`: the highest number in use at its cut.
    pub(super) fn next_mark(&self, max_ino_seen: Ino, cut: Lsn) -> Option<Ino> {
        let mut marks = self.marks.lock();
        let max_ino_seen = max_ino_seen.max(marks.wanted.take()?);
        let since = max_ino_seen.0 - marks.dealt.0.min(max_ino_seen.0);
        let upto = mark(
            max_ino_seen,
            self.ahead.max(since.saturating_mul(AHEAD_FACTOR)),
        );
        marks.next = Some((upto, cut));
        marks.dealt = max_ino_seen;
        Some(upto)
    }

    /// Can this number be used without a look?
    #[inline]
    pub(super) fn allows(&self, ino: Ino) -> bool {
        // Relaxed: it only grows, and what it stands for was on the device before it was written.
        ino.0 <= self.unseen.load(Ordering::Relaxed)
    }

    /// Judges a number; the journal is durable so far.
    pub(super) fn judge(&self, ino: Ino, durable: Lsn) -> Verdict {
        let mut marks = self.marks.lock();
        if let Some((upto, lsn)) = marks.next
            && lsn <= durable
        {
            marks.durable = upto;
            marks.next = None;
            self.unseen.store(marks.half(), Ordering::Relaxed);
        }
        let mut verdict = Verdict::Allowed;
        if marks.next.is_none() && ino.0 > marks.half() && marks.durable.0 < NUMBERS_END - 1 {
            if marks.wanted.is_none() {
                verdict = Verdict::AllowedForNow;
            }
            marks.wanted = marks.wanted.max(Some(ino));
            self.unseen.store(marks.durable.0, Ordering::Relaxed);
        }
        match ino <= marks.durable {
            true => verdict,
            false => Verdict::Not,
        }
    }
}

impl Marks {
    fn half(&self) -> u64 {
        // `dealt` is that of the latest mark, which is the durable one where this is asked.
        self.dealt.0 + (self.durable.0.saturating_sub(self.dealt.0)) / 2
    }
}

fn mark(last: Ino, ahead: u64) -> Ino {
    Ino(last.0.saturating_add(ahead).min(NUMBERS_END - 1))
}

#[cfg(test)]
mod tests;
