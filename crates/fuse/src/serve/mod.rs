//! The core behind a mount. [`CoreOperations`] serves requests from a file system, and passes
//! changes made past the mount on to the kernel's caches.
//!
//! All files with requests share the state in `core_operations.rs`, and `operations.rs` leads each
//! request to its function. Names, attributes and locks stand below open files, which use them.
//!
//! Node ids are inode numbers. Each entry sent to the kernel leaks one reference of the core, which
//! FORGET gives back. The kernel checks permissions (`default_permissions`), so callers of the core
//! have `checked == true`.

mod administration;
mod attributes;
mod backing;
mod caller;
mod callers;
mod closing;
mod content;
mod control;
mod core_operations;
mod flags;
mod handles;
mod info;
mod kept_listings;
mod listing_bounds;
mod locks;
mod mounting;
mod names;
mod observer;
mod opening;
mod operations;
mod prefetch;
mod revalidator;

pub use crate::wire::control::CONTROL_BYTES;
pub use control::{Asking, Control};
pub use core_operations::CoreOperations;
pub use info::{INFO_XATTR, INODES_XATTR, InfoDetail, InfoSource};
pub use mounting::{mount, mount_with_control};
pub use observer::KernelCaches;
