//! Making reservations, and making space for them.

use holdfast_core::store::{Class, Grant, Intent};

use super::cost::Cost;
use crate::error::{Error, Result};
use crate::space::{self, Extent, Remedy};
use crate::store::Inner;
use crate::store::memtable::TreeCost;

/// Attempts, as others may take the space that was made.
const ATTEMPTS: usize = 6;
/// Changed keys from which on a checkpoint may free some blocks.
const WORTH_FOLDING: u64 = 64;
/// The part of the journal left to operations that free space.
const JOURNAL_PART: u64 = 8;
/// Larger charges of the journal are checked against all other charges.
const JOURNAL_FEW: u64 = 4;

/// What is short.
enum Shortage {
    Pages(space::Error),
    Records,
    Journal,
}

impl Inner {
    /// Reserves all that an operation may need. Commits or checkpoints first, where that makes
    /// space.
    ///
    /// # Errors
    /// [`space::Error::Full`] if there is none: never for an operation that frees space, and not
    /// for one in place while half of the reserve is left. What stopped the store.
    pub(in crate::store) fn reserve(&self, intent: &Intent) -> Result<Grant> {
        self.reserve_blocks(&self.blocks_for(intent), intent.class)
    }

    /// As [`reserve`](Self::reserve), without making space: `None` if that is needed.
    pub(in crate::store) fn reserve_at_once(&self, intent: &Intent) -> Option<Grant> {
        self.try_to_reserve(&self.blocks_for(intent), intent.class)
            .ok()
    }

    /// Releases an unused reservation.
    pub(in crate::store) fn give_back(&self, held: Grant) {
        self.space.unreserve(held.pages);
        self.pool.uncharge(held.records, held.journal);
        self.pay_back(held.records);
    }

    /// Releases a used reservation: the memtable and the journal count the changes now.
    pub(in crate::store) fn used(&self, held: Grant) {
        self.pool.uncharge(held.records, held.journal);
    }

    /// Extends a reservation that is too small for the batch. That happens only where concurrent
    /// changes made the batch larger; the reserve covers it.
    pub(in crate::store) fn cover(&self, held: &mut Grant, tree_cost: TreeCost) -> Result<()> {
        let missing = tree_cost
            .blocks_at_most(self.above())
            .saturating_sub(held.records);
        if missing > 0 {
            let more = Grant {
                records: missing,
                ..Grant::NONE
            };
            held.records += self.reserve_blocks(&more, Class::GivingBack)?.records;
        }
        Ok(())
    }

    /// The worst case of these intentions.
    #[inline]
    fn blocks_for(&self, intent: &Intent) -> Grant {
        let cost = Cost::of(intent);
        Grant {
            pages: cost.pages,
            records: match cost.tree_cost {
                TreeCost { keys: 0, bytes: 0 } => 0,
                tree_cost => tree_cost.blocks_at_most(self.above()),
            },
            journal: cost.journal,
            ..Grant::NONE
        }
    }

    #[inline]
    fn reserve_blocks(&self, wanted: &Grant, class: Class) -> Result<Grant> {
        match self.try_to_reserve(wanted, class) {
            Ok(held) => Ok(held),
            Err(shortage) => self.reserve_in_the_end(wanted, class, shortage),
        }
    }

    #[inline]
    fn try_to_reserve(&self, wanted: &Grant, class: Class) -> Result<Grant, Shortage> {
        hop!();
        let Grant {
            pages,
            records,
            journal,
            ..
        } = *wanted;
        if pages > 0 {
            self.space.reserve_blocks(pages).map_err(Shortage::Pages)?;
        }
        // Charge before the check: of two threads that charge the same space, at least one sees
        // both claims.
        self.pool.charge(records, journal);
        let paid = self.pay(records, pages);
        let shortage = if !paid && !self.has_room(class) {
            Shortage::Records
        } else if !self.journal_has_room(journal, class) {
            Shortage::Journal
        } else {
            #[cfg(test)]
            self.recorder.keep(wanted);
            return Ok(*wanted);
        };
        self.space.unreserve(pages);
        self.pool.uncharge(records, journal);
        if paid {
            self.pay_back(records);
        }
        Err(shortage)
    }

