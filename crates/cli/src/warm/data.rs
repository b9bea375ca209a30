//! Content: the kernel is asked to read files ahead.

use rustix::{
    fd::AsFd,
    fs::{Advice, Mode, OFlags},
    io::Result,
};
use std::num::NonZeroU64;

/// Has the first `most` bytes of a file of this size read; gives how many those are.
///
/// The kernel reads while others are asked for, and makes a call wait when a device has enough to do.
pub(super) fn read_ahead(dir: impl AsFd, name: &[u8], size: u64, most: u64) -> Result<u64> {
    let Some(bytes) = NonZeroU64::new(size.min(most)) else {
        return Ok(0);
    };
    // Without waiting, in case it has become a pipe.
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(dir, name, flags, Mode::empty())?;
    rustix::fs::fadvise(&file, 0, Some(bytes), Advice::WillNeed)?;
    Ok(bytes.get())
}
