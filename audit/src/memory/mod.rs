//! Where the memory comes from: the allocator, and what each address belongs to.

mod map;
mod origins;
mod sys;

pub(crate) use map::Map;
pub(crate) use origins::Origin;

/// Calls kept of each allocation.
const CALLS: usize = 14;

/// Addresses to return to, innermost first; zeros at the end.
type Calls = [u64; CALLS];

/// Is the calling thread in the allocator? Safe to ask in a signal handler.
pub(crate) fn is_allocating() -> bool {
    sys::is_allocating()
}

/// From now on allocations are noted.
pub(crate) fn note_origins() {
    origins::start();
}

/// Runs `code` without a note of what it allocates, which would be recorded with it; what it
/// allocated is noted afterwards.
pub(crate) fn silently(code: impl FnOnce()) {
    sys::silence();
    code();
    sys::speak();
}

/// The noted blocks of the heap with bytes in `start..end`.
pub(crate) fn blocks(start: u64, end: u64) -> Vec<Origin> {
    sys::unnoted(|| origins::within(start, end))
}
