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
mod quotas;
mod terms;

#[cfg(test)]
mod tests;

pub(crate) use attachment::Mark;
pub(crate) use quotas::Quotas;
pub(crate) use terms::{Check, Owner};
pub use terms::{QuotaGrace, QuotaKind, QuotaLimit, QuotaLimits, QuotaRecord, QuotaUsage};
