//! Names: looking them up, creating, linking, removing and renaming them.
//!
//! *Locking.* A change of a directory's names holds their lock from the lookup to the events, so
//! that events and changes have one order. A directory that is removed is locked after its parent.
//! Only a rename locks two directories, under the rename lock. The lock of `meta`, with times and
//! counts, is a leaf.

pub(crate) mod create;
pub(crate) mod link;
pub(crate) mod load;
pub(crate) mod lookup;
pub(crate) mod new_inode;
pub(crate) mod pair;
pub(crate) mod publish;
pub(crate) mod remove;
pub(crate) mod rename;
pub(crate) mod rename_apply;
pub(crate) mod rename_args;
pub(crate) mod rename_through;
pub(crate) mod window;

pub(crate) use create::check_target;
pub(crate) use lookup::dangling;
pub(crate) use new_inode::NewInode;
pub(crate) use rename_args::{End, check_flags};

use crate::core::Core;
use crate::directory::Names;
use crate::inode::{DirectoryBody, Inode};
use crate::namespace::load::hold_name;
use crate::types::Result;

/// Locks the names of a directory for a change of this one, and pins its entry.
///
/// # Errors
/// The store's.
#[inline]
pub(crate) fn lock_name<'n>(
    core: &Core,
    dir: &Inode,
    body: &'n DirectoryBody,
    name: &[u8],
) -> Result<Names<'n>> {
    let mut names = body.names.write();
    hold_name(core, dir, &mut names, name)?;
    Ok(names)
}

/// As [`lock_name`], for two names.
fn lock_names<'n>(
    core: &Core,
    dir: &Inode,
    body: &'n DirectoryBody,
    [one, other]: [&[u8]; 2],
) -> Result<Names<'n>> {
    let mut names = lock_name(core, dir, body, one)?;
    hold_name(core, dir, &mut names, other)?;
    Ok(names)
}

/// Has the directory the greatest link count? The caller holds the lock of its names.
fn is_full_of_directories(core: &Core, dir: &Inode) -> bool {
    dir.nlink() >= core.policy.link_max()
}
