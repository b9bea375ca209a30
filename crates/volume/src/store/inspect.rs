//! Looking at a volume without changing it.

use std::sync::Arc;

use holdfast_device::BlockDevice;

use super::open::{OpenOptions, read_superblock};
use super::{Inner, VolumeStore};
use crate::Result;
use crate::check::Overlay;
use crate::space::Report;
use crate::superblock::Superblock;

/// What an open volume says of itself.
#[derive(Clone, Debug)]
pub struct Info {
    /// As it was written last.
    pub superblock: Superblock,
    /// How its blocks are used.
    pub space: Report,
    /// Groups of blocks.
    pub groups: u64,
    /// Inodes that there are.
    pub inodes: u64,
}

/// The superblock that counts. Its counts are those of the last checkpoint.
///
/// # Errors
/// [`Error::Superblock`](crate::Error::Superblock) if there is none; those of the device.
pub fn superblock(device: &Arc<dyn BlockDevice>) -> Result<Superblock> {
    Ok(read_superblock(device)?.0)
}

impl VolumeStore {
    /// Opens a volume to look at it: the device is read only, and what its journal holds is replayed
    /// in memory. Changes stay in memory too, and are gone with the store.
    ///
    /// # Errors
    /// As [`VolumeStore::open`].
    pub fn open_read_only(device: Arc<dyn BlockDevice>, options: &OpenOptions) -> Result<Self> {
        let options = OpenOptions {
            commit_every: None,
            ..*options
        };
        Self::open(Arc::new(Overlay::new(device)), &options)
    }

    /// What it says of itself at this moment.
    #[must_use]
    pub fn info(&self) -> Info {
        self.inner.info()
    }

    /// Why nothing is written any more; `None` as long as the volume has not failed. To go on, it has to be opened
    /// again.
    #[must_use]
    pub fn failure_reason(&self) -> Option<&str> {
        self.inner.alarm.reason()
    }

    /// Has `notify` called with the reason when the volume fails, at once if it has. The thread that calls it may hold the
    /// store's locks: it must not wait, nor come back to the store.
    pub fn notify_failure(&self, notify: impl FnOnce(&str) + Send + 'static) {
        self.inner.alarm.set(Box::new(notify));
    }
}

impl Inner {
    fn info(&self) -> Info {
        let superblock = self.superblock.lock().clone();
        Info {
            groups: superblock.layout().groups(),
            superblock,
            space: self.space.report(),
            inodes: self.inodes(),
        }
    }
}
