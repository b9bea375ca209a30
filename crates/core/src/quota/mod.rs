//! Quotas: what each user and group has, in pages and inodes, and how much it may have.
//!
//! [`Quotas`] counts and judges; [`Mark`], one bit in each inode, says whether the inode is
//! counted. Nothing is counted while quotas are off, and no list of inodes is kept: switching on
//! and off walks those that the core's index has.
//!
//! # Switching while operations run
//!
//! The *accounts* are one object, published by switching on and taken away by switching off. An
//! inode is *attached* when its mark is set: then its owner is charged with one inode and its
//! pages. Everything that charges is a *section*: it pins the epoch, looks whether there are
//! accounts, looks at the mark, charges, and unpins. What the core does, and when:
//!
//! | who | call | holding |
//! |---|---|---|
//! | a creator, before it publishes the inode | [`Quotas::enroll`] | the guard, until published |
//! | whoever takes or gives pages | [`Quotas::grow`], [`Quotas::shrink`] | content lock |
//! | chown | [`Quotas::change_owner`] | content lock, attribute lock |
//! | eviction of a dying inode, before it leaves the index | [`Quotas::detach`] | nobody else uses it |
//! | switching on, at each inode of the *safe* iterator | [`Quotas::attach`] | content lock, attribute lock |
//! | switching off, at each inode that *exists*, dying ones too | [`Mark::clear`] | nothing |
//!
//! The *content lock* is the one under which the inode's pages change; what has no pages has none.
//! So with the content lock held, mark and pages stand still, and so does the owner of an
//! attached inode: a writer needs no attribute lock to know whom to charge.
//!
//! *On.* (1) Publish new accounts. (2) Wait until all pins of that moment have ended. (3) Walk. A
//! creator that saw no accounts had pinned before (1) was visible, so (2) waited for it, and the
//! walk meets its inode; one that saw them has set the mark, and the walk passes by. Pages that
//! change before the walk comes are in what the walk charges; pages that change after it are
//! charged by whoever changes them; a change halfway has the content lock, for which the walk
//! waits. A dying inode is not attached, and its eviction releases nothing.
//!
//! *Off.* (1) Take the accounts away. (2) Wait until all pins of that moment have ended: no section
//! is left that saw them. (3) Walk, clearing marks; nobody looks at marks now, so it needs no
//! locks and may meet inodes in any state. (4) Only now can quotas be switched on again. A mark
//! outlives this on an inode that the walk does not meet: that is why a creator publishes under
//! the guard, and why an eviction detaches before it takes the inode out of the index.
//!
//! An operation that began under one set of accounts and ends under another (or none) is right,
//! too: the old accounts are gone with what it charged there, and the new ones count the inode
//! only when the walk has got the locks that the operation holds.
//!
//! *Invariants.* With quotas on and no operation under way, each account's usage is the sum over
//! all inodes of that user or group. A checked charge never passes a hard limit.
//!
//! *Scale.* While quotas are off, an operation reads one line that nobody writes. While they are
//! on, it finds its accounts without a lock; different ids touch no line in common, nor do two
//! threads that charge one id while it is far from its limits (`credits.rs`). Near a limit, or
//! beyond a soft one, charges of that id take turns at one lock.
//!
//! *Locking.* `switching` comes before everything: it is taken with nothing held, no guard either,
//! and is held over the walks. The lock of an account is a leaf.
//!
//! *Left to others.* Who may exceed limits ([`Check`]). Inodes that are not in memory: they are not
//! counted, so this serves stores that pin all they have.

mod attachment;
mod balance;
mod credits;
mod ledger;
mod record;
mod terms;
#[cfg(test)]
mod tests;

pub(crate) use attachment::Mark;
pub(crate) use terms::{Check, Owner};
pub use terms::{QuotaGrace, QuotaKind, QuotaLimit, QuotaLimits, QuotaRecord, QuotaUsage};

use crate::clock;
use crate::types::{Errno, Result, Time};
use holdfast_sync::epoch::{self, Guard};
use holdfast_sync::{Padded, Published};
use ledger::Ledger;
use parking_lot::Mutex;
use std::sync::atomic::{Ordering, fence};

