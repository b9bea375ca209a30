//! Free space: groups, bitmaps, preallocations.
//!
//! The volume's blocks lie in groups of up to 126 MiB. Each has two slots for its bitmap, written
//! in turn by the checkpoints that changed it, so recording an allocation allocates nothing. The
//! bitmaps of a flex group lie together, so a file can lie in a row across groups. In memory each
//! group has its bitmap with a summary, under a lock of its own.
//!
//! A block is *used* from the moment it is [placed](Space::allocate) until no reader can need its
//! content. It is *recorded* while the trees and the journal refer to it. Checkpoints write the
//! recorded blocks at their cut. Used and not recorded are preallocations, data placed and not
//! recorded yet, and freed blocks that may not be reused yet:
//!
//! - data that a record freed, until the record is [durable](Space::committed);
//! - a node that a checkpoint replaced, until a superblock [without it](Space::checkpointed) is the
//!   oldest that recovery may use.
//!
//! Reserved blocks ([`Reservation`]) are counted in a ledger; the holder of a reservation always
//! gets its blocks.
//!
//! The bitmaps of a large volume are read when a group is first needed. Until then the seal says
//! how much is free, which suffices for reservations. No block is allocated from bitmaps that do
//! not match the seal.
//!
//! *Invariants.* Used = recorded + preallocated + placed and not recorded + deferred, no block
//! twice. Reserved blocks <= free blocks. `docs/format.md` has the bytes.
//!
//! *Locking.* Order of the changes (`order`), then a group, then an index of preallocations. The
//! lists of changes and the ledger are leaves. One group at a time.

mod allocate;
mod bits;
mod checkpoint;
mod counter;
mod error;
mod extent;
mod group;
mod grow;
mod layout;
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
pub use counter::{Kind, Reservation};
pub use error::{Error, Remedy};
pub use extent::Extent;
pub use layout::{BUNDLE_MAX, GROUP_BLOCKS_MAX, GROUP_BLOCKS_MIN, GROUPS_MAX, Layout, SLOT_BLOCKS};
pub use load::Loader;
pub use preallocation::{FILE_BLOCKS_MAX, FileRequest, Mapped, Preallocations, Window};
pub(crate) use recorded::slot_image;
pub use recorded::{Recorded, recorded};
pub use report::Report;
pub use slot::{BLOCK_SIZE, Block, SlotError};

use crate::primitive::{AtomicBool, AtomicU64, Mutex, Ordering};
use allocate::ATTEMPTS;
use checkpoint::{Change, Order};
use counter::FreeCounter;
use group::State;
use holdfast_sync::{PerCore, ShardedCounter};
use holdfast_types::Errno;
use preallocation::Locality;
use std::fmt;
use std::sync::{Arc, OnceLock};
use table::Table;

/// The pending read of a volume's groups.
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
    /// The end of the volume; `layout` has the end at the time of opening.
    end: AtomicU64,
    /// Filled when the groups are [first needed](Self::table); remains empty if they could not be
    /// read.
    table: OnceLock<Table>,
    unread: Mutex<Option<Unread>>,
    /// The error of that read.
    unreadable: OnceLock<Error>,
    /// Free blocks when the volume was opened or made.
    free_at_first: u64,
    counter: FreeCounter,
    /// Where each core's allocations without a goal continue.
    cursors: PerCore<AtomicU64>,
    /// Changes of records, per core.
    changes: PerCore<Mutex<Vec<Change>>>,
    order: Mutex<Order>,
    /// Each core's preallocation for small files.
    localities: PerCore<Mutex<Locality>>,
    /// Preallocated blocks, including those for small files.
    preallocated: ShardedCounter,
    /// The number of preallocations of inodes so far.
    pieces: AtomicU64,
    /// The number of checkpoints begun, and whether the bitmaps of one are still to be written.
    /// Changed under `order`.
    cuts: AtomicU64,
    in_checkpoint: AtomicBool,
}

impl Space {
    /// The space of a new volume, all of it free. No bitmap needs to be written: groups without one
    /// are free. The superblock's seal is [`seal`](Self::seal).
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

