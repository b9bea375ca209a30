//! Prefetching cache lines.
#![expect(unsafe_code, reason = "the instruction has no safe form")]

/// Prefetches the first line of `what`, which may be any address. A loop over several objects would
/// otherwise wait for each in turn.
#[inline]
pub fn prefetch<T>(what: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(what.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = what;
}
