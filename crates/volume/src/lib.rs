//! Holdfast's volume: a file system on an image file or a block device.

pub mod checksum;
pub mod journal;
pub mod space;
mod space_primitive;
pub mod tree;
