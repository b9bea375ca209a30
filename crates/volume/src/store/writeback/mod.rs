//! Dirty pages get blocks and go to the device.
//!
//! With a commit, which comes [early](background) where that pays; into room that was [set aside](preallocation) for their file.
//! Writers that outrun the device are [throttled](throttle).
//!
//! Owns what was set aside for files, and what was learnt about writing in the background.

pub(in crate::store) mod allocate;
pub(in crate::store) mod background;
pub(in crate::store) mod preallocation;
mod throttle;
