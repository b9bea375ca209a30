//! Reclaim of the counts of inodes that an observer (the kernel of a mount) references while they
//! are evicted. If the counts take too much memory, the observer is asked to drop some of these
//! inodes.

use holdfast_cache::reclaim::{Count, Load, Request, Scan, Shrinker};
use parking_lot::Mutex;

use super::Core;
use crate::evictions::Cursor;
use crate::observer::{ask_back, is_observed};

/// About how many inodes are requested at once.
const ASKED: u64 = 16_384;
/// The part of the limit that the counts of evicted inodes may take.
const PART: u64 = 16;

/// Asks the observer for inodes. Less often while less than half of the requested inodes come back.
#[derive(Debug, Default)]
pub(crate) struct Kernel {
    asking: Mutex<Asking>,
}

/// The last request.
#[derive(Debug, Default)]
struct Asking {
    turn: Cursor,
    /// The number of evicted inodes then, and of requested ones.
    last: Option<(u64, u64)>,
    /// Did less than half of them come back until the next request?
    in_vain: bool,
}

impl Shrinker for Kernel {
    type Owner = Core;

    fn name(&self) -> &'static str {
        "kernel"
    }

    fn batch(&self) -> u64 {
        ASKED
    }

    /// A front end is notified.
    fn needs_store(&self) -> bool {
        true
    }

    fn load(&self, core: &Core) -> Load {
        let most = core.reclaim.memory.limit() / PART;
        Load {
            held: core.evictions.away().bytes,
            wake: most,
            stop: most,
            wait: u64::MAX,
        }
    }

    fn count(&self, core: &Core) -> Count {
        match is_observed(core) {
            true => Count::Objects(core.evictions.away().inodes),
            false => Count::Empty,
        }
    }

    fn scan(&self, core: &Core, request: Request) -> Scan {
        // Requested inodes come back later.
        if !request.first {
            return Scan::Stop;
        }
        let away = core.evictions.away().inodes;
        let mut asking = self.asking.lock();
        let (before, asked) = asking.last.unwrap_or((away, 0));
        let came = before.saturating_sub(away);
        asking.in_vain = came < asked / 2;
        let most = usize::try_from(request.objects).unwrap_or(usize::MAX);
        let (inodes, turn) = core.evictions.some(asking.turn, most);
        asking.turn = turn;
        asking.last = Some((away, inodes.len() as u64));
        drop(asking);
        ask_back(core, &inodes);
        Scan::Freed(came.min(asked))
    }

    fn was_of_use(&self, _: &Load, _: &Load) -> bool {
        !self.asking.lock().in_vain
    }
}
