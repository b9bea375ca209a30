//! A share of a file system for each core: open files hold on to it without meeting.
//!
//! Counting every open file on one counter would make all opens write one line. So each core has a
//! counted share of its own, and the file system ends when the last share has gone.

use holdfast_sync::{Padded, PerCore};
use std::ops::Deref;
use std::sync::Arc;

use crate::file_system::Core;

/// All shares.
pub(crate) struct Lanes(PerCore<Lane>);

/// One core's share, counted on lines of its own.
#[derive(Clone)]
pub(crate) struct Lane(Arc<Padded<Arc<Core>>>);

impl Lanes {
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        Self(PerCore::new(|| Lane(Arc::new(Padded(Arc::clone(core))))))
    }

    /// How many shares are held by others: the open files.
    pub(crate) fn users(&self) -> u64 {
        let users = |lane: &Lane| Arc::strong_count(&lane.0) as u64 - 1;
        self.0.iter().map(users).sum()
    }

    /// The share of the calling thread's core, once more.
    #[inline]
    pub(crate) fn mine(&self) -> Lane {
        self.0.mine().clone()
    }
}

impl Deref for Lane {
    type Target = Core;

    #[inline]
    fn deref(&self) -> &Core {
        &self.0
    }
}
