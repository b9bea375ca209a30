use crate::primitive::{AtomicU64, Mutex, MutexGuard, Ordering};
use holdfast_sync::PerCore;

/// Blocks that a core takes from the common account at once.
const CHUNK: u64 = 256;

/// The number of unreserved free blocks.
///
/// It is split: blocks free for all, blocks set aside for nodes, and blocks withheld because the
/// host of an image has no room for them. Each core has a share, so that small reservations touch
/// no cache line of another core.
///
/// *Invariant.* The sum of the parts and of the reserved, unplaced blocks never exceeds the free
/// blocks of the groups. It is equal while there are no changes.
///
/// *Locking.* `common` is a leaf.
#[derive(Debug)]
pub(super) struct FreeCounter {
    common: Mutex<Common>,
    cores: PerCore<AtomicU64>,
}

#[derive(Debug)]
struct Common {
    free: u64,
    /// Set aside for nodes, and the target.
    node_reserve: u64,
    node_reserve_wanted: u64,
    /// Withheld from all, and the target.
    withheld: u64,
    withheld_wanted: u64,
}

/// A part of the common account that is not free for all.
#[derive(Clone, Copy)]
enum Held {
    Nodes,
    Withheld,
}

impl Common {
    /// Takes as many blocks as there are, at most `wanted`, at least `least` (else none). Blocks of
    /// `held` are taken only after the free ones.
    fn draw(&mut self, least: u64, wanted: u64, held: Option<Held>) -> Option<u64> {
        let mut none = 0;
        let more = match held {
            Some(Held::Nodes) => &mut self.node_reserve,
            Some(Held::Withheld) => &mut self.withheld,
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

/// The use of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A tree's node, or another block that a checkpoint writes: may use the blocks set aside.
    Node,
    /// Content of files.
    Data,
}

impl FreeCounter {
    pub(super) fn new(free: u64) -> Self {
        Self {
            common: Mutex::new(Common {
                free,
                node_reserve: 0,
                node_reserve_wanted: 0,
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
        let mut common = self.collect(wanted);
        let more = match kind {
            Kind::Node => Some(Held::Nodes),
            Kind::Data => None,
        };
        let given = common.draw(least, wanted, more)?;
        if kind == Kind::Data && given == wanted && wanted < CHUNK && common.free > 16 * CHUNK {
            common.free -= CHUNK;
            self.cores.mine().fetch_add(CHUNK, Ordering::Relaxed);
        }
        Some(given)
    }

    /// Like [`take`](Self::take), for blocks to be discarded on the device: no data is written to
    /// them.
    pub(super) fn take_to_discard(&self, least: u64, wanted: u64) -> Option<u64> {
        self.collect(wanted)
            .draw(least, wanted, Some(Held::Withheld))
    }

    /// Locks the common account. The cores' shares are added first if it has less than `wanted`.
    fn collect(&self, wanted: u64) -> MutexGuard<'_, Common> {
        let mut common = self.common.lock();
        if common.free < wanted {
            let cores = self.cores.iter();
            let cores = cores.map(|core| core.swap(0, Ordering::Relaxed));
            common.free += cores.sum::<u64>();
        }
        common
    }

    /// Returns blocks that were reserved and not placed.
    pub(super) fn put_back(&self, blocks: u64) {
        if blocks == 0 {
            return;
        }
        let mine = self.cores.mine();
        // Relaxed: the count orders nothing else.
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
        let short = common
            .node_reserve_wanted
            .saturating_sub(common.node_reserve);
        let node_reserve = blocks.min(short);
        common.node_reserve += node_reserve;
        let blocks = blocks - node_reserve;
        let short = common.withheld_wanted.saturating_sub(common.withheld);
        let withheld = blocks.min(short);
        common.withheld += withheld;
        common.free += blocks - withheld;
    }

    /// Withholds blocks, as far as they are free, and more as they become free. `wanted` gets the
    /// number of unreserved blocks, including those set aside for nodes. Returns how many are
    /// withheld.
    pub(super) fn withhold(&self, wanted: impl FnOnce(u64) -> u64) -> u64 {
        let mut common = self.collect(u64::MAX);
        common.free += std::mem::take(&mut common.withheld);
        common.withheld_wanted = wanted(common.free + common.node_reserve);
        common.withheld = common.withheld_wanted.min(common.free);
        common.free -= common.withheld;
        common.withheld
    }

    /// Withheld blocks.
    pub(super) fn withheld(&self) -> u64 {
        self.common.lock().withheld
    }

    /// Sets blocks aside for nodes, as far as they are free, and more as they become free. Returns
    /// how many there are.
    pub(super) fn set_node_reserve(&self, wanted: u64) -> u64 {
        let mut common = self.collect(u64::MAX);
        common.free += std::mem::take(&mut common.node_reserve);
        common.node_reserve_wanted = wanted;
        common.node_reserve = wanted.min(common.free);
        common.free -= common.node_reserve;
        common.node_reserve
    }

    /// Blocks that can be reserved for data, and blocks set aside for nodes.
    pub(super) fn balance(&self) -> (u64, u64) {
        let common = self.common.lock();
        let cores: u64 = self
            .cores
            .iter()
            .map(|core| core.load(Ordering::Relaxed))
            .sum();
        (common.free + cores, common.node_reserve)
    }
}

/// Subtracts `wanted` if there is that much.
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
