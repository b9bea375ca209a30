//! An interface to free memory of one kind.

use super::arithmetic::Pressure;
use super::context::Context;
use crate::PAGE_SIZE;

/// How much a class holds, and its marks, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Held.
    pub held: u64,
    /// If more is held, it is reclaimed.
    pub wake: u64,
    /// The mark down to which it is reclaimed.
    pub stop: u64,
    /// Above this mark a thread waits for a reclaim of another thread; below, it does not.
    pub wait: u64,
}

impl Load {
    /// The pressure of `wanted` excess bytes.
    pub(super) fn pressure(&self, wanted: u64) -> Pressure {
        let page = PAGE_SIZE as u64;
        Pressure {
            scanned: wanted.div_ceil(page),
            lru: self.held.div_ceil(page),
        }
    }

    /// The bytes to be freed.
    pub(super) fn excess(&self) -> u64 {
        self.held.saturating_sub(self.stop)
    }

    /// Is no more held than the low mark?
    pub(super) fn is_enough(&self) -> bool {
        self.held <= self.stop
    }
}

/// How many objects can be scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// There are none: nothing is scanned or recorded, and what is deferred stays so.
    Empty,
    /// That many. 0: there are some, but none can be freed at present.
    Objects(u64),
}

/// A request to scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The context of the thread.
    pub context: Context,
    /// The most objects to scan.
    pub objects: u64,
    /// Is it the first request of a reclaim? Others continue where the one before stopped.
    pub first: bool,
}

/// The result of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// Nothing more can be freed in this context: the rest is deferred.
    Stop,
    /// That many of the requested objects were freed.
    Freed(u64),
}

/// Frees memory of one kind, for one owner. It finds objects that can be freed. The registry
/// decides how many it scans, and when ([`Registered::shrink`](super::Registered::shrink)).
pub trait Shrinker: Send + Sync + 'static {
    /// The owner of these objects.
    type Owner: Send + Sync + 'static;

    /// Its name in traces and reports.
    fn name(&self) -> &'static str;

    /// The cost of bringing an object back: of objects with twice the cost half as many are
    /// scanned.
    fn seeks(&self) -> u32 {
        2
    }

    /// Objects of one request.
    fn batch(&self) -> u64 {
        128
    }

    /// Does it enter the store to free something? Then it is not called [within
    /// one](super::within_store).
    fn needs_store(&self) -> bool;

    /// How much is held, and the marks.
    fn load(&self, owner: &Self::Owner) -> Load;

    /// How many objects there are. Called before each pass.
    fn count(&self, owner: &Self::Owner) -> Count;

    /// Scans objects, and frees those that can be freed. Called with no lock held, by one thread at
    /// a time.
    fn scan(&self, owner: &Self::Owner, request: Request) -> Scan;

    /// Was a reclaim useful, from the first load to the last? After a useless one, some are
    /// skipped.
    fn was_of_use(&self, before: &Load, after: &Load) -> bool {
        after.held < before.held
    }

    /// Called after a reclaim that scanned something.
    fn finish(&self) {}
}
