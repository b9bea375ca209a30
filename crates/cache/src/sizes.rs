//! The sizes of pages, of files and of groups: 64 pages with one state bit each.

/// The size of a page in bytes.
pub const PAGE_SIZE: usize = crate::frame::FRAME_SIZE;
/// log2 of [`PAGE_SIZE`].
pub(crate) const PAGE_SHIFT: u32 = PAGE_SIZE.trailing_zeros();

/// Largest size of a file, hence one more than the offset of the last byte: `i64::MAX`.
pub const MAX_SIZE: u64 = i64::MAX.cast_unsigned();
/// One more than the number of the last page that a file can have.
pub(crate) const PAGE_END: u64 = (MAX_SIZE >> PAGE_SHIFT) + 1;

/// Pages of a group: as many as a word has bits.
pub(crate) const GROUP_PAGES: u64 = 64;
/// Bytes of content that a group spans.
pub(crate) const GROUP_SIZE: u64 = GROUP_PAGES << PAGE_SHIFT;