    /// Has the journal room for all charges, which include `blocks`?
    fn journal_has_room(&self, blocks: u64, class: Class) -> bool {
        let block = crate::block::BLOCK as u64;
        let (used, capacity) = (self.journal.used() / block, self.journal.capacity() / block);
        if blocks <= JOURNAL_FEW && used < capacity / 2 {
            return true;
        }
        let left = match class {
            Class::GivingBack => 0,
            _ => capacity / JOURNAL_PART,
        };
        used + self.pool.journal() + left <= capacity
    }

    #[cold]
    fn reserve_in_the_end(
        &self,
        wanted: &Grant,
        class: Class,
        mut shortage: Shortage,
    ) -> Result<Grant> {
        let _waits = self.counters.writer_waits.begin();
        for _ in 0..ATTEMPTS {
            if !self.make_room(&shortage)? {
                break;
            }
            match self.try_to_reserve(wanted, class) {
                Ok(held) => return Ok(held),
                Err(still) => shortage = still,
            }
        }
        if class != Class::GivingBack
            && self.ask_host_for_room()?
            && let Ok(held) = self.try_to_reserve(wanted, class)
        {
            return Ok(held);
        }
        match shortage {
            Shortage::Pages(error) => Err(error.into()),
            _ if self.may_overdraw(class) => {
                self.pool.charge(wanted.records, wanted.journal);
                Ok(Grant {
                    pages: 0,
                    ..*wanted
                })
            }
            Shortage::Records | Shortage::Journal => Err(Error::Space(space::Error::Full {
                wanted: wanted.records,
                free: self.space.balance().0,
            })),
        }
    }

    /// Makes space; `false`: nothing helps.
    fn make_room(&self, shortage: &Shortage) -> Result<bool> {
        self.running()?;
        let changed = || self.changed(&self.freeze_barrier.pass()).keys;
        match shortage {
            Shortage::Pages(space::Error::Later { remedy }) => match remedy {
                Remedy::Commit => self.make_durable(None)?,
                Remedy::Checkpoint => self.checkpoint()?,
            },
            // Pages that were overwritten in cache or dropped leave reservations.
            Shortage::Pages(_) if self.page_reservations.blocks() > 0 => self.make_durable(None)?,
            Shortage::Pages(_) if changed() >= WORTH_FOLDING => self.checkpoint()?,
            Shortage::Pages(_) => return Ok(false),
            Shortage::Records => {
                let has_preallocations = self.space.preallocated() > 0;
                if has_preallocations {
                    self.space.sweep(u64::MAX);
                }
                let waits = self.page_reservations.blocks() > 0 || self.space.has_deferred();
                if !has_preallocations && !waits && changed() == 0 {
                    return Ok(false);
                }
                self.checkpoint()?;
            }
            Shortage::Journal => self.checkpoint()?,
        }
        Ok(true)
    }

    /// Looks for new free space on an image's host, or makes some by discarding all free blocks.
    ///
    /// # Errors
    /// What stopped the store; those of the device, unless it takes no discards.
    #[cold]
    fn ask_host_for_room(&self) -> Result<bool> {
        let before = self.space.withheld();
        let withheld = self.look_at_host();
        if withheld < before {
            return Ok(true);
        }
        // Free blocks with host space; which they are is unknown.
        let excess = || {
            let (unpromised, for_nodes) = self.space.balance();
            let ours = unpromised + for_nodes + self.space.withheld();
            let room = self.blocks().room();
            room.map_or(0, |room| self.image().excess(room, ours))
        };
        let host = &self.pool.host;
        if withheld == 0 || !host.is_discard_worthwhile(excess()) {
            return Ok(false);
        }
        self.let_go()?;
        let discard = |extent: Extent| self.blocks().discard(extent.start, extent.length);
        match self.space.trim(Extent::new(0, u64::MAX), 1, discard) {
            Ok(_) => host.set_kept(excess()),
            Err(Error::NoDiscard { .. }) => host.set_kept(u64::MAX),
            Err(error) => return Err(error),
        }
        Ok(self.look_at_host() < withheld)
    }
}
