//! Quotas: the pages and inodes of each user and group, and their limits.
//!
//! [`Quotas`] counts and checks; [`Mark`], one bit in each inode, says whether the inode is
//! counted. Nothing is counted while quotas are off. No list of inodes is kept: switching on and
//! off walks the core's index.
//!
//! # Switching while operations run
//!
//! The *accounts* exist from one switching on to the next switching off. An inode is *attached*
//! while its mark is set: its owner is charged with one inode and its pages. Every call locks the
//! accounts, returns if there are none, checks the mark, and charges or releases.
//!
//! | caller | call | holding |
//! |---|---|---|
//! | a creator, before it publishes the inode | [`Quotas::enroll`] | a guard, until published |
//! | a writer that takes or frees pages | [`Quotas::grow`], [`Quotas::shrink`] | content lock |
//! | chown | [`Quotas::change_owner`] | content lock, attribute lock |
//! | eviction of a freeing inode, before it leaves the index | [`Quotas::detach`] | reference |
//! | switching on, for each live inode | [`Quotas::attach`] | content lock, attribute lock |
//! | switching off, for each inode, freeing ones too | [`Mark::clear`] | nothing |
//!
//! The *content lock* is the lock under which the inode's pages change. While it is held, mark and
//! pages do not change, and neither does the owner of an attached inode: a writer needs no
//! attribute lock to find the accounts.
//!
//! *On.* (1) Publish new accounts. (2) Wait until all guards of that moment are dropped. (3) Walk.
//! A creator that saw no accounts held a guard before (1), so (2) waited for it, and the walk
//! visits its inode. A creator that saw them has set the mark, and the walk skips the inode. Pages
//! that change before the walk visits an inode are in its charge; later changes are charged by the
//! writer. A concurrent change holds the content lock, for which the walk waits. A freeing inode is
//! not attached, and its eviction releases nothing.
//!
//! *Off.* (1) Remove the accounts. (2) Wait until all guards of that moment are dropped. (3) Walk,
//! clearing marks. No call checks marks now, so the walk needs no locks. (4) Only now can quotas be
//! switched on again. The walk must visit every marked inode. So a creator publishes under the
//! guard, and an eviction detaches before it removes the inode from the index.
//!
//! An operation may begin under one set of accounts and end under another, or none. The old
//! accounts are gone with its charges, and the new ones count the inode only after the walk got the
//! locks that the operation holds.
//!
//! *Invariants.* With quotas on and no operation running, each account's usage is the sum over all
//! inodes of that user or group. A checked charge never exceeds a hard limit.
//!
//! *Locking.* `switching` comes before everything: it is taken with no lock and no guard held, and
//! is held during the walks. `accounts` is a leaf.
//!
//! *Left to others.* Which callers may exceed limits ([`Check`]). Inodes that are not in memory:
//! they are not counted, so quotas need a store that pins everything.

mod accounts;
mod attachment;
mod balance;
mod terms;

#[cfg(test)]
mod tests;

pub(crate) use attachment::Mark;
pub(crate) use terms::{Check, Owner};
pub use terms::{QuotaGrace, QuotaKind, QuotaLimit, QuotaLimits, QuotaRecord, QuotaUsage};

use std::sync::atomic::{AtomicBool, Ordering, fence};

use holdfast_sync::{Padded, epoch};
use parking_lot::Mutex;

use crate::clock;
use crate::types::{Errno, Result, Time};
use accounts::Accounts;

/// The quotas of one file system; off at first.
#[derive(Debug)]
pub(crate) struct Quotas {
    /// Are there accounts? Every operation reads it, so it has a cache line of its own.
    is_on: Padded<AtomicBool>,
    accounts: Mutex<Option<Accounts>>,
    /// Held while quotas are switched on or off.
    switching: Mutex<()>,
    clock: fn() -> Time,
}

impl Quotas {
    /// Quotas that are off.
    pub(crate) fn new() -> Self {
        Self::with_clock(clock::now)
    }

    fn with_clock(clock: fn() -> Time) -> Self {
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

    /// Switches off, if they are on, and drops usage and limits. `walk` calls [`Mark::clear`] for
    /// every inode, whatever its state.
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
    fn section<R>(&self, run: impl FnOnce(&mut Accounts) -> R) -> Option<R> {
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
