//! Reading blocks from below a file's content.

use std::ops::Range;

use super::page::{Changed, zeros};
use crate::block::BLOCK;
use crate::error::Result;

/// A reader of blocks.
pub(in crate::store) trait Source {
    /// Reads one block.
    fn read(&self, block: u64, page: &mut [u8; BLOCK]) -> Result<()>;

    /// Reads the block below a page that is about to be changed. `parts`: dirty parts lie over it;
    /// the result may contain them or not.
    fn read_below(&self, block: u64, parts: bool, page: &mut [u8; BLOCK]) -> Result<()> {
        let _ = parts;
        self.read(block, page)
    }

    /// Reads adjacent blocks.
    fn read_row(&self, block: u64, row: &mut [u8]) -> Result<()> {
        let (pages, _) = row.as_chunks_mut();
        for (block, page) in (block..).zip(pages) {
            self.read(block, page)?;
        }
        Ok(())
    }
}

/// A part of a read that needs the device.
#[derive(Debug)]
pub(in crate::store) struct MissingRange {
    /// The range in the reader's buffer.
    pub(super) into: Range<usize>,
    /// The first block on the device, and the offset in it.
    pub(super) block: u64,
    pub(super) skip: usize,
    /// Dirty parts over that block; such a read is within one block.
    pub(super) over: Option<Changed>,
}

impl MissingRange {
    /// Reads it.
    ///
    /// # Errors
    /// Those of the device.
    pub(in crate::store) fn fill(&self, buf: &mut [u8], source: &dyn Source) -> Result<()> {
        let part = &mut buf[self.into.clone()];
        if self.skip == 0 && part.len().is_multiple_of(BLOCK) && self.over.is_none() {
            return source.read_row(self.block, part);
        }
        let mut page = zeros();
        source.read(self.block, &mut page)?;
        part.copy_from_slice(&page[self.skip..self.skip + part.len()]);
        if let Some(over) = &self.over {
            over.show_range(self.skip, part);
        }
        Ok(())
    }
}
