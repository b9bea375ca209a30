//! Asking for room, and what makes some.

use holdfast_core::store::{Class, Grant, Intent};

use super::cost::Cost;
use crate::space::{self, Extent, Remedy};
use crate::store::Inner;
use crate::store::memtable::Growth;
use crate::{Error, Result};

/// How often what others took meanwhile is fetched again.
const ATTEMPTS: usize = 6;
/// Keys that changed since the last checkpoint, from which on it may free some blocks.
const WORTH_FOLDING: u64 = 64;
/// The part of the journal that is left to operations that give back.
const JOURNAL_PART: u64 = 8;
/// Blocks of the journal from which on all that was claimed of it is counted, however much is left.
const JOURNAL_FEW: u64 = 4;

/// What there is not enough of.
enum Lack {
    Pages(space::Error),
    Records,
    Journal,
}

impl Inner {
    /// Keeps room for all that an operation may need. Makes some first, where a commit or a checkpoint would.
    ///
    /// # Errors
    /// [`space::Error::Full`] if there is none: never for an operation that gives back, and not for one in place as long as
    /// half of the reserve is left. What stopped the store.
    pub(in crate::store) fn reserve(&self, intent: &Intent) -> Result<Grant> {
        self.reserve_blocks(&self.blocks_for(intent), intent.class)
    }

    /// As [`reserve`](Self::reserve), without making any: `None` if that would be needed.
    pub(in crate::store) fn reserve_at_once(&self, intent: &Intent) -> Option<Grant> {
        self.try_to_reserve(&self.blocks_for(intent), intent.class)
            .ok()
    }

    /// Takes back what was kept and is not used.
    pub(in crate::store) fn give_back(&self, held: Grant) {
        self.space.unpromise(held.pages);
        self.pool.unclaim(held.records, held.journal);
        self.pay_back(held.records);
    }

    /// What was kept for a batch is used: it counts in the overlay and in the journal now.
    pub(in crate::store) fn used(&self, held: Grant) {
        self.pool.unclaim(held.records, held.journal);
    }

    /// Makes sure that enough was kept for a batch. Always, but where others changed what it is about meanwhile: it brings
    /// what they made of it. The reserve is for that, too.
    pub(in crate::store) fn cover(&self, held: &mut Grant, growth: Growth) -> Result<()> {
        let missing = growth
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

    /// What is to be kept for these intentions.
    #[inline]
    fn blocks_for(&self, intent: &Intent) -> Grant {
        let cost = Cost::of(intent);
        Grant {
            pages: cost.pages,
            records: match cost.growth {
                Growth { keys: 0, bytes: 0 } => 0,
                growth => growth.blocks_at_most(self.above()),
            },
            journal: cost.journal,
            ..Grant::NONE
        }
    }

    #[inline]
    fn reserve_blocks(&self, wanted: &Grant, class: Class) -> Result<Grant> {
        match self.try_to_reserve(wanted, class) {
            Ok(held) => Ok(held),
            Err(lack) => self.reserve_in_the_end(wanted, class, lack),
        }
    }

    #[inline]
    fn try_to_reserve(&self, wanted: &Grant, class: Class) -> Result<Grant, Lack> {
        let Grant {
            pages,
            records,
            journal,
            ..
        } = *wanted;
        if pages > 0 {
            self.space.promise(pages).map_err(Lack::Pages)?;
        }
        // Before it looks: of two threads that claim the same, one at least sees both claims.
        self.pool.claim(records, journal);
        let paid = self.pay(records, pages);
        let lack = if !paid && !self.has_room(class) {
            Lack::Records
        } else if !self.journal_has_room(journal, class) {
            Lack::Journal
        } else {
            #[cfg(test)]
            self.ledger.keep(wanted);
            return Ok(*wanted);
        };
        self.space.unpromise(pages);
        self.pool.unclaim(records, journal);
        if paid {
            self.pay_back(records);
        }
        Err(lack)
    }

    /// Is there room in the journal for all that was claimed, these blocks among it?
    fn journal_has_room(&self, blocks: u64, class: Class) -> bool {
        let block = crate::BLOCK as u64;
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
    fn reserve_in_the_end(&self, wanted: &Grant, class: Class, mut lack: Lack) -> Result<Grant> {
        let _waits = self.tallies.writer_waits.begin();
        for _ in 0..ATTEMPTS {
            if !self.make_room(&lack)? {
                break;
            }
            match self.try_to_reserve(wanted, class) {
                Ok(held) => return Ok(held),
                Err(still) => lack = still,
            }
        }
        if class != Class::GivingBack
            && self.ask_host_for_room()?
            && let Ok(held) = self.try_to_reserve(wanted, class)
        {
            return Ok(held);
        }
        match lack {
            Lack::Pages(error) => Err(error.into()),
            _ if self.may_overdraw(class) => {
                self.pool.claim(wanted.records, wanted.journal);
                Ok(Grant {
                    pages: 0,
                    ..*wanted
                })
            }
            Lack::Records | Lack::Journal => Err(Error::Space(space::Error::Full {
                wanted: wanted.records,
                free: self.space.balance().0,
            })),
        }
    }

    /// Does what may bring what is lacking; `false`: nothing would.
    fn make_room(&self, lack: &Lack) -> Result<bool> {
        self.running()?;
        let changed = || self.changed(&self.freeze_barrier.pass()).keys;
        match lack {
            Lack::Pages(space::Error::Later { remedy }) => match remedy {
                Remedy::Commit => self.make_durable(None)?,
                Remedy::Checkpoint => self.checkpoint()?,
            },
            // Pages that wait no longer were promised some.
            Lack::Pages(_) if self.promises.blocks() > 0 => self.make_durable(None)?,
            Lack::Pages(_) if changed() >= WORTH_FOLDING => self.checkpoint()?,
            Lack::Pages(_) => return Ok(false),
            Lack::Records => {
                let aside = self.space.preallocated() > 0;
                if aside {
                    self.space.give_up();
                }
                let waits = self.promises.blocks() > 0 || self.space.has_deferred();
                if !aside && !waits && changed() == 0 {
                    return Ok(false);
                }
                self.checkpoint()?;
            }
            Lack::Journal => self.checkpoint()?,
        }
        Ok(true)
    }

    /// Has the host of an image room for more than it had at the last look, or has it once it was told which blocks are free?
    ///
    /// # Errors
    /// What stopped the store; those of the device. One that takes no discards is none.
    #[cold]
    fn ask_host_for_room(&self) -> Result<bool> {
        let before = self.space.withheld();
        let withheld = self.look_at_host();
        if withheld < before {
            return Ok(true);
        }
        // Free blocks that have room, of which nobody knows where they are.
        let excess = || {
            let (unpromised, spare) = self.space.balance();
            let ours = unpromised + spare + self.space.withheld();
            let room = self.blocks().room();
            room.map_or(0, |room| self.image().excess(room, ours))
        };
        let host = &self.pool.host;
        if withheld == 0 || !host.is_worth_telling(excess()) {
            return Ok(false);
        }
        self.let_go()?;
        let discard = |extent: Extent| self.blocks().discard(extent.start, extent.length);
        match self.space.trim(Extent::new(0, u64::MAX), 1, discard) {
            Ok(_) => host.was_told(excess()),
            Err(Error::NoDiscard { .. }) => host.was_told(u64::MAX),
            Err(error) => return Err(error),
        }
        Ok(self.look_at_host() < withheld)
    }
}
