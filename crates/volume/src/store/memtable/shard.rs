//! A shard of a memtable while it is changed.

use std::ops::{Deref, DerefMut};

use holdfast_sync::ShardedCounter;
use parking_lot::MutexGuard;

use super::objects::Objects;

/// Objects of a shard, to be changed: what comes and goes is counted behind that.
#[derive(Debug)]
pub(in crate::store) struct Shard<'o> {
    objects: MutexGuard<'o, Objects>,
    memory: &'o ShardedCounter,
}

impl Deref for Shard<'_> {
    type Target = Objects;

    #[inline]
    fn deref(&self) -> &Objects {
        &self.objects
    }
}

impl DerefMut for Shard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Objects {
        &mut self.objects
    }
}

impl Drop for Shard<'_> {
    #[inline]
    fn drop(&mut self) {
        let came = self.objects.came();
        if came != 0 {
            self.memory.add(came);
        }
    }
}

impl<'o> Shard<'o> {
    /// Counts in `memory`.
    #[inline]
    pub(super) fn new(objects: MutexGuard<'o, Objects>, memory: &'o ShardedCounter) -> Self {
        Self { objects, memory }
    }
}
