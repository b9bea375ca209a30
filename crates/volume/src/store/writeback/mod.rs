//! Writeback: dirty pages get blocks and go to the device.
//!
//! That happens with a commit, and into blocks that were [preallocated](preallocation) for their
//! file. Writers that outrun the device are [throttled](throttle).
//!
//! Owns the files' preallocations.

pub(in crate::store) mod allocate;
pub(in crate::store) mod preallocation;
mod throttle;
