use super::counter::FreeCounter;
use super::group::{Range, State};
use super::layout::Part;
use super::preallocation::Locality;
use super::records::Records;
use super::slot::Seal;
use super::table::{Table, class};
use super::{Error, Extent, Layout, Loader};
use crate::primitive::{AtomicU64, Mutex, Ordering};
use holdfast_sync::{PerCore, ShardedCounter};
use holdfast_types::Errno;
use std::fmt;
use std::sync::{Arc, OnceLock};

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
    pub(super) end: AtomicU64,
    /// Filled when the groups are [first needed](Self::table); remains empty if they could not be
    /// read.
    pub(super) table: OnceLock<Table>,
    unread: Mutex<Option<Unread>>,
    /// The error of that read.
    unreadable: OnceLock<Error>,
    /// Free blocks when the volume was opened or made.
    pub(super) free_at_first: u64,
    pub(super) counter: FreeCounter,
    /// Where each core's allocations without a goal continue.
    pub(super) cursors: PerCore<AtomicU64>,
    pub(super) records: Records,
    /// Each core's preallocation for small files.
    pub(super) localities: PerCore<Mutex<Locality>>,
    /// Preallocated blocks, including those for small files.
    pub(super) preallocated: ShardedCounter,
    /// The number of preallocations of inodes so far.
    pub(super) pieces: AtomicU64,
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

    pub(super) fn of(layout: Layout, states: Vec<State>) -> Arc<Self> {
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
            Ok(Table::of(&layout, loader.states(seal)?))
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
            records: Records::default(),
            localities: PerCore::default(),
            preallocated: ShardedCounter::new(),
            pieces: AtomicU64::new(0),
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

    /// Would a commit or a checkpoint free blocks?
    pub(crate) fn has_deferred(&self) -> bool {
        self.records.deferred() != (0, 0)
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
    pub(super) fn table(&self) -> &Table {
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

    /// The parts of an extent by group. An extent may cross the border of two groups.
    pub(super) fn parts(
        &self,
        extent: Extent,
    ) -> Result<impl Iterator<Item = (u64, Range)>, Error> {
        let layout = self.layout();
        let parts = layout.parts(extent)?;
        // The volume may be growing, but not before its groups were read.
        let groups = self.table.get().map_or(layout.groups(), Table::count);
        if extent.end() > layout.group(groups).start {
            return Err(Error::Outside { extent });
        }
        let range = |Part { group, from, to }| (group, Range { from, to });
        Ok(parts.map(range))
    }

    /// The group and range of an extent that lies in one group.
    pub(super) fn range(&self, extent: Extent) -> Result<(u64, Range), Error> {
        let mut parts = self.parts(extent)?;
        match (parts.next(), parts.next()) {
            (Some(part), None) => Ok(part),
            _ => Err(Error::Outside { extent }),
        }
    }

    /// Frees blocks of a group that were used and not recorded.
    pub(super) fn release(&self, group: u64, state: &mut State, range: Range) -> Result<(), Error> {
        state.release(range)?;
        let most = class(state.free());
        if state.class < most {
            let (start, end) = state.map().run_around(range.from, range.to);
            let class = class(end - start).max(state.class);
            self.table().set_class(group, state, class);
        }
        self.counter.put(u64::from(range.length()));
        Ok(())
    }
}
