//! The bytes of regular files: what was written here and is not in the database yet, maps, and
//! reading through objects.
//!
//! A file is a base, which is what the database has of it, and up to two layers of changes above
//! it: one on its way to the database, and one that waits. A write costs no request. A flush sends
//! a small file whole, as a body; of a large one it stores the pages that were written in objects
//! and then maps them.
//!
//! Threads: `holdfast-dirty` flushes what waited long enough. `holdfast-put` and `holdfast-flush`
//! help a flush of several packs or files, and end with it. `holdfast-fetch` bring blocks ahead of
//! sequential readers, and `holdfast-cache` writes blocks to the cache on disk. `holdfast-notice`
//! notifies the core of files that others changed before a flush.
//!
//! *Locking.* Rooms above call without locks of this one. The lock of the table is above those of
//! files, which are only tried for under it. The locks of a file, of the list of dirty files and of
//! the cache of blocks are held for no request.

mod blocks;
mod budget_member;
mod change;
mod clock;
mod copy;
mod dirty;
mod disk;
mod file;
mod files;
mod flush;
mod joined;
mod layer;
mod limits;
mod map;
mod notices;
mod options;
pub(crate) mod pack;
pub(crate) mod page;
mod plan;
mod read;
mod readahead;
mod shift;
mod start;
mod table;
#[cfg(test)]
mod tests;
mod view;
mod waiting;
mod writeback;

pub(crate) use files::{Files, Written};
pub use options::FileOptions;
pub(crate) use pack::damage;
