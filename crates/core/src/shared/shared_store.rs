//! The store that others change, with the times of the requests to it.

use std::ops::Deref;
use std::time::Instant;

use crate::coherence::{Coherence, Present, Standing};
use crate::store::{self, InodeRecord};
use crate::types::Ino;

/// A store that numbers its inodes, and the times of the requests to it.
#[derive(Clone, Copy)]
pub(crate) struct SharedStore<'c> {
    pub(crate) coherence: &'c Coherence,
    pub(crate) store: &'c dyn store::Shared,
}

impl<'c> Deref for SharedStore<'c> {
    type Target = dyn store::Shared + 'c;

    fn deref(&self) -> &Self::Target {
        self.store
    }
}

impl SharedStore<'_> {
    /// Prepares a request for an inode or the names of a directory; returns the time of the
    /// request.
    pub(crate) fn ask(&self, ino: Ino) -> Instant {
        self.store.listen(ino);
        self.store.now()
    }

    /// The present, to judge the validity of an answer.
    pub(crate) fn present(&self) -> Present {
        Present {
            now: self.store.now(),
            notified_until: self.store.notified_until(),
        }
    }

    /// How long an answer to a request made at `at` stays valid.
    pub(crate) fn standing(&self, record: &InodeRecord, at: Instant) -> Standing {
        Standing {
            settled: self.store.is_settled(record, at),
            notified: self.store.hears_of(record, at),
        }
    }
}
