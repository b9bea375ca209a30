//! The pool of free blocks: charges of operations in progress, and allowances of cores.
//!
//! A check of the pool sums the counters of all cores. So a core that finds plenty of space takes
//! an *allowance*, and pays for operations with it without a check. All allowances are revoked
//! before an operation is refused.
//!
//! *Invariant.* An operation adds its charge before it takes from its core's allowance, and that is
//! taken by one atomic exchange. So a thread that revokes all allowances, and then sums up the
//! charges, misses nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_core::store::{Class, Grant};
use holdfast_sync::{Padded, PerCore, ShardedCounter};

use super::PageReservations;
use super::budget::Budget;
use super::cost::above;
use super::host::{Host, Image};
use crate::space::{self, Space};
use crate::store::load::{Blocks, StoreReader};
use crate::store::memtable::{Layers, Roots};

/// Allowance of a core in blocks: at least, and at most.
const ALLOWANCE: u64 = 2048;
const ALLOWANCE_MAX: u64 = 16 * ALLOWANCE;
/// The part of the surplus that a core gets as allowance.
const ALLOWANCE_PART: u64 = 64;
/// The part of a volume that is set aside for nodes, and its bounds in blocks.
const RESERVE_PART: u64 = 16;
const RESERVE_MIN: u64 = 96;
const RESERVE_MAX: u64 = 16_384;

/// The reserve of a volume of so many blocks.
pub(in crate::store) fn reserve_wanted(total: u64) -> u64 {
    (total / RESERVE_PART).clamp(RESERVE_MIN, RESERVE_MAX)
}

/// Charges of free blocks for nodes, and of the journal.
#[derive(Debug)]
pub(in crate::store) struct Pool {
    space: Arc<Space>,
    pub(in crate::store) page_reservations: PageReservations,
    /// Nodes of all trees.
    pub(in crate::store) nodes: AtomicU64,
    /// Interior nodes between the root of the highest tree and a leaf.
    above: AtomicU64,
    /// While a checkpoint takes less than this, no check is needed: half of the blocks at the last
    /// check, or all but the reserve, less allowances given since.
    low_watermark: Padded<AtomicU64>,
    /// Blocks that each core may charge without a check.
    allowance: PerCore<AtomicU64>,
    /// Blocks charged for nodes by operations in progress.
    charges: ShardedCounter,
    /// Blocks of the journal charged by them.
    journal: ShardedCounter,
    /// The free space below a sparse image.
    pub(in crate::store) host: Host,
}

fn sum(counter: &ShardedCounter) -> u64 {
    u64::try_from(counter.sum()).unwrap_or(0)
}

#[inline]
fn take(allowance: &AtomicU64, cost: u64) -> bool {
    // Release: the charge precedes it. Besides, only `revoke_allowances` takes from it, and then
    // all of it.
    let left = |left: u64| left.checked_sub(cost);
    allowance
        .fetch_update(Ordering::Release, Ordering::Relaxed, left)
        .is_ok()
}

impl Pool {
    pub(in crate::store) fn new(space: &Arc<Space>) -> Result<Self, space::Error> {
        Ok(Self {
            space: Arc::clone(space),
            page_reservations: PageReservations::new(space)?,
            nodes: AtomicU64::default(),
            above: AtomicU64::default(),
            low_watermark: Padded::default(),
            allowance: PerCore::default(),
            charges: ShardedCounter::default(),
            journal: ShardedCounter::default(),
            host: Host::default(),
        })
    }

    /// Charges blocks for nodes, and of the journal.
    pub(in crate::store) fn charge(&self, records: u64, journal: u64) {
        self.charges.add(records.cast_signed());
        self.journal.add(journal.cast_signed());
    }

    /// Drops charges: the changes were made, or are not needed.
    pub(in crate::store) fn uncharge(&self, records: u64, journal: u64) {
        self.charges.add(-records.cast_signed());
        self.journal.add(-journal.cast_signed());
    }

    /// Charged blocks of the journal.
    pub(in crate::store) fn journal(&self) -> u64 {
        sum(&self.journal)
    }

    /// Allowances of all cores, and all charges.
    fn charged(&self) -> u64 {
        let allowances = self.allowance.iter();
        let allowances: u64 = allowances
            .map(|allowance| allowance.load(Ordering::Relaxed))
            .sum();
        allowances + sum(&self.charges)
    }

    /// Revokes all allowances; was there any?
    #[cold]
    fn revoke_allowances(&self) -> bool {
        // Acquire: pairs with `take`, so that what was paid for is seen among the charges.
        let allowances = self.allowance.iter();
        let prefetched = allowances.map(|allowance| allowance.swap(0, Ordering::Acquire));
        prefetched.fold(0, u64::saturating_add) > 0
    }

