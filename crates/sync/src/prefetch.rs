//! Having a line fetched before it is asked for.
#![expect(unsafe_code, reason = "the instruction has no safe form")]

/// Has the first line of this fetched: who looks at several things one after the other would wait
/// for each. The address may be any.
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
