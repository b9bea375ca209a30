//! The size of a frame, and how many frames there can be.

/// The size of a frame in bytes. Its memory may be smaller, as long as the rest is zeros.
pub const FRAME_SIZE: usize = 4096;

/// One more than the largest number that a frame can have.
pub const FRAME_END: u64 = 1 << 52;
