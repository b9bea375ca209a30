//! Writeback: dirty pages get blocks and go to the device.
//!
//! That happens with a commit, and into blocks that were [preallocated](preallocation) for their
//! file. Writers that outrun the device are [throttled](super::throttle).
//!
//! Owns the files' preallocations.

mod allocate;
mod preallocation;

pub(super) use allocate::FileAllocator;
pub(super) use preallocation::FilePreallocations;
