//! One file: its extents and its dirty pages.
//!
//! Owns nothing beyond a file's [content], and knows neither the volume nor other files.

mod content;
mod delayed_allocation;
mod dirty_pages;
mod extent_map;
mod page;
mod source;

pub use content::INLINE_MAX;
pub(super) use content::{Content, edges_of};
pub(super) use delayed_allocation::BlockAllocator;
pub(super) use extent_map::{Mapping, Run};
#[cfg(test)]
pub(super) use page::Changed;
pub(super) use page::{Page, WriteInFlight, zeros};
pub(super) use source::{MissingRange, Source};
