use super::Space;
use crate::primitive::{AtomicU64, Mutex, MutexGuard, Ordering};
use holdfast_sync::PerCore;
use std::sync::Arc;

/// Blocks that a core takes from the common account at once.
const CHUNK: u64 = 256;

/// How many free blocks are promised to nobody.
///
/// Some are on the common account, some set aside for nodes, some withheld because the host of an image has no room for
/// them, some with the cores, so that small promises meet no line of another core.
///
/// *Invariant.* The sum of it all and of what was promised and not placed is never more than the
/// blocks that are free in the groups, and equal to it while nobody changes anything.
///
/// *Locking.* `common` is a leaf.
#[derive(Debug)]
pub(super) struct Ledger {
    common: Mutex<Common>,
    cores: PerCore<AtomicU64>,
}

#[derive(Debug)]
struct Common {
    free: u64,
    /// Set aside for nodes, and how many shall be.
    spare: u64,
    spare_wanted: u64,
    /// Given to nobody, and how many shall be.
    withheld: u64,
    withheld_wanted: u64,
}

/// What is on the common account and not free for all.
#[derive(Clone, Copy)]
enum Aside {
    Spare,
    Withheld,
}

impl Common {
    /// Takes as many blocks as there are, at most `wanted`, at least `least` (else none); of those that are `aside` only what
    /// the free ones lack.
    fn draw(&mut self, least: u64, wanted: u64, aside: Option<Aside>) -> Option<u64> {
        let mut none = 0;
        let more = match aside {
            Some(Aside::Spare) => &mut self.spare,
            Some(Aside::Withheld) => &mut self.withheld,
            None => &mut none,
        };
        let given = wanted.min(self.free + *more);
        if given < least || given == 0 {
            return None;
        }
        let from_free = given.min(self.free);
        self.free -= from_free;
        *more -= given - from_free;
        Some(given)
    }
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A tree's node, or whatever else a checkpoint writes: may use what is set aside for it.
    Node,
    /// Content of files.
    Data,
}

impl Ledger {
    pub(super) fn new(free: u64) -> Self {
        Self {
            common: Mutex::new(Common {
                free,
                spare: 0,
                spare_wanted: 0,
                withheld: 0,
                withheld_wanted: 0,
            }),
            cores: PerCore::new(|| AtomicU64::new(0)),
        }
    }

    /// Takes as many blocks as there are, at most `wanted`, at least `least` (else none).
    pub(super) fn take(&self, least: u64, wanted: u64, kind: Kind) -> Option<u64> {
        if kind == Kind::Data && wanted < CHUNK && take_all(self.cores.mine(), wanted) {
            return Some(wanted);
        }
        let mut common = self.gather(wanted);
        let more = match kind {
            Kind::Node => Some(Aside::Spare),
            Kind::Data => None,
        };
        let given = common.draw(least, wanted, more)?;
        if kind == Kind::Data && given == wanted && wanted < CHUNK && common.free > 16 * CHUNK {
            common.free -= CHUNK;
            self.cores.mine().fetch_add(CHUNK, Ordering::Relaxed);
        }
        Some(given)
    }

    /// As [`take`](Self::take), for blocks of which the device is told that they are free: nothing is written to them.
    pub(super) fn take_to_discard(&self, least: u64, wanted: u64) -> Option<u64> {
        self.gather(wanted)
            .draw(least, wanted, Some(Aside::Withheld))
    }

