//! Reservations: what a store granted an operation before the operation changes anything.
//!
//! *Order.* An operation reserves, then changes memory, then hands its changes over, which cannot
//! fail for lack of space. As far as its needs are known, it reserves before it takes contended
//! locks: a store without room commits first.
//!
//! *Invariant.* A grant is used by [`Behind::apply`], or goes back when the [`Reservation`] is
//! dropped: no path of an operation returns anything explicitly.

use crate::store::grant::Grant;
use std::fmt;

use super::{Behind, Intent};
use crate::types::Result;

/// A grant that is not used yet. Dropping it returns it to the store.
#[must_use = "a dropped reservation gives back what it has"]
pub struct Reservation<'s> {
    store: Option<&'s dyn Behind>,
    held: Grant,
}

impl<'s> Reservation<'s> {
    /// Reserves what an operation may need.
    ///
    /// # Errors
    /// Those of [`Behind::reserve`]; nothing has happened then.
    #[inline]
    pub fn of(store: &'s dyn Behind, intent: &Intent) -> Result<Self> {
        let held = store.reserve(intent)?;
        let store = Some(store);
        Ok(Self { store, held })
    }

    /// Like [`Reservation::of`], but never blocks: `None` if room would have to be made first.
    pub fn at_once(store: &'s dyn Behind, intent: &Intent) -> Option<Self> {
        let held = store.reserve_at_once(intent)?;
        let store = Some(store);
        Some(Self { store, held })
    }

    /// For an operation that needs nothing.
    pub const fn none() -> Self {
        Self {
            store: None,
            held: Grant::NONE,
        }
    }

    /// The grant, for the store that uses it.
    #[inline]
    pub const fn held(&mut self) -> &mut Grant {
        &mut self.held
    }

    /// The reserved inodes are in use from now on.
    pub const fn keep_inodes(&mut self) {
        self.held.inodes = 0;
    }

    /// `kept` bytes of names and values are in use from now on, and all of the other resources.
    pub const fn keep_only(&mut self, kept: u64) {
        self.held = Grant {
            kept: self.held.kept.saturating_sub(kept),
            ..Grant::NONE
        };
    }
}

impl Drop for Reservation<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(store) = self.store
            && self.held != Grant::NONE
        {
            store.give_back(self.held);
        }
    }
}

impl fmt::Debug for Reservation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation")
            .field("held", &self.held)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MemoryLimits, MemoryStore, Store as _, kept_bytes};
    use super::*;
    use crate::store::Space;

    #[test]
    fn what_is_not_used_goes_back_and_what_is_kept_stays() {
        let store = MemoryStore::new(MemoryLimits {
            bytes: Some(8192),
            inodes: Some(2),
        });
        let intent = Intent {
            inodes: 1,
            ..Intent::default()
        }
        .name(&[b'n'; 100])
        .value(200);
        let used = |store: &MemoryStore| {
            let space = store.space().unwrap();
            (space.pages_used, space.inodes_used)
        };
        drop(Reservation::of(&store, &intent).unwrap());
        assert_eq!(used(&store), (0, 0));
        let mut reservation = Reservation::of(&store, &intent).unwrap();
        assert_eq!(used(&store), (1, 1));
        reservation.keep_inodes();
        drop(reservation);
        assert_eq!(used(&store), (0, 1));
        let mut reservation = Reservation::of(&store, &intent).unwrap();
        *reservation.held() = Grant::NONE;
        drop(reservation);
        assert_eq!(used(&store), (1, 2));
        assert!(
            Reservation::of(&store, &intent).is_err(),
            "no inode is left"
        );
        let bytes = kept_bytes(100) + kept_bytes(200);
        store.release(Space {
            inodes: 2,
            bytes,
            ..Space::default()
        });
        assert_eq!(used(&store), (0, 0));
    }
}
