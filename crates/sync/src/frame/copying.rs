//! Copies of about a page to where it was just before.
//!
//! For a page, the C library's memcpy takes a string instruction. That is best for memory that the
//! caches do not hold, such as a new frame; but its start alone takes a third of a copy from cache to
//! cache, which is what a reader of pages does who has one buffer. This module copies those in
//! registers, and leaves every other length to memcpy.
#![expect(unsafe_code, reason = "copies through wide registers")]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::__m256i;
#[cfg(target_arch = "x86_64")]
use std::ops::RangeInclusive;

/// Lengths for which it pays.
#[cfg(target_arch = "x86_64")]
const LENGTHS: RangeInclusive<usize> = 1024..=8192;

/// Bytes of one round: four registers.
#[cfg(target_arch = "x86_64")]
const ROUND: usize = 4 * size_of::<__m256i>();

/// Copies `from` to `to`, which the caches of this core hold.
///
/// # Panics
/// If they are not equally long.
#[inline]
pub fn copy(from: &[u8], to: &mut [u8]) {
    assert_eq!(from.len(), to.len(), "copies are equally long");
    #[cfg(target_arch = "x86_64")]
    if LENGTHS.contains(&from.len()) && std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: both are that long, and `to` is exclusive, so they do not overlap; the processor
        // has the instructions.
        return unsafe { in_registers(from.as_ptr(), to.as_mut_ptr(), from.len()) };
    }
    to.copy_from_slice(from);
}

/// # Safety
/// That of `ptr::copy_nonoverlapping`; `len` is a [`ROUND`] at least, and there is AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn in_registers(from: *const u8, to: *mut u8, len: usize) {
    let load = |at: usize| {
        let place = from.wrapping_add(at).cast::<__m256i>();
        // SAFETY: `at` is a register's width before `len` at most.
        unsafe { place.read_unaligned() }
    };
    let store = |at: usize, value: __m256i| {
        let place = to.wrapping_add(at).cast::<__m256i>();
        // SAFETY: as for `load`.
        unsafe { place.write_unaligned(value) };
    };
    let round = |at: usize| {
        let values = [load(at), load(at + 32), load(at + 64), load(at + 96)];
        let [first, second, third, fourth] = values;
        store(at, first);
        store(at + 32, second);
        store(at + 64, third);
        store(at + 96, fourth);
    };
    // Stores that straddle lines cost more than loads that do: the first round may be unaligned, and
    // the next begins where the registers fit, behind or within it.
    round(0);
    let mut at = size_of::<__m256i>() - to.addr() % size_of::<__m256i>();
    while at + ROUND < len {
        round(at);
        at += ROUND;
    }
    // The last one overlaps the one before.
    round(len - ROUND);
}
