//! The primitives under the frames that a model replaces.
//!
//! `tests/frame_model` compiles `frame` a second time, with another module of this name. That one
//! holds loom's atomics and watches every use of a frame's memory, so that the same source runs
//! under every interleaving.

pub(crate) use holdfast_sync::constant;
pub(crate) use parking_lot::{Mutex, MutexGuard};
/// A word of guesses: no step in models.
pub(crate) use std::sync::atomic::AtomicU64 as Mark;
pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

/// log2 of the slots of a node. Models have small nodes.
pub(crate) const FAN_SHIFT: u32 = 6;

/// A load by the only thread that stores there, or with exclusive access: it returns what that
/// thread stored last. In models it is not a step of its own.
pub(crate) trait Own {
    type Value;

    fn own(&self) -> Self::Value;
}

impl Own for AtomicU32 {
    type Value = u32;

    #[inline]
    fn own(&self) -> u32 {
        self.load(Ordering::Relaxed)
    }
}

impl Own for AtomicU64 {
    type Value = u64;

    #[inline]
    fn own(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }
}

impl<T> Own for AtomicPtr<T> {
    type Value = *mut T;

    #[inline]
    fn own(&self) -> *mut T {
        self.load(Ordering::Relaxed)
    }
}

/// Uses of a frame's bytes, for models.
pub(crate) mod memory {
    use holdfast_sync::ShardedCounter;
    use std::ptr::NonNull;
    use std::sync::LazyLock;

    static TAKEN: LazyLock<ShardedCounter> = LazyLock::new(ShardedCounter::new);

    /// Counts bytes that came from the allocator, or (negative) went back to it.
    pub(crate) fn took(bytes: i64) {
        TAKEN.add(bytes);
    }

    /// The bytes that are with this module now.
    pub(crate) fn taken() -> u64 {
        TAKEN.sum().max(0).cast_unsigned()
    }

    /// The caller got `len` bytes that no other thread knows.
    #[inline]
    pub(crate) fn made(_start: NonNull<u8>, _len: usize) {}

    /// Bytes `from..to` are about to be read.
    #[inline]
    pub(crate) fn read(_start: NonNull<u8>, _from: usize, _to: usize) {}

    /// Bytes `from..to` are about to be written.
    #[inline]
    pub(crate) fn written(_start: NonNull<u8>, _from: usize, _to: usize) {}

    /// The bytes end. With debug assertions they are overwritten, so that a late reader does not
    /// find the old content.
    ///
    /// # Safety
    /// They are an allocation that no thread uses any more.
    #[inline]
    #[expect(unsafe_code, reason = "memory that ends here")]
    pub(crate) unsafe fn ended(start: NonNull<u8>, len: usize) {
        if cfg!(debug_assertions) {
            // SAFETY: the caller's promise.
            unsafe { start.write_bytes(0xDF, len) };
        }
    }
}

/// The owners of a block of memory beside its first one. They are counted outside the block: a
/// header in it would make a frame larger than a page of memory.
///
/// The counts lie in leaves by address, each made when a block in its range is first shared, and
/// kept. At most one block begins in the range of one count.
pub(crate) mod owners {
    use std::alloc::{GlobalAlloc as _, Layout, System, handle_alloc_error};
    use std::ptr::{self, NonNull};
    use std::sync::atomic::{AtomicPtr, AtomicU16, Ordering};

    /// The smallest block that can have several owners, in bytes: no two blocks begin within that
    /// distance.
    pub(crate) const SHARED_MIN: usize = 1 << GRANULE_SHIFT;

    const GRANULE_SHIFT: u32 = 10;
    /// log2 of the counts of a leaf: for 256 MiB of addresses.
    const LEAF_SHIFT: u32 = 18;
    const LEAVES: usize = 1 << (48 - GRANULE_SHIFT - LEAF_SHIFT);
    /// More owners than this are a leak.
    const OWNERS_MAX: u16 = u16::MAX / 2;

    type Leaf = [AtomicU16; 1 << LEAF_SHIFT];

    static COUNTS: [AtomicPtr<Leaf>; LEAVES] = [const { AtomicPtr::new(ptr::null_mut()) }; LEAVES];

    fn place(start: NonNull<u8>) -> (&'static AtomicPtr<Leaf>, usize) {
        let granule = start.addr().get() >> GRANULE_SHIFT;
        (&COUNTS[granule >> LEAF_SHIFT], granule % (1 << LEAF_SHIFT))
    }

    #[expect(unsafe_code, reason = "a pointer that is only ever set once")]
    fn leaf(pointer: &AtomicPtr<Leaf>) -> Option<&'static Leaf> {
        // Acquire: the zeros in it were written before.
        let leaf = pointer.load(Ordering::Acquire);
        // SAFETY: null, or leaked by `make` and never freed.
        unsafe { leaf.as_ref() }
    }

    /// Taken from the system, not from the program's allocator: a leaf stays for ever. It has one
    /// KiB for each 512 KiB of addresses, and only touched parts take memory.
    #[cold]
    #[expect(unsafe_code, reason = "memory of the system")]
    fn make(pointer: &AtomicPtr<Leaf>) -> &'static Leaf {
        const LAYOUT: Layout = Layout::new::<Leaf>();
        // SAFETY: the layout has a size.
        let new = unsafe { System.alloc_zeroed(LAYOUT) }.cast::<Leaf>();
        if new.is_null() {
            handle_alloc_error(LAYOUT);
        }
        let null = ptr::null_mut();
        if pointer
            .compare_exchange(null, new, Ordering::AcqRel, Ordering::Acquire)
            .is_err()
        {
            // Another thread was faster. SAFETY: made above, and no other thread knows it.
            unsafe { System.dealloc(new.cast(), LAYOUT) };
        }
        leaf(pointer).expect("just set")
    }

    /// Adds an owner; called by one of the owners.
    ///
    /// # Panics
    /// If there are more than any program needs.
    pub(crate) fn join(start: NonNull<u8>) {
        let (pointer, at) = place(start);
        let leaf = leaf(pointer).unwrap_or_else(|| make(pointer));
        // Relaxed: the caller hands the block over to the new owner.
        let others = leaf[at].fetch_add(1, Ordering::Relaxed);
        assert!(others < OWNERS_MAX, "a frame with {others} owners");
    }

    /// Removes an owner; was it the last one?
    #[inline]
    pub(crate) fn leave(start: NonNull<u8>) -> bool {
        let (pointer, at) = place(start);
        let Some(leaf) = leaf(pointer) else {
            return true;
        };
        let others = &leaf[at];
        // Acquire: earlier owners had left after their last use of the block. Only an owner adds
        // owners, so a single owner stays single.
        if others.load(Ordering::Acquire) == 0 {
            return true;
        }
        // Release, and acquire for the last one, as above. (No fence: the thread sanitizer does not
        // see fences.)
        if others.fetch_sub(1, Ordering::AcqRel) != 0 {
            return false;
        }
        others.store(0, Ordering::Relaxed);
        true
    }
}