    /// The space of a volume with bitmaps that are read when first needed, or by
    /// [`ready`](Self::ready). Until then the seal says how much is free.
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
        // Cores begin in different groups, as far from each other as possible, so that their
        // sequential writes do not soon meet.
        let next = AtomicU64::new(0);
        let cursor = || {
            let core = next.fetch_add(1, Ordering::Relaxed);
            // The number's bits reversed, as a fraction: 0, 1/2, 1/4, 3/4, 1/8 (van der Corput,
            // 1935).
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
            counter: FreeCounter::new(free),
            cursors: PerCore::new(cursor),
            changes: PerCore::new(|| Mutex::new(Vec::new())),
            order: Mutex::new(Order::default()),
            localities: PerCore::default(),
            preallocated: ShardedCounter::new(),
            pieces: AtomicU64::new(0),
            cuts: AtomicU64::new(0),
            in_checkpoint: AtomicBool::new(false),
        })
    }

    /// The current layout.
    #[must_use]
    pub fn layout(&self) -> Layout {
        Layout {
            // Acquire: pairs with the release in `grow`.
            end: self.end.load(Ordering::Acquire),
            ..self.layout
        }
    }

    /// The seal of the current bitmaps, for the newest superblock.
    #[must_use]
    pub fn seal(&self) -> Seal {
        let table = self.table();
        let groups = 0..table.count();
        groups.fold(Seal::default(), |seal, group| {
            let state = table.lock(group);
            Seal {
                fingerprint: seal.fingerprint ^ state.print(),
                free: seal.free + u64::from(state.free() + state.unrecorded()),
            }
        })
    }

    /// Reserves `blocks`.
    ///
    /// # Errors
    /// [`Error::Later`] while a commit or a checkpoint would free blocks; [`Error::Full`].
    pub fn reserve(self: &Arc<Self>, blocks: u64) -> Result<Reservation, Error> {
        self.reserve_blocks(blocks)?;
        Ok(Reservation::of(Arc::clone(self), blocks))
    }

    /// Would a commit or a checkpoint free blocks?
    pub(crate) fn has_deferred(&self) -> bool {
        self.deferred() != (0, 0)
    }

    /// Like [`reserve`](Self::reserve), as a number: to be [added](Reservation::take_in) to a
    /// reservation or [given back](Self::unreserve).
    pub(crate) fn reserve_blocks(&self, blocks: u64) -> Result<(), Error> {
        for _ in 0..ATTEMPTS {
            if blocks == 0 || self.counter.take(blocks, blocks, Kind::Data).is_some() {
                return Ok(());
            }
            if self.sweep(blocks) == 0 {
                break;
            }
        }
        Err(self.shortage(blocks))
    }

    /// Gives back reserved blocks.
    pub(crate) fn unreserve(&self, blocks: u64) {
        self.counter.put_back(blocks);
    }

    /// Sets blocks aside for nodes, as far as they are free, and more as they become free. A
    /// checkpoint copies before it frees, so a full volume could not be emptied without them.
    /// Returns how many there are now.
    pub fn set_node_reserve(&self, blocks: u64) -> u64 {
        self.counter.set_node_reserve(blocks)
    }

    /// Blocks that can be reserved for data, and those set aside for nodes.
    pub(crate) fn balance(&self) -> (u64, u64) {
        self.counter.balance()
    }

    /// Withholds blocks from all reservations. `wanted` gets the number of unreserved blocks.
    /// Returns how many are withheld now.
    pub(crate) fn withhold(&self, wanted: impl FnOnce(u64) -> u64) -> u64 {
        self.counter.withhold(wanted)
    }

    /// Withheld blocks.
    pub(crate) fn withheld(&self) -> u64 {
        self.counter.withheld()
    }

    /// Preallocated blocks.
    pub(crate) fn preallocated(&self) -> u64 {
        u64::try_from(self.preallocated.sum()).unwrap_or(0)
    }

    /// Reads the bitmaps, unless they were read.
    ///
    /// # Errors
    /// The error of that read, at each call.
    pub(crate) fn ready(&self) -> Result<(), Error> {
        self.table();
        self.unreadable.get().cloned().map_or(Ok(()), Err)
    }

    /// The groups, read now unless they were read: a table without groups if that fails.
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

    fn counter(&self) -> &FreeCounter {
        &self.counter
    }
}