/// The quotas of one file system; off at first.
#[derive(Debug)]
pub(crate) struct Quotas {
    /// Empty: off. Every operation reads it, so it has its line to itself.
    ledger: Padded<Published<Ledger>>,
    /// Held while quotas go on or off.
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
            ledger: Padded(Published::empty()),
            switching: Mutex::new(()),
            clock,
        }
    }

    /// Are quotas on? Of the moment: only a section, or a guard held since before, makes it last.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        !self.ledger.is_empty()
    }

    /// Switches on: counts everything, and refuses what passes limits if `enforce` is set. There
    /// are no limits at first. `walk` calls [`Quotas::attach`] for every inode.
    ///
    /// The caller holds no lock and no guard. `allowed` is asked while nobody else switches: who
    /// forbids it first, and then switches off, leaves quotas off.
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
        let ledger = Ledger::new(enforce, self.clock);
        self.publish(Some(ledger));
        walk();
        Ok(())
    }

    /// Switches off, if they are on, and forgets usage and limits. `walk` calls [`Mark::clear`] for
    /// every inode there is, whatever its state.
    ///
    /// The caller holds no lock and no guard.
    pub(crate) fn switch_off(&self, walk: impl FnOnce()) {
        let _switching = self.switching.lock();
        if self.is_on() {
            self.publish(None);
            walk();
        }
    }

    /// Replaces the accounts; when this returns, nobody uses the former state any more.
    fn publish(&self, ledger: Option<Ledger>) {
        self.ledger.replace(ledger.map(Box::new));
        // Pairs with that of a pin: a section that is not waited for sees the new state.
        fence(Ordering::SeqCst);
        epoch::synchronize();
    }

    /// Runs a section, if quotas are on.
    #[inline]
    fn section<R>(&self, run: impl FnOnce(&Ledger, &Guard) -> R) -> Option<R> {
        // Stale at worst, and then no worse than a section that ended before the change: where it
        // matters, a lock or a guard that is held makes it true.
        if !self.is_on() {
            return None;
        }
        let guard = epoch::pin();
        let ledger = self.ledger.load(&guard)?;
        Some(run(ledger, &guard))
    }

    /// Sets the limits of one user or group. They hold for whatever it charges from now on; what it
    /// has already stays.
    ///
    /// # Errors
    /// `ESRCH` if quotas are off.
    pub(crate) fn set_limits(&self, kind: QuotaKind, id: u32, limits: &QuotaLimits) -> Result<()> {
        self.section(|ledger, guard| {
            ledger
                .find_or_add(kind, id, guard)
                .set_limits(limits, ledger.rules());
        })
        .ok_or(Errno::ESRCH)
    }

    /// Sets for how long soft limits may be exceeded, beginning with periods that begin now.
    ///
    /// # Errors
    /// `ESRCH` if quotas are off.
    pub(crate) fn set_grace(&self, kind: QuotaKind, grace: QuotaGrace) -> Result<()> {
        self.section(|ledger, _| ledger.set_grace(kind, grace))
            .ok_or(Errno::ESRCH)
    }

    /// What one user or group has: nothing if quotas are off. Exact while nobody charges.
    pub(crate) fn usage(&self, kind: QuotaKind, id: u32) -> QuotaUsage {
        self.section(|ledger, guard| {
            let record = ledger.find(kind, id, guard);
            record.map_or_else(QuotaUsage::default, |record| record.usage())
        })
        .unwrap_or_default()
    }

    /// Everybody who has anything, or has limits: users, then groups, each by number.
    pub(crate) fn report(&self) -> Vec<QuotaRecord> {
        let mut records = Vec::new();
        for part in 0..Ledger::parts() {
            // A pin for each part: there may be a million accounts.
            self.section(|ledger, guard| ledger.report(part, &mut records, guard));
        }
        records.sort_unstable_by_key(|record| (record.kind, record.id));
        records
    }
}
