//! The locks held on one inode.

use super::lock::{HeldLock, LockKind, LockOwner, LockRange, LockSpace};
use super::spans::Spans;
use holdfast_types::{Errno, Result};
use std::collections::BTreeMap;

/// The most locks on one inode: a limit, because one unlock can split a lock into two.
#[cfg(not(test))]
pub(super) const LOCKS_MAX: usize = 1 << 20;
#[cfg(test)]
pub(super) const LOCKS_MAX: usize = 1 << 10;

/// An owner within its family.
type Holder = (LockSpace, LockOwner);

#[derive(Clone, Copy, Debug)]
struct Flock {
    kind: LockKind,
    pid: u32,
}

/// All locks of one inode. The cost of a record lock is linear in the number of owners, and
/// logarithmic in the number of the owner's locks.
#[derive(Debug, Default)]
pub(super) struct LockTable {
    /// No entry is empty.
    records: BTreeMap<Holder, Spans>,
    /// Sum of the lengths in `records`.
    record_count: usize,
    flocks: BTreeMap<LockOwner, Flock>,
}

impl LockTable {
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Locks held, of all families.
    pub(super) fn len(&self) -> usize {
        self.record_count + self.flocks.len()
    }

    /// Has this owner any lock that `space` can see?
    pub(super) fn holds(&self, space: LockSpace, owner: LockOwner) -> bool {
        match space {
            LockSpace::Flock => self.flocks.contains_key(&owner),
            _ => self.records.contains_key(&(space, owner)),
        }
    }

    /// The flock(2) lock of this owner.
    pub(super) fn flock_of(&self, owner: LockOwner) -> Option<LockKind> {
        self.flocks.get(&owner).map(|flock| flock.kind)
    }

    /// For each owner with a conflicting lock, the first one.
    fn conflicts(&self, lock: &HeldLock) -> impl Iterator<Item = HeldLock> {
        let flocks = self
            .flocks
            .iter()
            .filter(|_| lock.space == LockSpace::Flock)
            .map(|(&owner, &Flock { kind, pid })| HeldLock {
                kind,
                range: LockRange::WHOLE,
                pid,
                space: LockSpace::Flock,
                owner,
            });
        let records = self
            .records
            .iter()
            .filter(|(holder, _)| {
                lock.space != LockSpace::Flock && **holder != (lock.space, lock.owner)
            })
            .filter_map(|(&(space, owner), spans)| {
                spans.overlapping(lock.range).find_map(|(start, span)| {
                    let range = LockRange {
                        start,
                        end: span.end,
                    };
                    let held = HeldLock {
                        kind: span.kind,
                        range,
                        pid: span.pid,
                        space,
                        owner,
                    };
                    lock.conflicts(&held).then_some(held)
                })
            });
        let lock = *lock;
        flocks
            .filter(move |held| lock.conflicts(held))
            .chain(records)
    }

    /// The conflicting lock that starts first.
    pub(super) fn conflict(&self, lock: &HeldLock) -> Option<HeldLock> {
        self.conflicts(lock).min_by_key(|held| held.range.start)
    }

    /// Can `lock` be granted?
    pub(super) fn is_free(&self, lock: &HeldLock) -> bool {
        self.conflicts(lock).next().is_none()
    }

    /// The owners of conflicting POSIX locks, ascending.
    pub(super) fn posix_blockers(&self, lock: &HeldLock) -> Vec<LockOwner> {
        self.conflicts(lock)
            .filter(|held| held.space == LockSpace::Posix)
            .map(|held| held.owner)
            .collect()
    }

    /// Would the table stay within its limit after this change?
    ///
    /// # Errors
    /// `ENOLCK` if not.
    pub(super) fn check_room(
        &self,
        holder: Holder,
        range: LockRange,
        kind: Option<LockKind>,
    ) -> Result<()> {
        let added_spans = match self.records.get(&holder) {
            Some(spans) => spans.added_spans(range, kind),
            None => usize::from(kind.is_some()),
        };
        // A release is refused only if it would split a lock.
        if added_spans > 0 && self.len() + added_spans > LOCKS_MAX {
            Err(Errno::ENOLCK)
        } else {
            Ok(())
        }
    }

    /// Adds `lock`; the caller has checked that it is free and that there is room.
    pub(super) fn grant(&mut self, lock: &HeldLock) {
        debug_assert!(self.is_free(lock), "granted over the lock of another");
        match lock.space {
            LockSpace::Flock => {
                let flock = Flock {
                    kind: lock.kind,
                    pid: lock.pid,
                };
                self.flocks.insert(lock.owner, flock);
            }
            space => self.set_records((space, lock.owner), lock.range, Some(lock.kind), lock.pid),
        }
    }

    /// Releases the owner's locks in `range` (all of it for flock). False if there are none.
    pub(super) fn release(&mut self, space: LockSpace, owner: LockOwner, range: LockRange) -> bool {
        if space == LockSpace::Flock {
            return self.flocks.remove(&owner).is_some();
        }
        let holder = (space, owner);
        let held = self
            .records
            .get(&holder)
            .is_some_and(|spans| spans.overlapping(range).next().is_some());
        if held {
            self.set_records(holder, range, None, 0);
        }
        held
    }

    fn set_records(&mut self, holder: Holder, range: LockRange, kind: Option<LockKind>, pid: u32) {
        let spans = self.records.entry(holder).or_default();
        let before = spans.len();
        spans.set(range, kind, pid);
        self.record_count = self.record_count - before + spans.len();
        if spans.is_empty() {
            self.records.remove(&holder);
        }
    }
}
