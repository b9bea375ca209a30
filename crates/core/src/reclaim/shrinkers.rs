//! The shrinkers of a file system, and their positions.

use crate::evictions::Cursor;
use crate::inodes::InodeWalk;
use crate::types::Ino;
use holdfast_cache::reclaim::Registered;
use parking_lot::Mutex;
use std::sync::Arc;

/// Frees inodes.
#[derive(Debug, Default)]
pub(crate) struct Metadata {
    pub(super) clock_hand: Mutex<InodeClock>,
}

/// The positions of the CLOCK hands.
#[derive(Debug, Default)]
pub(crate) struct InodeClock {
    /// The next inode numbers: on probation, and in the main set.
    pub(super) at: [u64; 2],
    /// The remaining rounds of each.
    pub(super) left: [u32; 2],
}

/// Frees names of directories that are in memory as a whole.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// The rest of the round.
    pub(super) walk: Mutex<InodeWalk>,
}

/// Frees pages.
#[derive(Debug, Default)]
pub(crate) struct Content {
    pub(super) clock_hand: Mutex<PageClock>,
}

/// The position of the CLOCK hand.
#[derive(Debug, Default)]
pub(crate) struct PageClock {
    pub(super) walk: InodeWalk,
    /// The current file, and the page in it.
    pub(super) at: Option<(Ino, u64)>,
    /// Completed rounds of this reclaim.
    pub(super) rounds: usize,
}

/// Asks the observer for inodes. Less often while less than half of the requested inodes come back.
#[derive(Debug, Default)]
pub(crate) struct Kernel {
    pub(super) asking: Mutex<Asking>,
}

/// The last request.
#[derive(Debug, Default)]
pub(crate) struct Asking {
    pub(super) turn: Cursor,
    /// The number of evicted inodes then, and of requested ones.
    pub(super) last: Option<(u64, u64)>,
    /// Did less than half of them come back until the next request?
    pub(super) in_vain: bool,
}

/// The shrinkers of a file system.
#[derive(Debug)]
pub(crate) struct Shrinkers {
    pub(super) metadata: Arc<Registered<Metadata>>,
    pub(super) names: Arc<Registered<Names>>,
    pub(super) content: Arc<Registered<Content>>,
    pub(super) kernel: Arc<Registered<Kernel>>,
}
