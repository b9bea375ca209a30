//! Where the blocks of a file lie, for those who ask (as FIEMAP does of the kernel's file systems).

use holdfast_types::Ino;

use super::VolumeStore;
use crate::Result;
use crate::space::Extent;
use crate::store::file::content::Content;
use crate::store::file::extent_map::Run;

/// Consecutive blocks of a file that lie consecutively on the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileExtent {
    /// The first block, in blocks of the file.
    pub logical: u64,
    /// Where they lie.
    pub extent: Extent,
    /// Taken, but never written: they read as zeros.
    pub unwritten: bool,
}

impl VolumeStore {
    /// The extents of a file, in its order. What was written and not committed has no place yet;
    /// few bytes never have one.
    ///
    /// # Errors
    /// Those of the device, and of what was found damaged.
    pub fn extents(&self, ino: Ino) -> Result<Vec<FileExtent>> {
        let extents = |content: &Content| {
            let runs = content.mapping().into_iter().flat_map(|runs| runs.iter());
            Ok(runs.map(FileExtent::of).collect())
        };
        self.inner
            .read(|snapshot_reader| snapshot_reader.with_content(ino, extents))
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
