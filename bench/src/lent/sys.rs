//! Mapping memory, to touch it.
//!
//! *Invariants.* The mapping is new and private to [`touch`], which unmaps it before it returns.
#![expect(unsafe_code, reason = "memory mappings have no safe wrapper")]

use rustix::io::Result;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ptr;

/// Takes so many bytes from the kernel, every page of them, in large pages where it has them; gives
/// them back.
///
/// # Errors
/// What mmap(2) and madvise(2) say: before Linux 5.14, that it cannot.
pub(super) fn touch(bytes: usize) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    let (readable, own) = (
        ProtFlags::READ | ProtFlags::WRITE,
        MapFlags::PRIVATE | MapFlags::NORESERVE,
    );
    // SAFETY: the kernel chooses the place, so nothing of ours is there.
    let memory = unsafe { mmap_anonymous(ptr::null_mut(), bytes, readable, own)? };
    // A kernel without large pages refuses, and small ones do as well.
    // SAFETY: the whole of the mapping, which holds nothing.
    let _ = unsafe { madvise(memory, bytes, Advice::LinuxHugepage) };
    // SAFETY: as above; its pages become zeros, which they are.
    let touched = unsafe { madvise(memory, bytes, Advice::LinuxPopulateWrite) };
    // SAFETY: the mapping as it was made; its address is forgotten.
    unsafe { munmap(memory, bytes)? };
    touched
}
