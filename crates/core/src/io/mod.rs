//! The content of regular files.
//!
//! *Locking.* A file's pages are locked during a change, size and times included; the size changes
//! after the pages. A read takes no lock and sees a change whole or not at all; after repeated
//! conflicts with changes it takes the lock. Copies between two files lock them in ascending order
//! of `ino`.

pub(crate) mod checks;
pub(crate) mod copy;
pub(crate) mod fallocate;
pub(crate) mod map;
pub(crate) mod pages;
pub(crate) mod populate;
pub(crate) mod read;
pub(crate) mod reserve;
pub(crate) mod resize;
pub(crate) mod seek;
pub(crate) mod unmapped;
pub(crate) mod write;
