//! Names: looking them up, making, linking, removing and renaming them.
//!
//! *Locking.* A change of a directory's names holds the write lock of its `names` from the
//! lookup to the events, so that events and changes have one order. A directory that goes is
//! locked after the one that holds it. Two directories are locked only by a rename, under
//! `rename_lock`. Times and counts are in `meta`, a leaf.

mod carry;
mod create;
mod link;
mod lookup;
mod publish;
mod remove;
mod rename;

pub(crate) use create::{Birth, check_target};
pub(crate) use lookup::dangling;
pub(crate) use rename::{End, check_flags};

use crate::inode::{Meta, directory_size};
use crate::types::Time;

/// A directory's names changed: now it holds `names` of them, and `subdirs` more directories.
fn names_changed(meta: &mut Meta, names: u32, subdirs: i32, now: Time) {
    meta.modified(now);
    meta.size = directory_size(names);
    meta.nlink = meta.nlink.saturating_add_signed(subdirs);
}
