//! Free space: groups, bitmaps, preallocations.
//!
//! The volume's blocks lie in groups of up to 126 MiB. Each has two slots for its bitmap, written in turn by the checkpoints
//! that changed it, so recording an allocation allocates nothing. Those of a bundle of groups lie together, so that a file
//! lies in a row across them.
//! In memory each group has its bitmap with a summary, under a lock of its own.
//!
//! A block is *used* from the moment it is [placed](Space::allocate) until nobody can need what it
//! holds, and *recorded* while the trees and the journal refer to it. Checkpoints write what is
//! recorded at their cut. In between are preallocations, data that was placed and not recorded, and
//! what was freed and may not be used again yet:
//!
//! - data that a record freed, until the record is [durable](Space::committed);
//! - a node that a checkpoint replaced, until a superblock [without it](Space::checkpointed) is the
//!   oldest that recovery may use.
//!
//! Promises ([`Reservation`]) are kept in a ledger apart: whoever has one gets his blocks.
//!
//! The bitmaps of a large volume are read when a group is first needed. Until then the seal says
//! how much is free, and blocks are promised by that. No block is placed by bitmaps of which the
//! seal does not say that they are the newest.
//!
//! *Invariants.* Used = recorded, and preallocated, and placed but not recorded, and deferred: no
//! block twice. Blocks promised are never more than blocks free. `docs/format.md` has the bytes.
//!
//! *Locking.* Order of the changes (`order`), then a group, then an index of preallocations. The
//! lists of changes and the ledger are leaves. One group at a time.

mod allocate;
mod bits;
mod checkpoint;
mod error;
mod extent;
mod group;
mod grow;
mod layout;
mod ledger;
mod load;
mod map;
mod preallocation;
mod recorded;
mod report;
mod slot;
mod table;
#[cfg(test)]
mod tests;
mod trim;

pub use allocate::Request;
pub use checkpoint::{Bitmaps, Seal};
pub use error::{Error, Remedy};
pub use extent::Extent;
pub use layout::{BUNDLE_MAX, GROUP_BLOCKS_MAX, GROUP_BLOCKS_MIN, GROUPS_MAX, Layout, SLOT_BLOCKS};
pub use ledger::{Kind, Reservation};
pub use load::Loader;
pub use preallocation::{FILE_BLOCKS_MAX, FileRequest, Mapped, Preallocations, Window};
pub(crate) use recorded::{recorded, slot_image};
pub use report::Report;
pub use slot::{BLOCK_SIZE, Block, SlotError};

use crate::primitive::{AtomicBool, AtomicU64, Mutex, Ordering};
use allocate::ATTEMPTS;
use checkpoint::{Change, Order};
use group::State;
use holdfast_sync::{PerCore, ShardedCounter};
use holdfast_types::Errno;
use ledger::Ledger;
use preallocation::Locality;
use std::fmt;
use std::sync::{Arc, OnceLock};
use table::Table;

/// Reads the groups of a volume.
struct Unread(Box<dyn FnOnce() -> Result<Table, Error> + Send>);

impl fmt::Debug for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unread")
    }
}

/// The space of one volume.
#[derive(Debug)]
pub struct Space {
    layout: Layout,
    /// The number behind the last block: the layout's own is that of the beginning.
    end: AtomicU64,
    /// Filled when the groups are [first needed](Self::table), and empty for good where they could not be read.
    table: OnceLock<Table>,
    unread: Mutex<Option<Unread>>,
    /// Why they could not be read.
    unreadable: OnceLock<Error>,
    /// Blocks that were free when the volume was opened, or made.
    free_at_first: u64,
    ledger: Ledger,
    /// Where each core goes on, if it has no goal.
    cursors: PerCore<AtomicU64>,
    /// Changes of records, as cores handed them in.
    changes: PerCore<Mutex<Vec<Change>>>,
    order: Mutex<Order>,
    /// What each core sets aside for small files.
    localities: PerCore<Mutex<Locality>>,
    /// Blocks set aside, those of localities included.
    preallocated: ShardedCounter,
    /// How many pieces were set aside for inodes.
    pieces: AtomicU64,
    /// How many checkpoints began, and whether one's bitmaps are still to come. Changed under
    /// `order`.
    cuts: AtomicU64,
    folding: AtomicBool,
}

impl Space {
    /// The space of a new volume, all of it free. Nothing needs to be written: groups without a
    /// bitmap are free. The superblock's seal is [`seal`](Self::seal).
    ///
    /// # Errors
    /// [`Error::Layout`].
    pub fn format(layout: Layout) -> Result<Arc<Self>, Error> {
        layout.check()?;
        let groups = 0..layout.groups();
        let states = groups.map(|group| State::fresh(&layout, group));
        Ok(Self::of(layout, states.collect()))
    }

    fn of(layout: Layout, states: Vec<State>) -> Arc<Self> {
        let free = states.iter().map(|state| u64::from(state.free())).sum();
        Self::with(layout, free, Table::of(&layout, states).into(), None)
    }

    /// The space of a volume whose bitmaps are read when they are first needed, or when they are
    /// [asked for](Self::ready). Until then the seal says how much is free.
    ///
    /// # Errors
    /// [`Error::Layout`].
    pub(crate) fn unread(
        layout: Layout,
        generation: u64,
        seal: Seal,
        read: impl FnOnce(&mut Loader) -> Result<(), Error> + Send + 'static,
    ) -> Result<Arc<Self>, Error> {
        let mut loader = Loader::new(layout, generation)?;
        let load = move || {
            read(&mut loader)?;
            Ok(Table::of(&layout, loader.states(Some(seal))?))
        };
        let unread = Some(Unread(Box::new(load)));
        Ok(Self::with(layout, seal.free, OnceLock::new(), unread))
    }

