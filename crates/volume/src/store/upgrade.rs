//! A volume of an earlier Holdfast gets what mkfs gives to new ones.
//!
//! It is one checkpoint: with its superblock the records of the inode tree say how much space files take, their times are
//! those that are kept now, and the features say so. A crash before leaves the volume as it was.

use std::sync::Arc;

use holdfast_core::store::StoredSpace;
use holdfast_device::BlockDevice;
use holdfast_types::FileType;

use super::{Inner, OpenOptions, VolumeStore};
use crate::store::checkpoint::Lifted;
use crate::store::load::Finder;
use crate::tree::{Data, DataKind};
use crate::{BLOCK, Result};

impl VolumeStore {
    /// Brings the volume on a device to the present features; says whether it had them not. The volume is closed
    /// cleanly then.
    ///
    /// # Errors
    /// Those of opening it, of the device, and of what was found damaged.
    pub(crate) fn upgrade(device: &Arc<dyn BlockDevice>) -> Result<bool> {
        let options = OpenOptions {
            commit_every: None,
            ..OpenOptions::default()
        };
        let store = Self::open(Arc::clone(device), &options)?;
        let lifts = store.inner.lift()?;
        store.close()?;
        Ok(lifts)
    }
}

impl Inner {
    fn lift(&self) -> Result<bool> {
        let features = self.superblock.lock().features;
        if features.has_spaces() && features.has_times_and_flags() {
            return Ok(false);
        }
        self.checkpoint_with(|| self.read(|finder| finder.lifted()).map(Some))?;
        Ok(true)
    }
}

impl Finder<'_> {
    /// The files of the trees whose size does not say how much space they take, with records that do, and what had times
    /// that are not kept any more.
    fn lifted(&self) -> Result<Lifted> {
        let mut lifted = Lifted::new();
        let mut content = self.data_records();
        let mut inodes = self.inodes().range(None)?;
        while let Some((ino, mut inode)) = inodes.next()? {
            let clamped = self.layers.roots.clamp_times(&mut inode.record);
            let record = &mut inode.record;
            if record.kind != FileType::Regular {
                if clamped {
                    lifted.insert(ino, inode);
                }
                continue;
            }
            let mut blocks = 0;
            content.each(ino, DataKind::Inline, |_, data| match data {
                Data::Inline(_) => blocks += record.size.div_ceil(BLOCK as u64),
                Data::Extent(extent) => blocks += u64::from(extent.blocks),
                Data::Xattr { .. } => {}
            })?;
            record.space = StoredSpace::of(blocks, record.size);
            if clamped || record.space.beside_size().is_some() {
                lifted.insert(ino, inode);
            }
        }
        Ok(lifted)
    }
}
