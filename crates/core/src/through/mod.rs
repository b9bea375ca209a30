//! Operations over a store that is written through ([`Through`](crate::store::Through)): the store
//! first, memory after it.
//!
//! A change is one operation over all stores: see [`crate::transaction`].
//!
//! The store is asked for the operation. Then the returned records [apply](take_in) to the inodes
//! in memory, cached names that are still [valid](names) change, and watchers are notified. So all
//! data in memory is also in the store, and there is no writeback.
//!
//! *Own changes and those of others.* The store returns the version of each inode directly before
//! the operation. If it equals the version in memory, the inode had no other change: cached data is
//! valid except for what the operation changed. Otherwise all of it is dropped.
//!
//! *Locking.* No lock is held during a request, except the page lock of a file that is written or
//! read. A store that does not answer blocks users of the same file, and no unmount.

pub(crate) mod content;
pub(crate) mod make;
pub(crate) mod names;
mod performed;
pub(crate) mod take_in;

pub(crate) use names::enter;
pub(crate) use performed::{Changed, Performed, ThroughStore, itself};
