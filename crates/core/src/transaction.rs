//! One change of a file system, from the store's grant to the store's log.
//!
//! An operation resolves its names, begins, changes memory under the locks of its objects, and
//! commits. The stores differ in the side that decides:
//!
//! | store | [`begin`] | memory | [`commit`](LockedTransaction::commit) |
//! |---|---|---|---|
//! | memory, written behind | reserves space | decides | takes the batch of changes |
//! | written through | performs the operation | follows the store's records | is not called |
//!
//! A change of content reserves after `begin`, when it has locked the pages
//! ([`Transaction::reserve`]).
//!
//! *Invariant.* Only these two steps fail because the store lacks space, and they may wait for a
//! device or another machine. An error of `begin` means that the store changed nothing, unless the
//! wait for durability failed (options `sync` and `dirsync`).

use holdfast_cache::PagesLock;
use std::ops::Range;

use crate::core::Core;
use crate::inode::{Inode, Numbered as _};
use crate::io::reserve::reserve_for;
use crate::log_order::{self, LogOrderGuard, LogOrdered as _};
use crate::store::{Change, Intent, Lsn, PageOf, Reservation, Scope, Space, kept_bytes};
use crate::through::{Performed, ThroughStore};
use crate::types::Result;

/// An operation that the store has agreed to.
pub(crate) enum Begun<'c> {
    /// Memory is authoritative: the operation checks there, changes memory, and commits.
    Decide(Transaction<'c>),
    /// The store has performed the operation, and memory follows.
    Done(Performed<'c>),
}

/// An operation between its reservation and its commit.
#[must_use = "a dropped transaction returns what it reserved"]
pub(crate) struct Transaction<'c> {
    core: &'c Core,
    reservation: Reservation<'c>,
}

impl<'c> Transaction<'c> {
    /// Reserves what a change of these bytes may need. The caller has locked the pages.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn reserve(
        &mut self,
        inode: &Inode,
        pages: &PagesLock<'_>,
        bytes: Range<u64>,
        intent: impl FnOnce() -> Intent,
    ) -> Result<()> {
        hop!();
        self.reservation = reserve_for(self.core, inode, pages, bytes, intent)?;
        Ok(())
    }

    /// A part of the same operation, which commits on its own.
    pub(crate) fn part(&self) -> Self {
        Self {
            core: self.core,
            reservation: Reservation::none(),
        }
    }

    /// What the store has reserved.
    pub(crate) fn reservation(&mut self) -> &mut Reservation<'c> {
        &mut self.reservation
    }

    /// Takes the log-order locks of the inodes of which the operation changes attributes. They are
    /// held from before a related state (a size, a link count) changes in memory until the
    /// attributes are submitted: see [`log_order`].
    #[inline]
    pub(crate) fn lock<'t, const N: usize>(
        self,
        inodes: [&'t Inode; N],
    ) -> LockedTransaction<'c, 't, N> {
        LockedTransaction {
            order: log_order::take(inodes),
            transaction: self,
        }
    }

    /// Submits changes without attributes of inodes that memory shows already.
    ///
    /// # Errors
    /// Those of [`LockedTransaction::commit`].
    pub(crate) fn commit(self, batch: &[Change<'_>]) -> Result<()> {
        self.lock([]).commit(batch)
    }
}

/// A transaction with the log-order locks of the inodes that it changes.
#[must_use = "a dropped transaction returns what it reserved"]
pub(crate) struct LockedTransaction<'c, 't, const N: usize> {
    transaction: Transaction<'c>,
    order: LogOrderGuard<'t, N>,
}

