//! Keeping writers from outrunning the device, and from taking the room that a checkpoint needs.
//!
//! *Invariant.* Free blocks, with those set aside for nodes, are as many as the next checkpoint may
//! take, and each core's *credit*: it has looked already whether there is room for so much, and pays with
//! it for batches without looking. A batch that would break this waits for a checkpoint, after which little is needed. If
//! that does not help, there is no space: who asks before he changes anything is told so, and the others
//! (who remove names, above all) have what was set aside.

use std::ops::Add;
use std::sync::LazyLock;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use holdfast_core::store::Space as Wanted;

use super::early::EARLY_MIN;
use super::growth::Growth;
use super::layers::Layers;
use super::{Inner, VolumeStore};
use crate::space::{self, Remedy};
use crate::{BLOCK, Result};

/// Pages that may wait to be written, however large the journal is: a part of the memory, within
/// bounds (128 MiB, 1 GiB). From half of them on they are on their way, or earlier ([`Patience`](super::patience::Patience)).
/// The more wait, the more of them lie side by side, and the fewer are written twice.
static DIRTY_MAX: LazyLock<u64> = LazyLock::new(|| {
    let system = rustix::system::sysinfo();
    let memory = system.totalram as u64 * u64::from(system.mem_unit);
    (memory / BLOCK as u64 / 16).clamp(32_768, 262_144)
});
/// Bytes of the journal that a page's place takes at most.
const MAP_MAX: u64 = 32;
/// As long a writer waits for the volume's thread.
const HELP_MAX: Duration = Duration::from_secs(1);
/// The part of the journal that is left to commits.
const COMMITS_PART: u64 = 8;
/// What a core may change before it looks again whether there is room, in blocks.
const CREDIT: u64 = 2048;
/// How often what others took meanwhile is fetched again.
const ATTEMPTS: usize = 4;
/// The part of a volume that is set aside for nodes, and its bounds in blocks.
const ASIDE_PART: u64 = 16;
const ASIDE_MIN: u64 = 96;
const ASIDE_MAX: u64 = 16_384;
/// What may be changed without asking, beyond what was: an operation that adds a name, or a value.
const UNASKED: Growth = Growth {
    keys: 8,
    bytes: 16 << 10,
};

impl VolumeStore {
    /// Waits until there is room for another batch in the journal, for its checkpoint, and in memory if it `writes`
    /// bytes of files.
    pub(super) fn throttle(&self, growth: Growth, writes: bool) -> Result<()> {
        let inner = &self.inner;
        let (used, capacity) = (inner.journal.used(), inner.journal.capacity());
        if used > capacity / 2 {
            self.worker.ask_to_fold();
        }
        if used > capacity - capacity / 8 || !inner.takes_room(growth) {
            inner.checkpoint()?;
        }
        self.keep_budget()?;
        if writes {
            self.look_at_waiting()?;
        }
        Ok(())
    }

    /// Lets pages that wait be written if they are many, and waits for that if they are too many.
    pub(super) fn look_at_waiting(&self) -> Result<()> {
        let inner = &self.inner;
        let (dirty, ready, early) = inner.waiting();
        let most = inner.dirty_max();
        if dirty > most {
            self.wait_for_a_commit(most)?;
        } else if dirty > most / 2 || inner.patience.ends(dirty, ready) {
            // While it is at work there is room for as much again.
            self.worker.ask_to_commit();
        } else if early >= EARLY_MIN {
            self.worker.ask_to_write_early();
        }
        Ok(())
    }

    /// Waits if pages that wait are many, before more are promised room: a commit keeps the promises of those who are
    /// under way, but not for ever, so no writer should have to wait for one behind that.
    pub(super) fn relieve(&self) -> Result<()> {
        let enough = self.inner.dirty_max() / 8 * 7;
        if self.inner.waiting().0 > enough {
            self.wait_for_a_commit(enough)?;
        }
        Ok(())
    }

    /// Waits until no more pages than `enough` wait to be written: until a commit has taken them, not until it has
    /// written them. So whoever writes goes on beside the volume's thread, with as much on its way as may wait. If that
    /// thread comes to nothing, because it cannot run or the device is slow, the commit is made here.
    fn wait_for_a_commit(&self, enough: u64) -> Result<()> {
        let inner = &self.inner;
        let until = Instant::now() + HELP_MAX;
        while inner.waiting().0 > enough {
            inner.running()?;
            if inner.checkpointing.is_locked() {
                // That takes long, and leaves commits to others.
                return inner.make_durable(None);
            }
            // What is asked for while it is busy is forgotten when that ends, and asked for again then.
            let seen = inner.progress.steps();
            self.worker.ask_to_commit();
            if inner.waiting().0 > enough && !inner.progress.wait_behind(seen, until) {
                return inner.make_durable(None);
            }
        }
        Ok(())
    }
}

impl Inner {
    /// Sets space aside for the nodes of checkpoints.
    pub(super) fn set_aside(&self) {
        self.space.set_spare(self.wanted_aside());
    }

    fn wanted_aside(&self) -> u64 {
        let total = self.superblock.lock().blocks;
        (total / ASIDE_PART).clamp(ASIDE_MIN, ASIDE_MAX)
    }

    /// As [`Self::has_room`], for what is about to be changed: mostly paid with the core's credit.
    fn takes_room(&self, growth: Growth) -> bool {
        let cost = growth.blocks_at_most();
        self.pay(cost, cost, growth) || self.has_room(growth)
    }

