//! Which inodes are counted: the calls that the core makes for its inodes.
//!
//! The module's header defines the protocol. The core keeps mark, owner and pages of an inode.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use holdfast_sync::epoch::Guard;

use super::Quotas;
use super::accounts::Accounts;
use super::terms::{Check, Owner};
use crate::types::Result;

/// The bit of an inode that says that it is counted. The byte's other bits are not quotas'.
///
/// Relaxed: a mark is read only with the accounts locked. Reads and writes of it are ordered by
/// the inode's locks or its publication, and those under different accounts by the accounts' lock.
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

    /// Detaches the inode in the walk of [`Quotas::switch_off`]. It needs no lock, and the inode
    /// may be in any state.
    pub(crate) fn clear(self) {
        if self.is_set() {
            self.byte.fetch_and(!self.bit, Relaxed);
        }
    }
}

impl Quotas {
    /// Charges a new inode without pages, and marks it. The guard must be held until the inode is
    /// published. If publishing fails, the caller [detaches](Quotas::detach) it under the guard.
    ///
    /// # Errors
    /// `EDQUOT` if its user or group may have no more inodes.
    #[inline]
    pub(crate) fn enroll(
        &self,
        _guard: &Guard,
        mark: Mark<'_>,
        owner: Owner,
        check: Check,
    ) -> Result<()> {
        self.section(|accounts| {
            accounts.charge(owner, [0, 1], check)?;
            mark.set();
            Ok(())
        })
        .unwrap_or(Ok(()))
    }

    /// Charges an inode with its pages, if it is not attached yet, in the walk of
    /// [`Quotas::switch_on`]. Limits are not enforced for existing data.
    ///
    /// The caller holds a reference to the inode, its content lock and its attribute lock.
    pub(crate) fn attach(&self, mark: Mark<'_>, owner: Owner, pages: u64) {
        self.section(|accounts| {
            if !mark.is_set() {
                let charged = accounts.charge(owner, [pages, 1], Check::Nothing);
                debug_assert!(charged.is_ok(), "nothing was checked");
                mark.set();
            }
        });
    }

    /// Releases all charges of an inode that is freed, and its mark. Its pages may be freed
    /// afterwards, which releases nothing.
    ///
    /// The inode is still in the index, but freeing (or was never published): the caller has the
    /// only reference.
    pub(crate) fn detach(&self, mark: Mark<'_>, owner: Owner, pages: u64) {
        self.attached(mark, |accounts| {
            accounts.release(owner, [pages, 1]);
            mark.clear();
        });
    }

    /// Charges the owner with more pages, if the inode is attached. The caller holds its content
    /// lock until the pages are in place, or [`Quotas::shrink`] has released them.
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
        self.attached(mark, |accounts| accounts.charge(owner(), [pages, 0], check))
            .unwrap_or(Ok(()))
    }

    /// Releases pages of an inode, if it is attached. The caller holds its content lock.
    #[inline]
    pub(crate) fn shrink(&self, mark: Mark<'_>, pages: u64, owner: impl FnOnce() -> Owner) {
        self.attached(mark, |accounts| accounts.release(owner(), [pages, 0]));
    }

    /// Moves the charge for an inode, if it is attached, to its new owner.
    ///
    /// The caller holds its content lock and its attribute lock until the new owner is in place.
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
        self.attached(mark, |accounts| {
            accounts.transfer(from, to, [pages, 1], check)
        })
        .unwrap_or(Ok(()))
    }

    /// Runs a function on the accounts, if the inode is attached.
    #[inline]
    fn attached<R>(&self, mark: Mark<'_>, run: impl FnOnce(&mut Accounts) -> R) -> Option<R> {
        self.section(|accounts| mark.is_set().then(|| run(accounts)))?
    }
}
