//! A name's own memory: header and key in one allocation, exactly as large as needed.
#![expect(unsafe_code, reason = "the key's bytes follow the header")]

use crate::epoch;
use crate::primitive::{AtomicU32, AtomicU64, MODEL, Ordering, dealloc, memory};
use holdfast_sync::prefetch;
use std::alloc::{Layout, alloc, handle_alloc_error};
use std::fmt;
use std::marker::PhantomData;
use std::mem::size_of;
use std::ptr::{self, NonNull};

/// Longest key, in bytes.
pub(super) const KEY_MAX: usize = 255;
/// Values are below this.
pub(super) const VALUE_END: u64 = 1 << VALUE_BITS;
/// Tags are below this.
pub(super) const TAG_END: u8 = 16;

const VALUE_BITS: u32 = 60;
/// The header before the bytes of the key.
#[repr(C)]
pub(super) struct Head {
    /// Tag in the top four bits, value below: one word, so that both change together.
    payload: AtomicU64,
    order: u64,
    /// The slot in its row, written under the index's lock. For a reader it is a hint.
    position: AtomicU32,
    key_len: u8,
}

const _: () = assert!(MODEL || size_of::<Head>() == 24);

/// A name of an index, with its value. It is valid as long as the guard (or the writer) under which
/// it was found.
///
/// Key and order never change. Value and tag may: a name keeps its item when its value is replaced.
#[derive(Clone, Copy)]
pub struct Item<'g> {
    /// *Invariant.* From [`allocate`], initialised, and not freed during `'g`.
    head: NonNull<Head>,
    lifetime: PhantomData<&'g Head>,
}

fn pack(value: u64, tag: u8) -> u64 {
    debug_assert!(value < VALUE_END && tag < TAG_END);
    u64::from(tag) << VALUE_BITS | value
}

fn unpack(payload: u64) -> (u64, u8) {
    (
        payload & (VALUE_END - 1),
        (payload >> VALUE_BITS).to_le_bytes()[0],
    )
}

fn layout(key_len: u8) -> Layout {
    let size = size_of::<Head>() + usize::from(key_len);
    Layout::from_size_align(size, align_of::<Head>()).expect("far below the limit")
}

/// Makes an item; the key has 1 to 255 bytes.
pub(super) fn allocate(key: &[u8], order: u64, value: u64, tag: u8) -> NonNull<Head> {
    let key_len = u8::try_from(key.len()).expect("checked by whoever inserts");
    let layout = layout(key_len);
    // SAFETY: the layout is not of size 0: it has a header.
    let memory = unsafe { alloc(layout) };
    let Some(head) = NonNull::new(memory.cast::<Head>()) else {
        handle_alloc_error(layout)
    };
    let fresh = Head {
        payload: AtomicU64::new(pack(value, tag)),
        order,
        position: AtomicU32::new(0),
        key_len,
    };
    // SAFETY: allocated above with room and alignment for a header.
    unsafe { head.write(fresh) };
    // SAFETY: within the allocation, or its end.
    let bytes = unsafe { head.add(1) }.cast::<u8>();
    // SAFETY: `key_len` bytes follow the header, and no other thread knows this memory.
    unsafe { ptr::copy_nonoverlapping(key.as_ptr(), bytes.as_ptr(), key.len()) };
    memory::made(head);
    head
}

/// Frees an item.
///
/// # Safety
/// `head` comes from [`allocate`], no thread uses it any more, and this is called once for it.
pub(super) unsafe fn free(head: NonNull<Head>) {
    // SAFETY: not freed yet, by the caller's promise.
    let key_len = unsafe { head.as_ref() }.key_len;
    memory::ended(head);
    // SAFETY: allocated with this layout; the header has nothing to drop.
    unsafe { dealloc(head.as_ptr().cast(), layout(key_len)) };
}

unsafe fn free_retired(head: *mut ()) {
    if let Some(head) = NonNull::new(head.cast::<Head>()) {
        // SAFETY: `Item::retire` passed it on, once; the grace period is over.
        unsafe { free(head) };
    }
}

impl<'g> Item<'g> {
    /// The item at this address.
    ///
    /// # Safety
    /// `head` comes from [`allocate`] and is not freed during `'g`.
    #[inline]
    pub(super) unsafe fn from_raw(head: NonNull<Head>) -> Self {
        Self {
            head,
            lifetime: PhantomData,
        }
    }

    pub(super) fn as_raw(self) -> NonNull<Head> {
        self.head
    }

    #[inline]
    fn head(self) -> &'g Head {
        memory::read(self.head);
        // SAFETY: by the invariant of `head`; what changes in it is atomic.
        unsafe { self.head.as_ref() }
    }

    /// Prefetches the header, and the key if it has a usual length.
    pub(super) fn fetch(self) {
        let head = self.head.as_ptr().cast_const();
        prefetch(head);
        prefetch(head.wrapping_add(2));
    }

    /// The bytes of the name.
    #[inline]
    #[must_use]
    pub fn key(self) -> &'g [u8] {
        let len = usize::from(self.head().key_len);
        // SAFETY: within the allocation: the key follows the header.
        let bytes = unsafe { self.head.add(1) }.cast::<u8>();
        // SAFETY: initialised by `allocate`, never written again, live during 'g.
        unsafe { std::slice::from_raw_parts(bytes.as_ptr(), len) }
    }

    /// Is this its key?
    #[inline]
    pub(super) fn has_key(self, key: &[u8]) -> bool {
        self.key() == key
    }

    /// The position in the listing.
    #[inline]
    #[must_use]
    pub fn order(self) -> u64 {
        self.head().order
    }

    /// The current value and tag, as they were set together.
    #[inline]
    #[must_use]
    pub fn payload(self) -> (u64, u8) {
        // Acquire: the object of the value was made before the name was set to it.
        unpack(self.head().payload.load(Ordering::Acquire))
    }

    /// The current value, less than 2^60.
    #[inline]
    #[must_use]
    pub fn value(self) -> u64 {
        self.payload().0
    }

    /// The current tag, less than 16. To get a value and its tag, call [`payload`](Self::payload).
    #[inline]
    #[must_use]
    pub fn tag(self) -> u8 {
        self.payload().1
    }

    /// Sets value and tag and returns the old ones. The caller holds the index's lock.
    pub(super) fn set_payload(self, value: u64, tag: u8) -> (u64, u8) {
        // Relaxed: only the holder of the lock sets it.
        let old = self.head().payload.load(Ordering::Relaxed);
        // Release: see `payload`.
        self.head()
            .payload
            .store(pack(value, tag), Ordering::Release);
        unpack(old)
    }

    /// Its position in its row.
    pub(super) fn position(self) -> usize {
        // Relaxed: read under the lock, or as a hint.
        self.head().position.load(Ordering::Relaxed) as usize
    }

    pub(super) fn set_position(self, position: usize) {
        // Relaxed: as above.
        self.head()
            .position
            .store(position as u32, Ordering::Relaxed);
    }

    /// Frees the item after a grace period.
    ///
    /// # Safety
    /// Readers cannot find it from now on, and it is retired once. After that the caller uses it
    /// only under a guard made before.
    pub(super) unsafe fn retire(self) {
        // SAFETY: unreachable by the caller's promise; memory can be freed on any thread.
        unsafe { epoch::retire_with(self.head.as_ptr().cast(), free_retired) };
    }
}

impl fmt::Debug for Item<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, tag) = self.payload();
        f.debug_struct("Item")
            .field("key", &String::from_utf8_lossy(self.key()))
            .field("order", &self.order())
            .field("value", &value)
            .field("tag", &tag)
            .finish()
    }
}
