use super::keeps::Keeps;
use super::node::slot::Entry;
use super::node::{Node, Slot};
use super::stored::Stored;
use crate::epoch::Guard;
use crate::frame_primitive::{AtomicU32, Mutex, Ordering, constant, fence};
use std::cell::Cell;

/// Frames by number: a sparse array that is read without locks.
///
/// An empty one is 16 bytes without heap memory. With frame 0 alone it has that frame's memory.
/// Otherwise it is a tree with 64 slots a node, without nodes of a single child. A frame costs a
/// slot, and one far from others a node or two. Beside the frames there may be a `side` part of
/// type `X`, for the writer only.
///
/// Readers of frames that are [inside](super::FramesLock::inside) use only the first 8 bytes. Each
/// writer writes the others. An owner may place the border of two cache lines between them.
#[repr(C)]
pub struct Frames<X: Send + 'static> {
    pub(super) root: Slot<X>,
    pub(super) version: AtomicU32,
    pub(super) lock: Mutex<()>,
    beside: [Mutex<()>; 2],
}

/// The totals of a map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Frames.
    pub frames: u64,
    /// Bytes of memory: the capacity of frames, and nodes.
    pub bytes: u64,
    /// The number that the writer stored with the side part; 0 without one.
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

    /// Two locks for the owner's use, in space that is free here.
    #[inline]
    pub fn beside(&self) -> &[Mutex<()>; 2] {
        &self.beside
    }

    /// No frames and no side part?
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.root.is_empty()
    }

    /// Frees everything at once; `&mut self` excludes readers.
    pub fn clear_mut(&mut self) {
        self.root.clear_mut();
    }

    /// The current state; `None` while a change of several stores is under way.
    #[inline]
    pub fn snapshot<'g>(&'g self, guard: &'g Guard) -> Option<Snapshot<'g, X>> {
        // Acquire pairs with the writer's last store: a reader of the version sees the state that
        // it stands for.
        let version = self.version.load(Ordering::Acquire);
        version.is_multiple_of(2).then_some(Snapshot {
            map: self,
            guard,
            version,
            spoilt: Cell::new(false),
        })
    }

    /// What the map holds, read without the lock: each number may be a moment old.
    #[must_use]
    pub fn totals(&self, guard: &Guard) -> Totals {
        self.totals_kept(guard)
    }

    pub(super) fn totals_kept(&self, keeps: &impl Keeps) -> Totals {
        match self.root.entry(keeps) {
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

/// A state of the map that a writer completed, as long as it [holds](Self::holds).
pub struct Snapshot<'g, X: Send + 'static> {
    pub(super) map: &'g Frames<X>,
    pub(super) guard: &'g Guard,
    version: u32,
    /// Was a broken frame found?
    spoilt: Cell<bool>,
}

impl<'g, X: Send + 'static> Snapshot<'g, X> {
    /// The filled bytes of frame `number`, after which it is zero.
    #[inline]
    #[must_use]
    pub fn get(&self, number: u64) -> Option<&'g [u8]> {
        let found = self.map.find(number, self.guard)?;
        if found.is_broken() {
            self.spoilt.set(true);
        }
        Some(found.bytes())
    }

    /// Do all frames found so far belong to one state, with everything else that was loaded since
    /// the snapshot and changes under the map's lock? Frames may be copied after that: their bytes
    /// do not change. `false` if one of them is broken, until it is read under the lock.
    #[inline]
    #[must_use]
    pub fn holds(&self) -> bool {
        // The loads before cannot see anything of a change with a version that is not seen here.
        // Pairs with the fence in `FramesLock::begin`, and for changes of one store with the
        // release of the version before the next.
        fence(Ordering::Acquire);
        self.map.version.load(Ordering::Relaxed) == self.version && !self.spoilt.get()
    }
}

impl<X: Send + 'static> Default for Frames<X> {
    fn default() -> Self {
        Self::new()
    }
}
