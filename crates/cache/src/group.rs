//! Groups of 64 pages with one state bit for each page.

use crate::PAGE_SIZE;

/// log2 of [`PAGE_SIZE`].
pub(crate) const PAGE_SHIFT: u32 = PAGE_SIZE.trailing_zeros();
/// Pages of a group: as many as a word has bits.
pub(crate) const GROUP_PAGES: u64 = 64;
/// Bytes of content that a group spans.
pub(crate) const GROUP_SIZE: u64 = GROUP_PAGES << PAGE_SHIFT;
