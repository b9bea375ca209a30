//! Reclaim of the counts of inodes that an observer (the kernel of a mount) references while they
//! are evicted. If the counts take too much memory, the observer is asked to drop some of these
//! inodes.

use crate::reclaim::shrinkers::Kernel;
use holdfast_cache::reclaim::{Count, Load, Request, Scan, Shrinker};

use crate::core::Core;

/// About how many inodes are requested at once.
const ASKED: u64 = 16_384;
/// The part of the limit that the counts of evicted inodes may take.
const PART: u64 = 16;

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
        match core.observers.is_set() {
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
        if !inodes.is_empty() {
            core.observers
                .tell(|observer| observer.is_to_forget(&inodes));
        }
        Scan::Freed(came.min(asked))
    }

    fn was_of_use(&self, _: &Load, _: &Load) -> bool {
        !self.asking.lock().in_vain
    }
}