    /// The common account, with what the cores have if there is less than `wanted` on it.
    fn gather(&self, wanted: u64) -> MutexGuard<'_, Common> {
        let mut common = self.common.lock();
        if common.free < wanted {
            let cores = self.cores.iter();
            let cores = cores.map(|core| core.swap(0, Ordering::Relaxed));
            common.free += cores.sum::<u64>();
        }
        common
    }

    /// Gives back blocks that were promised and not placed.
    pub(super) fn put_back(&self, blocks: u64) {
        if blocks == 0 {
            return;
        }
        let mine = self.cores.mine();
        // Relaxed: a number of blocks says nothing of their content or of what they were.
        let have = mine.load(Ordering::Relaxed);
        if blocks < CHUNK && have > 0 && have + blocks <= 2 * CHUNK {
            mine.fetch_add(blocks, Ordering::Relaxed);
        } else {
            self.put(blocks);
        }
    }

    /// Adds blocks that became free.
    pub(super) fn put(&self, blocks: u64) {
        let mut common = self.common.lock();
        let short = common.spare_wanted.saturating_sub(common.spare);
        let spare = blocks.min(short);
        common.spare += spare;
        let blocks = blocks - spare;
        let short = common.withheld_wanted.saturating_sub(common.withheld);
        let withheld = blocks.min(short);
        common.withheld += withheld;
        common.free += blocks - withheld;
    }

    /// Withholds so many blocks, as far as they are there; more as they become free. Gives how many are. `wanted` is told how
    /// many are promised to nobody, those that are set aside included.
    pub(super) fn withhold(&self, wanted: impl FnOnce(u64) -> u64) -> u64 {
        let mut common = self.gather(u64::MAX);
        common.free += std::mem::take(&mut common.withheld);
        common.withheld_wanted = wanted(common.free + common.spare);
        common.withheld = common.withheld_wanted.min(common.free);
        common.free -= common.withheld;
        common.withheld
    }

    /// Blocks that are withheld.
    pub(super) fn withheld(&self) -> u64 {
        self.common.lock().withheld
    }

    /// Sets aside so many blocks for nodes, as far as they are there; more as they become free.
    /// Gives back how many are.
    pub(super) fn set_spare(&self, wanted: u64) -> u64 {
        let mut common = self.gather(u64::MAX);
        common.free += std::mem::take(&mut common.spare);
        common.spare_wanted = wanted;
        common.spare = wanted.min(common.free);
        common.free -= common.spare;
        common.spare
    }

    /// Blocks that may be promised to data, and blocks set aside for nodes.
    pub(super) fn balance(&self) -> (u64, u64) {
        let common = self.common.lock();
        let cores: u64 = self
            .cores
            .iter()
            .map(|core| core.load(Ordering::Relaxed))
            .sum();
        (common.free + cores, common.spare)
    }
}

/// Subtracts `wanted`, if there is so much.
fn take_all(from: &AtomicU64, wanted: u64) -> bool {
    let mut have = from.load(Ordering::Relaxed);
    while have >= wanted {
        match from.compare_exchange_weak(have, have - wanted, Ordering::Relaxed, Ordering::Relaxed)
        {
            Ok(_) => return true,
            Err(now) => have = now,
        }
    }
    false
}

/// Blocks promised, not yet placed. What is left of the promise goes back when it is dropped.
#[must_use = "a dropped reservation gives its blocks back"]
#[derive(Debug)]
pub struct Reservation {
    space: Arc<Space>,
    blocks: u64,
}

impl Reservation {
    pub(super) fn of(space: Arc<Space>, blocks: u64) -> Self {
        Self { space, blocks }
    }

    /// Blocks promised and not yet placed.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// A part of the promise, at most all of it, as a promise of its own.
    pub fn split(&mut self, blocks: u64) -> Self {
        let blocks = blocks.min(self.blocks);
        self.blocks -= blocks;
        Self::of(Arc::clone(&self.space), blocks)
    }

    /// The promise as a number, which is to be made one again, or given back.
    #[must_use]
    pub fn into_blocks(mut self) -> u64 {
        std::mem::take(&mut self.blocks)
    }

    /// Takes in a promise that is a number.
    pub(crate) fn take_in(&mut self, blocks: u64) {
        self.blocks += blocks;
    }

    /// Becomes a promise of so many blocks; of how many it was, the caller keeps as a number.
    pub(crate) fn exchange(&mut self, blocks: u64) -> u64 {
        std::mem::replace(&mut self.blocks, blocks)
    }

    /// Takes in the promise of another.
    pub fn merge(&mut self, mut other: Self) {
        debug_assert!(Arc::ptr_eq(&self.space, &other.space));
        self.blocks += std::mem::take(&mut other.blocks);
    }

    /// Gives `blocks` of the promise back, or all of it: what was promised came from elsewhere.
    pub(super) fn spare(&mut self, blocks: u64) {
        let blocks = blocks.min(self.blocks);
        self.blocks -= blocks;
        self.space.ledger().put_back(blocks);
    }

    /// Takes `blocks` out of the promise: they were placed.
    pub(super) fn place(&mut self, blocks: u64) {
        self.blocks -= blocks;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.space.ledger().put_back(self.blocks);
    }
}
