//! The extents of a file, as FIEMAP reports them.

use holdfast_types::Ino;

use super::VolumeStore;
use super::file::{Content, Run};
use crate::error::Result;
use crate::space::Extent;

/// Consecutive blocks of a file at consecutive blocks of the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileExtent {
    /// First block, in the file.
    pub logical: u64,
    /// Their place on the volume.
    pub extent: Extent,
    /// Allocated but never written: reads as zeros.
    pub unwritten: bool,
}

impl VolumeStore {
    /// The extents of a file, in file order. Dirty pages have none before a commit; inline files
    /// never have any.
    ///
    /// # Errors
    /// Those of the device, and of what is damaged.
    pub fn extents(&self, ino: Ino) -> Result<Vec<FileExtent>> {
        let extents = |content: &Content| {
            let runs = content.mapping().into_iter().flat_map(|runs| runs.iter());
            Ok(runs.map(FileExtent::of).collect())
        };
        self.inner
            .reader
            .read(|snapshot_reader| snapshot_reader.with_part(ino, 0, extents, |_, _| true))
    }
}

impl FileExtent {
    fn of((logical, run): (u64, Run)) -> Self {
        Self {
            logical,
            extent: run.extent,
            unwritten: run.unwritten,
        }
    }
}
