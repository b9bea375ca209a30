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

/// As [`prefetch`], for whoever will write to the line: it comes without a copy elsewhere, so that the
/// write need not ask for it again.
#[inline]
pub(crate) fn prefetch_to_write<T>(what: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: a prefetch reads nothing, whatever the address; where a processor does not know this
        // one it does nothing.
        unsafe {
            std::arch::asm!("prefetchw [{}]", in(reg) what, options(nostack, preserves_flags, readonly));
        };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = what;
}

/// Has the lines of so many bytes from there on fetched, to be written: for whoever makes one thing behind the other,
/// where the next one will mostly be. What is written to memory that no cache has is waited for by the next exchange.
#[inline]
pub fn prefetch_to_fill<T>(from: *const T, bytes: usize) {
    for at in (0..bytes).step_by(LINE) {
        prefetch_to_write(from.cast::<u8>().wrapping_add(at));
    }
}

const LINE: usize = 64;
