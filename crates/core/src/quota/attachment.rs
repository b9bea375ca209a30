//! Which inodes are counted: the calls that the core makes for its inodes.
//!
//! The module's header has the protocol. Mark, owner and pages come from the core, which keeps
//! them; here is what to do with them.

use super::Quotas;
use super::ledger::Ledger;
use super::terms::{Amounts, Check, Owner};
use crate::types::Result;
use holdfast_sync::epoch::Guard;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// The bit of an inode that says that it is counted. The byte's other bits belong to others.
///
/// Relaxed: a mark is looked at in sections only. Those that set it and those that look are ordered
/// by the inode's locks, or by its publication; those of different accounts by the accounts'.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark<'i> {
    byte: &'i AtomicU8,
    bit: u8,
}

impl<'i> Mark<'i> {
    /// The mark that is this bit (a mask) of this byte.
    pub(crate) fn new(byte: &'i AtomicU8, bit: u8) -> Self {
        debug_assert!(bit.is_power_of_two(), "one bit is the mark");
        Self { byte, bit }
    }

    fn is_set(self) -> bool {
        self.byte.load(Relaxed) & self.bit != 0
    }

    fn set(self) {
        self.byte.fetch_or(self.bit, Relaxed);
    }

    /// The inode is not counted any more: for the walk of [`Quotas::switch_off`] only. It needs no
    /// lock, and the inode may be in any state.
    pub(crate) fn clear(self) {
        if self.is_set() {
            self.byte.fetch_and(!self.bit, Relaxed);
        }
    }
}

impl Quotas {
    /// Charges a new inode without pages, and marks it. The guard must be held until the inode is
    /// published; if it is not to be published after all, [`Quotas::detach`] it under the guard.
    ///
    /// # Errors
    /// `EDQUOT` if its user or group may have no more inodes.
    #[inline]
    pub(crate) fn enroll(
        &self,
        guard: &Guard,
        mark: Mark<'_>,
        owner: Owner,
        check: Check,
    ) -> Result<()> {
        let Some(ledger) = self.ledger.load(guard) else {
            return Ok(());
        };
        ledger.charge(owner, [0, 1], check, guard)?;
        mark.set();
        Ok(())
    }

    /// Charges an inode with its pages, if it is not attached yet: for the walk of
    /// [`Quotas::switch_on`]. Limits have no say in what is there already.
    ///
    /// The caller holds a use of the inode, its content lock and its attribute lock.
    pub(crate) fn attach(&self, mark: Mark<'_>, owner: Owner, pages: u64) {
        self.section(|ledger, guard| {
            if !mark.is_set() {
                let charged = ledger.charge(owner, [pages, 1], Check::Nothing, guard);
                debug_assert!(charged.is_ok(), "nothing was checked");
                mark.set();
            }
        });
    }

    /// Releases all of an inode that goes, and its mark. Its pages may be given back afterwards,
    /// which then releases nothing.
    ///
    /// The inode is still in the index, but dying for good (or was never published): nobody else
    /// uses it.
    pub(crate) fn detach(&self, mark: Mark<'_>, owner: Owner, pages: u64) {
        self.attached(mark, |ledger, guard| {
            ledger.release(owner, [pages, 1], guard);
            mark.clear();
        });
    }

    /// Charges the owner with more pages, if the inode is attached. The caller holds its content
    /// lock, and keeps it until the pages are there, or [`Quotas::shrink`] has given them back.
    ///
    /// # Errors
    /// `EDQUOT` if its user or group may have no more.
    #[inline]
    pub(crate) fn grow(
        &self,
        mark: Mark<'_>,
        pages: u64,
        check: Check,
        owner: impl FnOnce() -> Owner,
    ) -> Result<()> {
        self.attached(mark, |ledger, guard| {
            ledger.charge(owner(), pages_only(pages), check, guard)
        })
        .unwrap_or(Ok(()))
    }

    /// Releases pages of an inode, if it is attached. The caller holds its content lock.
    #[inline]
    pub(crate) fn shrink(&self, mark: Mark<'_>, pages: u64, owner: impl FnOnce() -> Owner) {
        self.attached(mark, |ledger, guard| {
            ledger.release(owner(), pages_only(pages), guard);
        });
    }

    /// Moves the charge for an inode, if it is attached, to the owner that it gets now.
    ///
    /// The caller holds its content lock and its attribute lock, and keeps both until the new
    /// owner is in place.
    ///
    /// # Errors
    /// `EDQUOT` if the new user or group may not have that much more.
    pub(crate) fn change_owner(
        &self,
        mark: Mark<'_>,
        from: Owner,
        to: Owner,
        pages: u64,
        check: Check,
    ) -> Result<()> {
        self.attached(mark, |ledger, guard| {
            ledger.transfer(from, to, [pages, 1], check, guard)
        })
        .unwrap_or(Ok(()))
    }

    /// Runs a section, if the inode is attached.
    #[inline]
    fn attached<R>(&self, mark: Mark<'_>, run: impl FnOnce(&Ledger, &Guard) -> R) -> Option<R> {
        self.section(|ledger, guard| mark.is_set().then(|| run(ledger, guard)))?
    }
}

fn pages_only(pages: u64) -> Amounts {
    [pages, 0]
}
