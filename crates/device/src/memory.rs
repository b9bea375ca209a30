use crate::block_device::{check_new_size, check_range};
use crate::{BlockDevice, Image, Operation, Result, SECTOR};
use parking_lot::RwLock;

/// A device in memory: sparse, growable, and gone with the process.
///
/// Every write is durable at once, so a flush does nothing. [`image`](Self::image) takes a cheap
/// copy of the content; [`from_image`](Self::from_image) makes a device of one.
#[derive(Debug)]
pub struct MemoryDevice {
    name: String,
    image: RwLock<Image>,
    cache: Option<u64>,
}

impl MemoryDevice {
    /// A device of zeros, with `size` bytes rounded down to whole sectors.
    #[must_use]
    pub fn new(size: u64) -> Self {
        Self::from_image("memory", Image::new(size))
    }

    /// A device with this content. The name is for messages.
    #[must_use]
    pub fn from_image(name: &str, mut image: Image) -> Self {
        image.resize(image.size() / SECTOR * SECTOR);
        Self {
            name: name.to_owned(),
            image: RwLock::new(image),
            cache: None,
        }
    }

    /// The same device with this [cache identity](BlockDevice::cache_identity), for tests with
    /// unflushed writes.
    #[must_use]
    pub fn with_cache_identity(self, identity: Option<u64>) -> Self {
        Self {
            cache: identity,
            ..self
        }
    }

    /// The present content. It shares memory with the device until either is written.
    #[must_use]
    pub fn image(&self) -> Image {
        self.image.read().clone()
    }
}

impl BlockDevice for MemoryDevice {
    fn describe(&self) -> String {
        self.name.clone()
    }

    fn size(&self) -> u64 {
        self.image.read().size()
    }

    fn alignment(&self) -> u64 {
        SECTOR
    }

    fn cache_identity(&self) -> Option<u64> {
        self.cache
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        check_range(self, Operation::Read, offset, buf.len() as u64)?;
        self.image.read().read(offset, buf);
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        check_range(self, Operation::Write, offset, bytes.len() as u64)?;
        self.image.write().write(offset, bytes);
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn discard(&self, offset: u64, len: u64) -> Result<bool> {
        check_range(self, Operation::Discard, offset, len)?;
        self.image.write().clear(offset, len);
        Ok(true)
    }

    fn resize(&self, size: u64) -> Result<()> {
        let mut image = self.image.write();
        check_new_size(self, image.size(), size)?;
        image.resize(size);
        Ok(())
    }
}
