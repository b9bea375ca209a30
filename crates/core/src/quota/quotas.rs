//! The quotas of one file system.

use std::sync::atomic::{AtomicBool, Ordering, fence};

use holdfast_sync::{Padded, epoch};
use parking_lot::Mutex;

use super::accounts::Accounts;
use crate::types::{Errno, Result, Time};
use crate::{QuotaGrace, QuotaKind, QuotaLimits, QuotaRecord, QuotaUsage, clock};

/// The quotas of one file system; off at first.
#[derive(Debug)]
pub(crate) struct Quotas {
    /// Are there accounts? Every operation reads it, so it has a cache line of its own.
    is_on: Padded<AtomicBool>,
    accounts: Mutex<Option<Accounts>>,
    /// Held while quotas are switched on or off.
    pub(super) switching: Mutex<()>,
    clock: fn() -> Time,
}

impl Quotas {
    /// Quotas that are off.
    pub(crate) fn new() -> Self {
        Self::with_clock(clock::now)
    }

    pub(super) fn with_clock(clock: fn() -> Time) -> Self {
        Self {
            is_on: Padded::default(),
            accounts: Mutex::new(None),
            switching: Mutex::new(()),
            clock,
        }
    }

    /// Are quotas on? A hint, unless the caller holds `accounts`, or an older guard.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.0.load(Ordering::Relaxed)
    }

    /// Switches on: counts everything, and with `enforce` refuses charges beyond limits. There
    /// are no limits at first. `walk` calls [`Quotas::attach`] for every inode.
    ///
    /// The caller holds no lock and no guard. `allowed` is called under `switching`: a thread that
    /// makes it fail, and then switches off, leaves quotas off.
    ///
    /// # Errors
    /// `EBUSY` if quotas are on; those of `allowed`.
    pub(crate) fn switch_on(
        &self,
        enforce: bool,
        allowed: impl FnOnce() -> Result<()>,
        walk: impl FnOnce(),
    ) -> Result<()> {
        let _switching = self.switching.lock();
        allowed()?;
        if self.is_on() {
            return Err(Errno::EBUSY);
        }
        self.publish(Some(Accounts::new(enforce, self.clock)));
        walk();
        Ok(())
    }

    /// Switches off, if they are on, and drops usage and limits. `walk` calls
    /// [`clear`](super::Mark::clear) for every inode, whatever its state.
    ///
    /// The caller holds no lock and no guard.
    pub(crate) fn switch_off(&self, walk: impl FnOnce()) {
        let _switching = self.switching.lock();
        if self.is_on() {
            self.publish(None);
            walk();
        }
    }

    /// Replaces the accounts, and waits until no thread relies on the former state.
    fn publish(&self, accounts: Option<Accounts>) {
        {
            let mut old = self.accounts.lock();
            self.is_on.0.store(accounts.is_some(), Ordering::Relaxed);
            *old = accounts;
        }
        // Pairs with the fence of a pin: a guard that is not waited for sees the new state.
        fence(Ordering::SeqCst);
        epoch::synchronize();
    }

    /// Runs a function on the accounts, if quotas are on.
    #[inline]
    pub(super) fn section<R>(&self, run: impl FnOnce(&mut Accounts) -> R) -> Option<R> {
        // A stale value is as right as a section before the change: where it matters, a lock or a
        // guard that the caller holds excludes it.
        if !self.is_on() {
            return None;
        }
        self.accounts.lock().as_mut().map(run)
    }

    /// Sets the limits of one user or group. They apply to later charges.
    ///
    /// # Errors
    /// `ESRCH` if quotas are off.
    pub(crate) fn set_limits(&self, kind: QuotaKind, id: u32, limits: &QuotaLimits) -> Result<()> {
        self.section(|accounts| accounts.set_limits(kind, id, limits))
            .ok_or(Errno::ESRCH)
    }

    /// Sets the grace period of soft limits, for periods that begin later.
    ///
    /// # Errors
    /// `ESRCH` if quotas are off.
    pub(crate) fn set_grace(&self, kind: QuotaKind, grace: QuotaGrace) -> Result<()> {
        self.section(|accounts| accounts.set_grace(kind, grace))
            .ok_or(Errno::ESRCH)
    }

    /// The usage of one user or group: 0 if quotas are off.
    pub(crate) fn usage(&self, kind: QuotaKind, id: u32) -> QuotaUsage {
        self.section(|accounts| accounts.usage(kind, id))
            .unwrap_or_default()
    }

    /// All users and groups with usage or limits: users, then groups, each by number.
    pub(crate) fn report(&self) -> Vec<QuotaRecord> {
        self.section(|accounts| accounts.report())
            .unwrap_or_default()
    }
}
