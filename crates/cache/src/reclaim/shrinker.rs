//! What can free memory of one kind.

use super::arithmetic::Pressure;
use super::context::Context;
use crate::PAGE_SIZE;

/// How much there is of a class, and of how much it is to make way. In bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Held.
    pub held: u64,
    /// If more is held, it is reclaimed.
    pub wake: u64,
    /// Until no more is held than this.
    pub stop: u64,
    /// Beyond this a thread that finds another one at it waits for its turn; below, it goes on.
    pub wait: u64,
}

impl Load {
    /// Of how many pages so many bytes are too much.
    pub(super) fn pressure(&self, wanted: u64) -> Pressure {
        let page = PAGE_SIZE as u64;
        Pressure {
            scanned: wanted.div_ceil(page),
            lru: self.held.div_ceil(page),
        }
    }

    /// So much is to go.
    pub(super) fn excess(&self) -> u64 {
        self.held.saturating_sub(self.stop)
    }

    /// Is as much free as is wanted?
    pub(super) fn is_enough(&self) -> bool {
        self.held <= self.stop
    }
}

/// How many objects could be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// There are none: nothing is looked at or recorded, and what is owed stays owed.
    Empty,
    /// So many. None: there are some, but none to be had at present.
    Objects(u64),
}

/// What a shrinker is to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Where the thread is.
    pub context: Context,
    /// No more objects than this.
    pub objects: u64,
    /// Is it the first request of a reclaim? Others go on where the one before stopped.
    pub first: bool,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// Nothing more can be had here and now: what was to be looked at is owed.
    Stop,
    /// So many objects went, of those that were asked for.
    Freed(u64),
}

/// What frees memory of one kind, for one owner. It knows how to find objects that can go; how many it is to look at, and when, the
/// registry decides ([`Registered::shrink`](super::Registered::shrink)).
pub trait Shrinker: Send + Sync + 'static {
    /// What has these objects.
    type Owner: Send + Sync + 'static;

    /// Its name in traces and reports.
    fn name(&self) -> &'static str;

    /// What it costs to bring an object back: of objects that cost twice as much half as many are looked at.
    fn seeks(&self) -> u32 {
        2
    }

    /// Objects of one request.
    fn batch(&self) -> u64 {
        128
    }

    /// Does it enter the store to free something? Then it is not asked [within one](super::within_store).
    fn needs_store(&self) -> bool;

    /// How much there is, and is to be.
    fn load(&self, owner: &Self::Owner) -> Load;

    /// How many objects there are. Asked before each pass.
    fn count(&self, owner: &Self::Owner) -> Count;

    /// Looks at objects, and frees those that can go. With nothing locked; one thread at a time.
    fn scan(&self, owner: &Self::Owner, request: Request) -> Scan;

    /// Was a reclaim of use, from the first load to the last? Those after one that was not are left out for a while.
    fn was_of_use(&self, before: &Load, after: &Load) -> bool {
        after.held < before.held
    }

    /// A reclaim is over that looked at something.
    fn finish(&self) {}
}
