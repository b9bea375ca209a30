//! Clean volumes that several processes read, until one of them may write.

use std::path::Path;
use std::sync::Arc;

use holdfast_device::{Access, BlockDevice, FileDevice};
use holdfast_volume::superblock::SLOTS;
use holdfast_volume::{BLOCK, CowDevice, read_superblock};

use super::error::VolumeError;
use crate::types::Errno;

/// Bytes of both superblocks.
const HEAD: usize = SLOTS.len() * BLOCK;

/// The device of a volume opened by
/// [`open_shared`](crate::VolumeBuilder::open_shared).
#[derive(Debug)]
pub struct Shared {
    file: Arc<FileDevice>,
    pub(crate) device: Arc<CowDevice>,
    /// The superblocks as they were at the opening.
    head: Vec<u8>,
}

impl Shared {
    /// `None` if the volume was not closed.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, VolumeError> {
        let file = Arc::new(FileDevice::open(path, Access::Shared)?);
        let below: Arc<dyn BlockDevice> = Arc::clone(&file) as _;
        if !read_superblock(&below)?.clean {
            return Ok(None);
        }
        let head = head(&file)?;
        Ok(Some(Self {
            device: Arc::new(CowDevice::new(below)),
            file,
            head,
        }))
    }

    /// Excludes other processes; the volume may be written then. Its option `read_only` is as
    /// before.
    ///
    /// # Errors
    /// `EBUSY` if others read it, which then stays as it is; `ESTALE` if another process changed it
    /// meanwhile.
    pub fn exclude_others(&self) -> Result<(), VolumeError> {
        self.file.exclude_others()?;
        if self.device.is_merged() {
            return Ok(());
        }
        if head(&self.file)? != self.head {
            let text = format!(
                "{} was changed by another process: unmount it, and mount it again",
                self.file.describe()
            );
            return Err(VolumeError::new(Errno::ESTALE, text));
        }
        Ok(self.device.merge(&SLOTS)?)
    }
}

fn head(file: &FileDevice) -> Result<Vec<u8>, VolumeError> {
    let mut head = vec![0; HEAD];
    file.read(0, &mut head)?;
    Ok(head)
}