    /// Spends so much of the core's credit, which may be given anew for this, if `cost` is there.
    fn pay(&self, spent: u64, cost: u64, growth: Growth) -> bool {
        let Some(credit) = self.credit.own() else {
            return false;
        };
        // Relaxed: nobody else writes it.
        let mut left = credit.load(Ordering::Relaxed);
        if left < cost {
            credit.store(0, Ordering::Relaxed);
            self.budget.look(self.gate.pass().active.growth());
            if !self.is_comfortable(growth) {
                return false;
            }
            self.be_less_comfortable(CREDIT);
            credit.store(CREDIT, Ordering::Relaxed);
            left = CREDIT;
        }
        if left < cost {
            return false;
        }
        credit.store(left - spent, Ordering::Relaxed);
        true
    }

    /// Could this be asked of the core's credit?
    fn has_credit(&self, cost: u64) -> bool {
        let credit = self.credit.own();
        credit.is_some_and(|credit| credit.load(Ordering::Relaxed) >= cost)
    }

    /// So many free blocks are taken, or may be by somebody with credit for them.
    fn be_less_comfortable(&self, taken: u64) {
        let less = |comfort: u64| Some(comfort.saturating_sub(taken));
        let _ = self
            .comfort
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// What all cores may change without looking, in blocks.
    fn credits(&self) -> u64 {
        let credits = self.credit.iter();
        credits.map(|credit| credit.load(Ordering::Relaxed)).sum()
    }

    /// Is there so much room that a core need not look, for this and its credit?
    fn is_comfortable(&self, growth: Growth) -> bool {
        let layers = self.gate.pass();
        let wanted = self.wanted(&layers, growth) + CREDIT;
        // Relaxed: an estimate that everybody who takes space brings up to date.
        wanted < self.comfort.load(Ordering::Relaxed) || wanted < self.look() / 2
    }

    /// Could all that changed be folded into the trees, with this in addition?
    fn has_room(&self, growth: Growth) -> bool {
        let layers = self.gate.pass();
        let wanted = self.wanted(&layers, growth);
        wanted < self.comfort.load(Ordering::Relaxed) || wanted <= self.look()
    }

    /// Blocks that a checkpoint may take, with this in addition, and what cores may change unseen.
    fn wanted(&self, layers: &Layers, growth: Growth) -> u64 {
        let changed = layers.overlays().map(|overlay| overlay.growth());
        let changed = changed.fold(growth, Add::add);
        // Relaxed: who sees the number of the trees before looks at those too.
        let nodes = self.nodes.load(Ordering::Relaxed);
        changed.blocks(&layers.roots, nodes) + self.credits()
    }

    /// Blocks that a checkpoint finds.
    fn look(&self) -> u64 {
        let (mut free, aside) = self.space.balance();
        // What is set aside for files is given up for nodes, too.
        free += self.space.preallocated();
        // What a core has credit for it may take without a word.
        let sure = (free + aside).saturating_sub(self.credits());
        self.comfort.store(sure / 2, Ordering::Relaxed);
        free + aside
    }

    /// Lets the next one who asks for room look how much there is.
    pub(super) fn look_for_room_again(&self) {
        self.comfort.store(0, Ordering::Relaxed);
    }

    /// Promises space to an operation, before anything is changed.
    pub(super) fn reserve(&self, wanted: Wanted) -> Result<()> {
        if wanted.pages > 0 {
            // One more: the bytes of a small file need a block once it is no longer small.
            self.promise(wanted.pages + 1)?;
        }
        let growth = Growth {
            keys: UNASKED.keys + 3 * wanted.inodes + wanted.pages,
            bytes: UNASKED.bytes + 512 * wanted.inodes + 32 * wanted.pages,
        };
        let cost = growth.blocks_at_most();
        if wanted.pages == 0 {
            if self.has_credit(cost) || self.has_room(growth) {
                return Ok(());
            }
        } else {
            // Blocks that were free are promised now.
            let taken = wanted.pages + 1;
            if self.pay(taken, taken + cost, growth) {
                return Ok(());
            }
            self.be_less_comfortable(taken);
            if self.has_room(growth) {
                return Ok(());
            }
        }
        self.space.give_up();
        self.checkpoint()?;
        // What was set aside must be whole, or there would be none to remove names with.
        let aside = self.space.balance().1;
        if self.has_room(growth) && aside >= self.wanted_aside() / 4 * 3 {
            return Ok(());
        }
        drop(self.promises.mine().split(wanted.pages + 1));
        let free = self.space.balance().0;
        let wanted = wanted.pages;
        Err(space::Error::Full { wanted, free }.into())
    }

    /// Pages that wait to be written, those of them that a commit may take now, and those that may go early.
    pub(super) fn waiting(&self) -> (u64, u64, u64) {
        let layers = self.gate.pass();
        let active = &layers.active;
        (active.dirty(), active.ready(), active.early())
    }

    /// Pages that may wait.
    fn dirty_max(&self) -> u64 {
        let journal = self.journal.capacity() / COMMITS_PART / MAP_MAX;
        DIRTY_MAX.min(journal).min(self.budget.pages())
    }

    /// Promises blocks for pages that are about to be written.
    fn promise(&self, blocks: u64) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let grown = self.promises.mine().grow(blocks);
            match grown {
                Ok(()) => return Ok(()),
                Err(space::Error::Later { remedy }) => self.make_room(remedy)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.promises.mine().grow(blocks)?)
    }

    fn make_room(&self, remedy: Remedy) -> Result<()> {
        match remedy {
            Remedy::Commit => self.make_durable(None),
            Remedy::Checkpoint => self.checkpoint(),
        }
    }
}
