//! The devices of a volume: image files, block devices, memory.
//!
//! A [`BlockDevice`] is read and written at offsets, flushed, discarded, grown. Writes are durable
//! after the next [`BlockDevice::flush`], and until then in any order or not at all. A crash may
//! leave any subset of the writes since the last flush, each torn between two sectors.

mod block_device;
mod error;
mod file;
mod image;
mod memory;
mod pass_on;
mod signature;

pub use block_device::{BlockDevice, ReadRequest, Room, SECTOR, WriteRequest, check_range};
pub use error::{Cause, DeviceError, Holder, Operation, Result};
pub use file::{Access, FileDevice};
pub use image::Image;
pub use memory::MemoryDevice;
pub use signature::{Content, content};