impl<'c, const N: usize> LockedTransaction<'c, '_, N> {
    /// What the store has reserved.
    pub(crate) fn reservation(&mut self) -> &mut Reservation<'c> {
        self.transaction.reservation()
    }

    /// Submits the changes of the operation, which memory shows already. Waits for durability as
    /// the options `sync` and `dirsync` say.
    ///
    /// # Errors
    /// `EIO`: the device failed, and the store accepts no changes any more.
    pub(crate) fn commit(self, batch: &[Change<'_>]) -> Result<()> {
        hop!();
        let Transaction {
            core,
            mut reservation,
        } = self.transaction;
        let applied = core.behind.apply(reservation.held(), batch);
        drop(self.order);
        commit_if_sync(core, applied, Scope::of(batch))
    }

    /// As [`commit`](Self::commit), for writes to a file with locked pages: a store that can keeps
    /// the pages, any other copies the bytes.
    ///
    /// # Errors
    /// The same.
    pub(crate) fn commit_written(self, batch: &[Change<'_>], page: &PageOf<'_>) -> Result<()> {
        hop!();
        let Transaction {
            core,
            mut reservation,
        } = self.transaction;
        let held = reservation.held();
        let applied = match core.store.pages() {
            Some(pages) => pages.apply_written(held, batch, page),
            None => core.behind.apply(held, batch),
        };
        drop(self.order);
        commit_if_sync(core, applied, Scope::Inodes)
    }
}

/// Begins an operation of the core's own, which no store performs: reserves `intent`.
///
/// # Errors
/// Those of the store.
pub(crate) fn decide<'c>(core: &'c Core, intent: &Intent) -> Result<Transaction<'c>> {
    Ok(Transaction {
        core,
        reservation: Reservation::of(&*core.behind, intent)?,
    })
}

/// Begins an operation: reserves `intent`, or lets the store perform it. The caller holds no
/// lock of the core.
///
/// # Errors
/// Those of the store; nothing happened.
#[inline]
pub(crate) fn begin<'c>(
    core: &'c Core,
    intent: impl FnOnce() -> Intent,
    perform: impl FnOnce(ThroughStore<'c>) -> Result<Performed<'c>>,
) -> Result<Begun<'c>> {
    hop!();
    let mut begun = begin_content(core, perform)?;
    if let Begun::Decide(transaction) = &mut begun {
        transaction.reservation = Reservation::of(&*core.behind, &intent())?;
    }
    Ok(begun)
}

/// As [`begin`], for a change of a file's content: the operation
/// [reserves](Transaction::reserve) when it has locked the pages, which tell how much it needs.
///
/// # Errors
/// The same.
#[inline]
pub(crate) fn begin_content<'c>(
    core: &'c Core,
    perform: impl FnOnce(ThroughStore<'c>) -> Result<Performed<'c>>,
) -> Result<Begun<'c>> {
    hop!();
    match ThroughStore::of(core) {
        Some(through) => perform(through).map(Begun::Done),
        None => Ok(Begun::Decide(Transaction {
            core,
            reservation: Reservation::none(),
        })),
    }
}

/// Returns the space of a name, a value or a target of this length.
#[inline]
pub(crate) fn release_kept(core: &Core, len: usize) {
    core.behind.release(Space {
        bytes: kept_bytes(len),
        ..Space::default()
    });
}

/// Submits the attributes of an inode, unless another thread holds its log-order lock: then
/// returns `false`.
///
/// # Errors
/// Those of [`LockedTransaction::commit`].
pub(crate) fn apply_unless_busy(
    core: &Core,
    reservation: &mut Reservation<'_>,
    inode: &Inode,
) -> Result<bool> {
    let Some(order) = inode.log_order().try_lock() else {
        return Ok(false);
    };
    let record = inode.record(&inode.meta());
    let change = [Change::Attributes { inode: record }];
    let applied = core.behind.apply(reservation.held(), &change);
    drop(order);
    commit_if_sync(core, applied, Scope::Inodes).map(|()| true)
}

fn commit_if_sync(core: &Core, applied: Result<Lsn>, scope: Scope) -> Result<()> {
    let applied = applied.and_then(|lsn| {
        if core.waits_for(scope) {
            core.store.commit(Some(lsn))
        } else {
            Ok(())
        }
    });
    applied.inspect_err(|error| core.failure.close_with(*error))
}