    fn with(
        layout: Layout,
        free: u64,
        table: OnceLock<Table>,
        unread: Option<Unread>,
    ) -> Arc<Self> {
        let groups = layout.groups();
        // Cores begin in groups of their own, as far as there are some, and as far from each other as can be: what
        // one writes in a row shall not soon meet what another has.
        let next = AtomicU64::new(0);
        let cursor = || {
            let core = next.fetch_add(1, Ordering::Relaxed);
            // The digits of its number turned round, as a fraction: 0, 1/2, 1/4, 3/4, 1/8 ... (van der Corput, 1935).
            let group = (u128::from(core.reverse_bits()) * u128::from(groups)) >> u64::BITS;
            AtomicU64::new(layout.group(group as u64).start)
        };
        Arc::new(Self {
            layout,
            end: AtomicU64::new(layout.end),
            table,
            unread: Mutex::new(unread),
            unreadable: OnceLock::new(),
            free_at_first: free,
            ledger: Ledger::new(free),
            cursors: PerCore::new(cursor),
            changes: PerCore::new(|| Mutex::new(Vec::new())),
            order: Mutex::new(Order::default()),
            localities: PerCore::default(),
            preallocated: ShardedCounter::new(),
            pieces: AtomicU64::new(0),
            cuts: AtomicU64::new(0),
            folding: AtomicBool::new(false),
        })
    }

    /// Where the groups lie.
    #[must_use]
    pub fn layout(&self) -> Layout {
        Layout {
            // Acquire: pairs with the release of whoever let the volume grow.
            end: self.end.load(Ordering::Acquire),
            ..self.layout
        }
    }

    /// What the newest superblock says, or must say, of the bitmaps that it means.
    #[must_use]
    pub fn seal(&self) -> Seal {
        let table = self.table();
        let groups = 0..table.count();
        groups.fold(Seal::default(), |seal, group| {
            let state = table.lock(group);
            Seal {
                fingerprint: seal.fingerprint ^ state.print(),
                free: seal.free + u64::from(state.free() + state.ahead()),
            }
        })
    }

    /// Promises `blocks`: whoever has the promise can place them.
    ///
    /// # Errors
    /// [`Error::Later`] while something is on its way back that a commit or a checkpoint returns;
    /// [`Error::Full`].
    pub fn reserve(self: &Arc<Self>, blocks: u64) -> Result<Reservation, Error> {
        self.promise(blocks)?;
        Ok(Reservation::of(Arc::clone(self), blocks))
    }

    /// Is anything on its way back that a commit or a checkpoint returns?
    pub(crate) fn has_deferred(&self) -> bool {
        self.deferred() != (0, 0)
    }

    /// As [`reserve`](Self::reserve), as a number: to be [taken in](Reservation::take_in) by a promise, or to be
    /// [given back](Self::unpromise).
    pub(crate) fn promise(&self, blocks: u64) -> Result<(), Error> {
        for _ in 0..ATTEMPTS {
            if blocks == 0 || self.ledger.take(blocks, blocks, Kind::Data).is_some() {
                return Ok(());
            }
            if self.sweep(blocks) == 0 {
                break;
            }
        }
        Err(self.shortage(blocks))
    }

    /// Takes back what was promised as a number.
    pub(crate) fn unpromise(&self, blocks: u64) {
        self.ledger.put_back(blocks);
    }

    /// Sets aside so many blocks for nodes, as far as there are any; more as they become free. A
    /// checkpoint copies before it frees, so without them a full volume could not be emptied.
    /// Gives how many there are now.
    pub fn set_spare(&self, blocks: u64) -> u64 {
        self.ledger.set_spare(blocks)
    }

    /// Blocks that may be promised to data, and those set aside for nodes.
    pub(crate) fn balance(&self) -> (u64, u64) {
        self.ledger.balance()
    }

    /// Withholds blocks from everybody: so many as `wanted` says of all that are promised to nobody, as far as they are not set
    /// aside for nodes. Gives how many are withheld now.
    pub(crate) fn withhold(&self, wanted: impl FnOnce(u64) -> u64) -> u64 {
        self.ledger.withhold(wanted)
    }

    /// Blocks that are withheld.
    pub(crate) fn withheld(&self) -> u64 {
        self.ledger.withheld()
    }

    /// Blocks set aside for files that may grow.
    pub(crate) fn preallocated(&self) -> u64 {
        u64::try_from(self.preallocated.sum()).unwrap_or(0)
    }

    /// Reads the bitmaps, unless they were read.
    ///
    /// # Errors
    /// Why they cannot be read, at each call.
    pub(crate) fn ready(&self) -> Result<(), Error> {
        self.table();
        self.unreadable.get().cloned().map_or(Ok(()), Err)
    }

    /// The groups, read now unless they were read: a table without groups where that fails.
    fn table(&self) -> &Table {
        self.table.get_or_init(|| {
            let unread = self.unread.lock().take();
            let panicked = || Error::Unread {
                reason: "an earlier attempt panicked".to_owned(),
                errno: Errno::EIO,
            };
            let read = unread.ok_or_else(panicked).and_then(|unread| (unread.0)());
            read.unwrap_or_else(|error| {
                let _ = self.unreadable.set(error);
                Table::new()
            })
        })
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}
