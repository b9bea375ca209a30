//! What operations may draw on of what is free: what was claimed, and what each core may claim without looking.
//!
//! Looking costs a walk over the counters of all cores. So a core that looks and finds plenty gets *credit*,
//! and pays with it for operations without looking. Credit is fetched back before anybody is refused for it.
//!
//! *Invariant.* An operation counts among the claims before it takes from its core's credit, and credit is taken in one
//! exchange. So a thread that fetched the credit back, and sums up the claims after that, has missed nothing.

use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_core::store::Class;
use holdfast_sync::{Padded, PerCore, ShardedCounter};

use super::cost::above;
use super::host::{Host, Image};
use crate::store::Inner;
use crate::store::memtable::Growth;
use crate::store::memtable::layers::{Layers, Roots};

/// What a core may change before it looks again whether there is room, in blocks: at least, and at most.
const CREDIT: u64 = 2048;
const CREDIT_MAX: u64 = 16 * CREDIT;
/// The part of what there is plenty of that one core gets.
const CREDIT_PART: u64 = 64;
/// The part of a volume that is set aside for nodes, and its bounds in blocks.
const RESERVE_PART: u64 = 16;
const RESERVE_MIN: u64 = 96;
const RESERVE_MAX: u64 = 16_384;

/// Blocks that are to be set aside of a volume of so many.
pub(in crate::store) fn reserve_wanted(total: u64) -> u64 {
    (total / RESERVE_PART).clamp(RESERVE_MIN, RESERVE_MAX)
}

/// What was claimed of a volume's free blocks for nodes, and of its journal.
#[derive(Debug, Default)]
pub(in crate::store) struct Pool {
    /// As long as a checkpoint takes less than this, nobody looks: half the blocks that were there at the last
    /// look, or all but the reserve, less what cores may have taken since.
    low_watermark: Padded<AtomicU64>,
    /// Blocks that each core may claim before it looks again.
    credit: PerCore<AtomicU64>,
    /// Blocks that operations under way have claimed for nodes.
    claims: ShardedCounter,
    /// Blocks of the journal that they have claimed.
    journal: ShardedCounter,
    /// What a sparse image has below it.
    pub(super) host: Host,
}

fn sum(counter: &ShardedCounter) -> u64 {
    u64::try_from(counter.sum()).unwrap_or(0)
}

/// Takes so much credit, if it is there.
#[inline]
fn take(credit: &AtomicU64, cost: u64) -> bool {
    // Release: what it is for was claimed before. Besides, only `fetch_credit` takes from it, and then all of it.
    let left = |left: u64| left.checked_sub(cost);
    credit
        .fetch_update(Ordering::Release, Ordering::Relaxed, left)
        .is_ok()
}

impl Pool {
    /// Blocks are claimed for nodes, and of the journal.
    pub(super) fn claim(&self, records: u64, journal: u64) {
        self.claims.add(records.cast_signed());
        self.journal.add(journal.cast_signed());
    }

    /// What was claimed is in the overlay and in the journal now, or is not needed.
    pub(super) fn unclaim(&self, records: u64, journal: u64) {
        self.claims.add(-records.cast_signed());
        self.journal.add(-journal.cast_signed());
    }

    /// Blocks of the journal that were claimed.
    pub(super) fn journal(&self) -> u64 {
        sum(&self.journal)
    }

    /// What all cores may claim without looking, and what was claimed.
    fn claimed(&self) -> u64 {
        let credits = self.credit.iter();
        let credits: u64 = credits.map(|credit| credit.load(Ordering::Relaxed)).sum();
        credits + sum(&self.claims)
    }

    /// Takes back what cores may claim without looking; was there any?
    #[cold]
    fn fetch_credit(&self) -> bool {
        // Acquire: pairs with `pay`, so that what was paid for is seen among the claims.
        let credits = self.credit.iter();
        let prefetched = credits.map(|credit| credit.swap(0, Ordering::Acquire));
        prefetched.fold(0, u64::saturating_add) > 0
    }

