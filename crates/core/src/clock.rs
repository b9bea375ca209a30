//! The file system's time: the kernel's coarse real-time clock.
//!
//! A kernel that caches writes stamps files itself, from this same coarse clock. With a finer one
//! here, a file could seem to be modified before it was created.

use rustix::time::{ClockId, clock_gettime};

use crate::types::Time;

/// The present time, to the kernel's tick (1 to 4 ms).
pub(crate) fn now() -> Time {
    let time = clock_gettime(ClockId::RealtimeCoarse);
    Time::new(time.tv_sec, time.tv_nsec as u32)
}
