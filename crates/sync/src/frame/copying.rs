//! Copies of about a page to where it was just before.
//!
//! For a page, the C library's memcpy takes a string instruction. That is best for memory that the
//! caches do not hold, such as a new frame; but its start alone takes a third of a copy from cache to
//! cache, which is what a reader of pages does who has one buffer. This module copies those in
//! registers, and what is no more than two words without a call; it leaves every other length to memcpy.
#![expect(unsafe_code, reason = "copies through wide registers")]

#[cfg(target_arch = "x86_64")]
use std::arch::is_x86_feature_detected as has;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m256i, __m512i};
#[cfg(target_arch = "x86_64")]
use std::ops::RangeInclusive;

/// Lengths for which it pays.
#[cfg(target_arch = "x86_64")]
const LENGTHS: RangeInclusive<usize> = 1024..=8192;

/// Registers of one round.
#[cfg(target_arch = "x86_64")]
const ROUND: usize = 4;

/// Copies `from` to `to`, which the caches of this core hold.
///
/// # Panics
/// If they are not equally long.
#[inline(always)]
pub fn copy(from: &[u8], to: &mut [u8]) {
    assert_eq!(from.len(), to.len(), "copies are equally long");
    if from.len() > SMALL_MAX {
        copy_large(from, to);
    } else {
        copy_small(from, to);
    }
}

/// [`copy`] of what takes longer than a call.
#[inline(never)]
fn copy_large(from: &[u8], to: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if LENGTHS.contains(&from.len()) && from.len() == to.len() {
        // The first processors that had registers of 64 bytes went slower for a while after each use;
        // those that have VBMI2, which came later, do not.
        if has!("avx512f") && has!("avx512vbmi2") {
            // SAFETY: both are that long, and `to` is exclusive, so they do not overlap; the
            // processor has the instructions.
            return unsafe { in_lines(from.as_ptr(), to.as_mut_ptr(), from.len()) };
        }
        if has!("avx2") {
            // SAFETY: as above.
            return unsafe { in_half_lines(from.as_ptr(), to.as_mut_ptr(), from.len()) };
        }
    }
    to.copy_from_slice(from);
}

/// Bytes that are copied without a call: up to here that would take longer than the copy.
pub const SMALL_MAX: usize = 16;

/// Copies as many bytes, or fewer: the first and the last word, which may overlap.
#[inline(always)]
fn copy_small(from: &[u8], to: &mut [u8]) {
    let _ =
        ends::<8>(from, to) || ends::<4>(from, to) || ends::<2>(from, to) || ends::<1>(from, to);
}

/// Copies the first and the last `N` bytes, if that is all.
#[inline(always)]
fn ends<const N: usize>(from: &[u8], to: &mut [u8]) -> bool {
    if from.len() > 2 * N {
        return false;
    }
    let (Some(first), Some(last)) = (from.first_chunk::<N>(), from.last_chunk::<N>()) else {
        return false;
    };
    if let Some(to) = to.first_chunk_mut() {
        *to = *first;
    }
    if let Some(to) = to.last_chunk_mut() {
        *to = *last;
    }
    true
}

/// # Safety
/// That of `ptr::copy_nonoverlapping`; `len` is a round at least, and there is AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn in_lines(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { in_registers::<__m512i>(from, to, len) }
}

/// # Safety
/// That of `ptr::copy_nonoverlapping`; `len` is a round at least, and there is AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn in_half_lines(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { in_registers::<__m256i>(from, to, len) }
}

/// By registers of type `R`; compiled as part of functions for processors that have them.
///
/// # Safety
/// That of `ptr::copy_nonoverlapping`; `len` is [`ROUND`] registers at least.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn in_registers<R: Copy>(from: *const u8, to: *mut u8, len: usize) {
    let width = size_of::<R>();
    let load = |at: usize| {
        let place = from.wrapping_add(at).cast::<R>();
        // SAFETY: `at` is a register's width before `len` at most.
        unsafe { place.read_unaligned() }
    };
    let store = |at: usize, value: R| {
        let place = to.wrapping_add(at).cast::<R>();
        // SAFETY: as for `load`.
        unsafe { place.write_unaligned(value) };
    };
    let round = |at: usize| {
        let values: [R; ROUND] = std::array::from_fn(|index| load(at + index * width));
        for (index, value) in values.into_iter().enumerate() {
            store(at + index * width, value);
        }
    };
    // Stores that straddle lines cost more than loads that do: the first round may be unaligned, and
    // the next begins where the registers fit, behind or within it.
    round(0);
    let mut at = width - to.addr() % width;
    while at + ROUND * width < len {
        round(at);
        at += ROUND * width;
    }
    // The last one overlaps the one before.
    round(len - ROUND * width);
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    /// One of the kinds of copies.
    type Copying = unsafe fn(*const u8, *mut u8, usize);

    #[test]
    fn copies_of_every_small_length_are_copies() {
        let from: Vec<u8> = (1..=40).collect();
        for len in 0..from.len() {
            let mut to = vec![0; len];
            copy(&from[..len], &mut to);
            assert_eq!(to, from[..len]);
        }
    }

    #[test]
    fn copies_by_each_kind_of_register_are_copies() {
        let from: Vec<u8> = (0..9000_u32).map(|at| (at * 7 / 3) as u8).collect();
        let kinds: [(bool, Copying); 2] = [
            (has!("avx512f"), |from, to, len| {
                // SAFETY: only called with these instructions, and for places of so many bytes.
                unsafe { in_lines(from, to, len) }
            }),
            (has!("avx2"), |from, to, len| {
                // SAFETY: as above.
                unsafe { in_half_lines(from, to, len) }
            }),
        ];
        for (_, copying) in kinds.into_iter().filter(|(there, _)| *there) {
            for len in (1024..1300).chain([2048, 4095, 4096, 4097, 8191, 8192]) {
                for (at, gap) in [(0, 0), (1, 16), (33, 7), (64, 63)] {
                    let mut to = vec![0xEE; len + 100];
                    // SAFETY: both places have so many bytes, and are apart.
                    unsafe { copying(from[at..].as_ptr(), to[gap..].as_mut_ptr(), len) };
                    assert!(to[gap..gap + len] == from[at..at + len], "{len} at {at}");
                    let around = to[..gap].iter().chain(&to[gap + len..]);
                    assert!(around.into_iter().all(|byte| *byte == 0xEE), "{len}");
                }
            }
        }
    }
}
