//! Holdfast's volume: a file system on an image file or a block device.

#[macro_use]
extern crate holdfast_types as _;

mod block;
pub mod check;
pub mod checksum;
mod cow_device;
mod error;
pub mod journal;
mod nodes;
mod primitive;
pub mod repair;
pub mod space;
pub mod store;
pub mod superblock;
pub mod tree;
mod varint;

pub use block::BLOCK;
pub use check::{CheckOptions, check, recognize};
pub use cow_device::CowDevice;
pub use error::{Error, Result};
pub use repair::repair;
pub use store::{
    Activity, DeviceUse, FileExtent, FormatOptions, Info, Needs, OpenOptions, Promptness,
    VolumeStore, WorkCounts, format, needs, newest_superblock as read_superblock,
};
pub use superblock::Label;
