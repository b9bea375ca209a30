use super::lock::FramesLock;
use super::node::Node;
use super::slot::{Entry, Keeps, Slot, Stored};
use crate::epoch::Guard;
use crate::frame_primitive::{AtomicU32, Mutex, Ordering, constant, fence};
use std::cell::Cell;
use std::fmt;

/// Frames by number: a sparse array that is read without locks.
///
/// An empty one is 16 bytes and has no heap; with frame 0 alone it is that frame's memory. Else a
/// tree with 64 slots a node, in which nodes with a single child are left out: a frame costs a
/// slot, and a lonely one far out a node or two. Beside the frames there may be a `side` part of
/// type `X`, for the writer only.
///
/// The first 8 bytes are all of it that who reads frames which are [inside](FramesLock::inside) needs;
/// the others are written by each writer. An owner may lay the border of two cache lines between.
#[repr(C)]
pub struct Frames<X: Send + 'static> {
    pub(super) root: Slot<X>,
    pub(super) version: AtomicU32,
    pub(super) lock: Mutex<()>,
    beside: [Mutex<()>; 2],
}

/// What a map holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Frames.
    pub frames: u64,
    /// Bytes of memory: frames, as much as there is room for in them, and nodes.
    pub bytes: u64,
    /// What the writer put down with the side part; 0 if there is none.
    pub note: u64,
}

impl<X: Send + 'static> Frames<X> {
    constant! {
        /// Without frames.
        #[must_use]
        pub fn new() -> Self {
            Self {
                root: Slot::empty(),
                version: AtomicU32::new(0),
                lock: Mutex::new(()),
                beside: [Mutex::new(()), Mutex::new(())],
            }
        }
    }

    /// Becomes the one writer; waits until there is no other.
    #[inline]
    pub fn lock(&self) -> FramesLock<'_, X> {
        FramesLock::new(self, self.lock.lock())
    }

    /// Two locks that are the owner's to use, for which there is room.
    #[inline]
    pub fn beside(&self) -> &[Mutex<()>; 2] {
        &self.beside
    }

    /// Nothing there, neither frames nor a side part?
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.root.is_empty()
    }

    /// Frees everything at once, for whoever has the map to himself.
    pub fn clear_mut(&mut self) {
        self.root.clear_mut();
    }

    /// The state of the moment; none while a change is being shown bit by bit.
    #[inline]
    pub fn snapshot<'g>(&'g self, guard: &'g Guard) -> Option<Snapshot<'g, X>> {
        // Acquire pairs with the writer's last store: who sees the version sees what it stands for.
        let version = self.version.load(Ordering::Acquire);
        version.is_multiple_of(2).then_some(Snapshot {
            map: self,
            guard,
            version,
            spoilt: Cell::new(false),
        })
    }

    /// What is held, to be read without the lock: each number may be a moment old.
    #[must_use]
    pub fn totals(&self, guard: &Guard) -> Totals {
        self.totals_kept(guard)
    }

    pub(super) fn totals_kept(&self, keeps: &impl Keeps) -> Totals {
        match self.root.load(keeps) {
            None => Totals::default(),
            Some(Entry::Frame(frame)) => Totals {
                frames: 1,
                bytes: frame.capacity() as u64,
                note: 0,
            },
            Some(Entry::Node(node)) => Totals {
                frames: node.frames(),
                bytes: node.bytes() + node.nodes() * size_of::<Node<X>>() as u64,
                note: node.note(),
            },
        }
    }

    /// The frame `number`.
    #[inline]
    pub(super) fn find<'g>(&'g self, number: u64, keeps: &'g impl Keeps) -> Option<Stored<'g>> {
        self.root.find(keeps).below(number, keeps)
    }
}

/// A state of the map that readers are meant to see, as far as it still [holds](Self::holds).
pub struct Snapshot<'g, X: Send + 'static> {
    pub(super) map: &'g Frames<X>,
    pub(super) guard: &'g Guard,
    version: u32,
    /// Was a frame met that has to be mended first?
    spoilt: Cell<bool>,
}

impl<'g, X: Send + 'static> Snapshot<'g, X> {
    /// The filled bytes of frame `number`, behind which it is zero.
    #[inline]
    #[must_use]
    pub fn get(&self, number: u64) -> Option<&'g [u8]> {
        let found = self.map.find(number, self.guard)?;
        if found.is_broken() {
            self.spoilt.set(true);
        }
        Some(found.bytes())
    }

    /// Do all the frames gotten so far, and whatever else was loaded since the snapshot and is
    /// changed under the map's lock, belong to one state? Frames may be copied after that: their
    /// bytes do not change. Not if one of them is broken, until somebody gets it under the lock.
    #[inline]
    #[must_use]
    pub fn holds(&self) -> bool {
        // The loads before cannot see anything of a change whose version is not seen here. Pairs
        // with the fence in `FramesLock::begin`, and for changes of one store with the release
        // of the version before the next.
        fence(Ordering::Acquire);
        self.map.version.load(Ordering::Relaxed) == self.version && !self.spoilt.get()
    }
}

impl<X: Send + 'static> fmt::Debug for Snapshot<'_, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl<X: Send + 'static> Default for Frames<X> {
    fn default() -> Self {
        Self::new()
    }
}

impl<X: Send + 'static> fmt::Debug for Frames<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frames")
            .field("totals", &self.totals(&crate::epoch::pin()))
            .finish_non_exhaustive()
    }
}
