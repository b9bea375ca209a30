//! One file: its extents and its dirty pages.
//!
//! Owns nothing beyond a file's [content], and knows neither the volume nor other files.

pub(in crate::store) mod content;
pub(in crate::store) mod delayed_allocation;
pub(in crate::store) mod dirty_pages;
pub(in crate::store) mod extent_map;
pub(in crate::store) mod page;
