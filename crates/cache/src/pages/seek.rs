//! Where data and holes are: `SEEK_DATA` and `SEEK_HOLE` of lseek(2).

use super::PagesLock;
use crate::group::PAGE_SHIFT;

impl PagesLock<'_> {
    /// The offset of the first byte of data at or behind `offset` in a file of `size` bytes;
    /// none (`ENXIO`) if there is only a hole, or `offset` is at the end. Framed pages are data,
    /// unwritten ones are not.
    #[must_use]
    pub fn seek_data(&self, offset: u64, size: u64) -> Option<u64> {
        if offset >= size {
            return None;
        }
        let page = self.frames.next_frame(offset >> PAGE_SHIFT)?;
        Some(offset.max(page << PAGE_SHIFT)).filter(|&data| data < size)
    }

    /// The offset of the first byte of a hole at or behind `offset` in a file of `size` bytes,
    /// where the end counts as one; none (`ENXIO`) if `offset` is at the end.
    #[must_use]
    pub fn seek_hole(&self, offset: u64, size: u64) -> Option<u64> {
        if offset >= size {
            return None;
        }
        let page = self.frames.next_gap(offset >> PAGE_SHIFT);
        Some(offset.max(page << PAGE_SHIFT).min(size))
    }
}
