/// The unit of space, in bytes.
pub const BLOCK: usize = 4096;