    /// Blocks were taken, or given as allowance.
    fn be_less_comfortable(&self, taken: u64) {
        let less = |low_watermark: u64| Some(low_watermark.saturating_sub(taken));
        let _ = self
            .low_watermark
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Sets the reserve aside.
    pub(in crate::store) fn set_reserve(&self, blocks: &Blocks) {
        self.space.set_node_reserve(self.reserve_wanted());
        self.look_at_host(blocks);
    }

    /// Use of the blocks of what may be an image.
    pub(in crate::store) fn image(&self) -> Image {
        let layout = self.space.layout();
        let total = layout.capacity();
        Image {
            total,
            own: layout.end.saturating_sub(total),
            reserved: self.page_reservations.blocks(),
        }
    }

    /// Withholds what an image's host has no space for; returns the number of blocks.
    pub(in crate::store) fn look_at_host(&self, blocks: &Blocks) -> u64 {
        match blocks.room() {
            None if self.space.withheld() == 0 => 0,
            room => self.image().withhold(&self.space, room),
        }
    }

    /// As [`look_at_host`](Self::look_at_host), unless the last look is recent.
    pub(in crate::store) fn look_at_host_in_time(&self, blocks: &Blocks) {
        if self.host.is_due() {
            self.look_at_host(blocks);
        }
    }

    /// The size of the reserve.
    fn reserve_wanted(&self) -> u64 {
        reserve_wanted(self.space.layout().end)
    }

    /// Has the next request check the pool.
    pub(in crate::store) fn reset_low_watermark(&self) {
        self.low_watermark.store(0, Ordering::Relaxed);
    }

    /// Pays for a charge of `records` and an allocation of `pages` with the core's allowance, which
    /// may be renewed for this.
    #[inline]
    pub(in crate::store) fn pay(
        &self,
        reader: &StoreReader,
        budget: &Budget,
        records: u64,
        pages: u64,
    ) -> bool {
        let Some(allowance) = self.allowance.own() else {
            // No slot for this thread: its caller checks the pool each time.
            budget.look(reader.freeze_barrier.pass().active.memory());
            return false;
        };
        let cost = records + pages;
        if take(allowance, cost) {
            return true;
        }
        self.renew_allowance(reader, budget, allowance, cost) && take(allowance, cost)
    }

    /// Renews a core's allowance, if there is plenty.
    #[cold]
    fn renew_allowance(
        &self,
        reader: &StoreReader,
        budget: &Budget,
        allowance: &AtomicU64,
        cost: u64,
    ) -> bool {
        allowance.store(0, Ordering::Release);
        budget.look(reader.freeze_barrier.pass().active.memory());
        let layers = reader.freeze_barrier.pass();
        let wanted = self.wanted(&layers) + cost;
        // Relaxed: an estimate, renewed by each check.
        let low_watermark = || self.low_watermark.load(Ordering::Relaxed);
        let plenty = wanted + ALLOWANCE < low_watermark() || {
            self.look_at_host_in_time(reader.blocks());
            self.look();
            wanted + ALLOWANCE < low_watermark()
        };
        if !plenty {
            return false;
        }
        let given = (low_watermark() - wanted) / ALLOWANCE_PART;
        let given = given.clamp(ALLOWANCE, ALLOWANCE_MAX);
        self.be_less_comfortable(given);
        allowance.store(given, Ordering::Release);
        true
    }

    /// Releases an unused reservation.
    pub(in crate::store) fn give_back(&self, held: &Grant) {
        self.space.unreserve(held.pages);
        self.uncharge(held.records, held.journal);
        self.pay_back(held.records);
    }

    /// Returns unused allowance to the core, up to a limit.
    pub(in crate::store) fn pay_back(&self, blocks: u64) {
        if let Some(allowance) = self.allowance.own() {
            let more = |left| Some(left + blocks).filter(|left| *left <= ALLOWANCE);
            let _ = allowance.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        }
    }

    /// Can all changes and charges be checkpointed, and leave the part of the reserve that this
    /// class must not touch?
    pub(in crate::store) fn has_room(&self, reader: &StoreReader, class: Class) -> bool {
        self.has_room_now(reader, class)
            || self.revoke_allowances() && self.has_room_now(reader, class)
    }

    fn has_room_now(&self, reader: &StoreReader, class: Class) -> bool {
        let layers = reader.freeze_barrier.pass();
        let there = self.look();
        if self.wanted(&layers) > there {
            return false;
        }
        let reserve = match class {
            Class::Growing => self.reserve_wanted(),
            Class::Changing | Class::InPlace => self.reserve_wanted() / 2,
            Class::GivingBack => return true,
        };
        let kept = layers.tree_cost().kept(self.node_count());
        kept + self.charged() + reserve <= there
    }

    /// May an operation of this class proceed although all charges together exceed the space?
    /// Claims are worst cases, so this is decided after a checkpoint.
    pub(in crate::store) fn may_overdraw(&self, reader: &StoreReader, class: Class) -> bool {
        match class {
            Class::Growing | Class::Changing => false,
            Class::InPlace => {
                let changed = reader.freeze_barrier.pass().tree_cost();
                let kept = changed.kept(self.node_count());
                kept + self.reserve_wanted() / 2 <= self.look()
            }
            Class::GivingBack => true,
        }
    }

    /// Interior nodes between a leaf and the root of the highest tree.
    #[inline]
    pub(in crate::store) fn above(&self) -> u64 {
        // Relaxed: a checkpoint may raise it, and earlier charges are then a node a key short. The
        // reserve covers that.
        self.above.load(Ordering::Relaxed)
    }

    /// Notes the height of the trees.
    pub(in crate::store) fn note_height(&self, roots: &Roots) {
        self.above.store(above(roots), Ordering::Relaxed);
    }

    fn node_count(&self) -> u64 {
        // Relaxed: a thread that sees an old count sees the old trees too.
        self.nodes.load(Ordering::Relaxed)
    }

    /// Blocks that a checkpoint may take, with all charges.
    fn wanted(&self, layers: &Layers) -> u64 {
        let changed = layers.tree_cost();
        changed.blocks(&layers.roots, self.node_count()) + self.charged()
    }

    /// Blocks that a checkpoint can use; also renews the low watermark.
    fn look(&self) -> u64 {
        let (mut free, reserve) = self.space.balance();
        // Preallocations are given up for nodes, too.
        free += self.space.preallocated();
        let there = free + reserve;
        let low_watermark = (there / 2).min(there.saturating_sub(self.reserve_wanted()));
        self.low_watermark.store(low_watermark, Ordering::Relaxed);
        there
    }
}