    /// So many free blocks are taken, or may be by somebody with credit for them.
    fn be_less_comfortable(&self, taken: u64) {
        let less = |low_watermark: u64| Some(low_watermark.saturating_sub(taken));
        let _ = self
            .low_watermark
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

impl Inner {
    /// Sets the reserve aside.
    pub(in crate::store) fn set_reserve(&self) {
        self.space.set_spare(self.reserve_wanted());
        self.look_at_host();
    }

    /// How the blocks of what may be an image are used.
    pub(super) fn image(&self) -> Image {
        let layout = self.superblock.lock().layout();
        let total = layout.capacity();
        Image {
            total,
            own: layout.end.saturating_sub(total),
            promised: self.promises.blocks(),
        }
    }

    /// Withholds what the host of an image has no room for; gives how many blocks that is.
    pub(in crate::store) fn look_at_host(&self) -> u64 {
        match self.blocks().room() {
            None if self.space.withheld() == 0 => 0,
            room => self.image().withhold(&self.space, room),
        }
    }

    /// As [`look_at_host`](Self::look_at_host), if the last look is too old.
    pub(in crate::store) fn look_at_host_in_time(&self) {
        if self.pool.host.is_due() {
            self.look_at_host();
        }
    }

    /// Blocks that are to be set aside.
    fn reserve_wanted(&self) -> u64 {
        let total = self.superblock.lock().blocks;
        reserve_wanted(total)
    }

    /// Lets the next request for room look how much there is.
    pub(in crate::store) fn look_for_room_again(&self) {
        self.pool.low_watermark.store(0, Ordering::Relaxed);
    }

    /// Pays with the core's credit, which may be given anew for this: so many blocks for nodes are claimed, and so many
    /// were taken for pages.
    #[inline]
    pub(super) fn pay(&self, records: u64, pages: u64) -> bool {
        let Some(credit) = self.pool.credit.own() else {
            // More threads than credits: this one has the caller look at the space each time.
            self.budget.look(self.freeze_barrier.pass().active.memory());
            return false;
        };
        let cost = records + pages;
        if take(credit, cost) {
            return true;
        }
        self.give_credit(credit, cost) && take(credit, cost)
    }

    /// Gives a core credit, if there is plenty.
    #[cold]
    fn give_credit(&self, credit: &AtomicU64, cost: u64) -> bool {
        credit.store(0, Ordering::Release);
        self.budget.look(self.freeze_barrier.pass().active.memory());
        let layers = self.freeze_barrier.pass();
        let wanted = self.wanted(&layers) + cost;
        // Relaxed: an estimate that each taking of space brings up to date.
        let low_watermark = || self.pool.low_watermark.load(Ordering::Relaxed);
        let plenty = wanted + CREDIT < low_watermark() || {
            self.look_at_host_in_time();
            self.look();
            wanted + CREDIT < low_watermark()
        };
        if !plenty {
            return false;
        }
        let given = (low_watermark() - wanted) / CREDIT_PART;
        let given = given.clamp(CREDIT, CREDIT_MAX);
        self.pool.be_less_comfortable(given);
        credit.store(given, Ordering::Release);
        true
    }

    /// What was claimed and paid for is not needed: the core has it back, as far as it has use for it.
    pub(super) fn pay_back(&self, blocks: u64) {
        if let Some(credit) = self.pool.credit.own() {
            let more = |left| Some(left + blocks).filter(|left| *left <= CREDIT);
            let _ = credit.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        }
    }

    /// Could all that changed, and all that was claimed, be folded into the trees, and leave somebody of this class the
    /// reserve that he must not touch?
    pub(super) fn has_room(&self, class: Class) -> bool {
        self.has_room_now(class) || self.pool.fetch_credit() && self.has_room_now(class)
    }

    fn has_room_now(&self, class: Class) -> bool {
        let layers = self.freeze_barrier.pass();
        let there = self.look();
        if self.wanted(&layers) > there {
            return false;
        }
        let reserve = match class {
            Class::Growing => self.reserve_wanted(),
            Class::Changing | Class::InPlace => self.reserve_wanted() / 2,
            Class::GivingBack => return true,
        };
        let kept = self.changed(&layers).kept(self.node_count());
        kept + self.pool.claimed() + reserve <= there
    }

    /// May an operation of this class take what it needs, though others may need as much? Of what operations under way
    /// have claimed they take a small part, so this is asked once all that changed was folded.
    pub(super) fn may_overdraw(&self, class: Class) -> bool {
        match class {
            Class::Growing | Class::Changing => false,
            Class::InPlace => {
                let kept = self
                    .changed(&self.freeze_barrier.pass())
                    .kept(self.node_count());
                kept + self.reserve_wanted() / 2 <= self.look()
            }
            Class::GivingBack => true,
        }
    }

    /// What all overlays hold.
    pub(super) fn changed(&self, layers: &Layers) -> Growth {
        let changed = layers.memtables().map(|memtable| memtable.growth());
        changed.fold(Growth::default(), std::ops::Add::add)
    }

    /// Interior nodes between a leaf and the root of the highest tree.
    #[inline]
    pub(super) fn above(&self) -> u64 {
        // Relaxed: it grows with a checkpoint, and what was claimed before is a node a key short of that; the reserve is for that.
        self.above.load(Ordering::Relaxed)
    }

    /// How high the trees are from now on.
    pub(in crate::store) fn note_height(&self, roots: &Roots) {
        self.above.store(above(roots), Ordering::Relaxed);
    }

    fn node_count(&self) -> u64 {
        // Relaxed: a thread that sees the number of the trees before looks at those too.
        self.nodes.load(Ordering::Relaxed)
    }

    /// Blocks that a checkpoint may take, with all that was claimed.
    fn wanted(&self, layers: &Layers) -> u64 {
        let changed = self.changed(layers);
        changed.blocks(&layers.roots, self.node_count()) + self.pool.claimed()
    }

    /// Blocks that a checkpoint finds.
    fn look(&self) -> u64 {
        let (mut free, aside) = self.space.balance();
        // What is set aside for files is given up for nodes, too.
        free += self.space.preallocated();
        let there = free + aside;
        let low_watermark = (there / 2).min(there.saturating_sub(self.reserve_wanted()));
        self.pool
            .low_watermark
            .store(low_watermark, Ordering::Relaxed);
        there
    }
}
