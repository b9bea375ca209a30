//! Content: asking the kernel to read files ahead.

use rustix::{
    fd::AsFd,
    fs::{Advice, Mode, OFlags},
    io::Result,
};
use std::num::NonZeroU64;

/// Starts reading the first `most` bytes of a file of this size; returns their number.
///
/// The kernel reads in the background, and blocks the call when the device's queue is full.
pub(super) fn readahead_file(dir: impl AsFd, name: &[u8], size: u64, most: u64) -> Result<u64> {
    let Some(bytes) = NonZeroU64::new(size.min(most)) else {
        return Ok(0);
    };
    // `NONBLOCK`, in case it has become a pipe.
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(dir, name, flags, Mode::empty())?;
    rustix::fs::fadvise(&file, 0, Some(bytes), Advice::WillNeed)?;
    Ok(bytes.get())
}
