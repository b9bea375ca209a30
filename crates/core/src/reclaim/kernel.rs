//! Counts of inodes that an observer holds (a kernel, of a mount) and that are away. Only when they take too much, the observer is asked for some
//! of these inodes; they go when it gives them back.

use std::marker::PhantomData;

use holdfast_cache::reclaim::{Count, Load, Request, Scan, Shrinker};
use parking_lot::Mutex;

use crate::evictions::{Evictions, Turn};
use crate::types::Ino;

/// Inodes that are asked back at once, about.
const ASKED: u64 = 16_384;
/// What is remembered of inodes that are away may take this part of the limit.
const PART: u64 = 16;

/// What an observer may hold inodes of.
pub(crate) trait Observed: Send + Sync + 'static {
    /// What is remembered of inodes that are away.
    fn evictions(&self) -> &Evictions;

    /// Bytes that all may take.
    fn memory_limit(&self) -> u64;

    /// Is there anybody to be asked?
    fn is_observed(&self) -> bool;

    /// Asks for these.
    fn ask_back(&self, inodes: &[Ino]);
}

/// Asks an observer for inodes. Less often while less than half of what was asked for comes back.
#[derive(Debug)]
pub(crate) struct Kernel<O> {
    asking: Mutex<Asking>,
    owner: PhantomData<fn(&O)>,
}

impl<O> Default for Kernel<O> {
    fn default() -> Self {
        Self {
            asking: Mutex::default(),
            owner: PhantomData,
        }
    }
}

/// What was asked for.
#[derive(Debug, Default)]
struct Asking {
    turn: Turn,
    /// Inodes that were away when it was asked last, and those that were asked for.
    last: Option<(u64, u64)>,
    /// Did less than half of them come back by the time of the next asking?
    in_vain: bool,
}

impl<O: Observed> Shrinker for Kernel<O> {
    type Owner = O;

    fn name(&self) -> &'static str {
        "kernel"
    }

    fn batch(&self) -> u64 {
        ASKED
    }

    /// A front end is told.
    fn needs_store(&self) -> bool {
        true
    }

    fn load(&self, owner: &O) -> Load {
        let most = owner.memory_limit() / PART;
        Load {
            held: owner.evictions().away().bytes,
            wake: most,
            stop: most,
            wait: u64::MAX,
        }
    }

    fn count(&self, owner: &O) -> Count {
        match owner.is_observed() {
            true => Count::Objects(owner.evictions().away().inodes),
            false => Count::Empty,
        }
    }

    fn scan(&self, owner: &O, request: Request) -> Scan {
        // What was asked for comes by and by.
        if !request.first {
            return Scan::Stop;
        }
        let away = owner.evictions().away().inodes;
        let mut asking = self.asking.lock();
        let (before, asked) = asking.last.unwrap_or((away, 0));
        let came = before.saturating_sub(away);
        asking.in_vain = came < asked / 2;
        let most = usize::try_from(request.objects).unwrap_or(usize::MAX);
        let (inodes, turn) = owner.evictions().some(asking.turn, most);
        asking.turn = turn;
        asking.last = Some((away, inodes.len() as u64));
        drop(asking);
        owner.ask_back(&inodes);
        Scan::Freed(came.min(asked))
    }

    fn was_of_use(&self, _: &Load, _: &Load) -> bool {
        !self.asking.lock().in_vain
    }
}
