use super::{Error, Space};
use crate::space_primitive::{AtomicU64, Mutex, Ordering};
use holdfast_sync::PerCore;
use std::sync::Arc;

/// Blocks that a core takes from the common account at once.
const CHUNK: u64 = 256;

/// How many free blocks are promised to nobody.
///
/// Some are on the common account, some set aside for nodes, some with the cores, so that small
/// promises meet no line of another core.
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
            }),
            cores: PerCore::new(|| AtomicU64::new(0)),
        }
    }

    /// Takes as many blocks as there are, at most `wanted`, at least `least` (else none).
    pub(super) fn take(&self, least: u64, wanted: u64, kind: Kind) -> Option<u64> {
        if kind == Kind::Data && wanted < CHUNK && take_all(self.cores.mine(), wanted) {
            return Some(wanted);
        }
        let mut common = self.common.lock();
        if common.free < wanted {
            common.free += self
                .cores
                .iter()
                .map(|core| core.swap(0, Ordering::Relaxed))
                .sum::<u64>();
        }
        let spare = if kind == Kind::Node { common.spare } else { 0 };
        let given = wanted.min(common.free + spare);
        if given < least || given == 0 {
            return None;
        }
        let from_free = given.min(common.free);
        common.free -= from_free;
        common.spare -= given - from_free;
        if kind == Kind::Data && given == wanted && wanted < CHUNK && common.free > 16 * CHUNK {
            common.free -= CHUNK;
            self.cores.mine().fetch_add(CHUNK, Ordering::Relaxed);
        }
        Some(given)
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
        common.free += blocks - spare;
    }

    /// Sets aside so many blocks for nodes, as far as they are there; more as they become free.
    /// Gives back how many are.
    pub(super) fn set_spare(&self, wanted: u64) -> u64 {
        let mut common = self.common.lock();
        common.free += self
            .cores
            .iter()
            .map(|core| core.swap(0, Ordering::Relaxed))
            .sum::<u64>();
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

    /// Adds a promise of `more` blocks.
    ///
    /// # Errors
    /// Those of [`Space::reserve`]; the promise stays as it was.
    pub fn grow(&mut self, more: u64) -> Result<(), Error> {
        self.space.promise(more)?;
        self.blocks += more;
        Ok(())
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
