//! Holdfast's volume: a file system on an image file or a block device.

pub mod check;
pub mod checksum;
pub mod dump;
mod error;
mod gate_primitive;
pub mod journal;
mod journal_primitive;
mod nodes;
pub mod repair;
pub mod space;
mod space_primitive;
pub mod store;
pub mod superblock;
pub mod tree;

pub use check::{CheckOptions, check, recognize};
pub use error::{Error, Result};
pub use repair::repair;
pub use store::{
    Activity, DeviceUse, FileExtent, FormatOptions, Info, Needs, OpenOptions, Promptness, Tallied,
    Transfers, VolumeStore, format, needs, superblock as read_superblock,
};
pub use superblock::Label;

/// The unit of space, in bytes.
pub const BLOCK: usize = 4096;
