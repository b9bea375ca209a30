//! The lock of the names of a directory, for a change of one or two.

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
pub(crate) fn lock_names<'n>(
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
pub(crate) fn is_full_of_directories(core: &Core, dir: &Inode) -> bool {
    dir.nlink() >= core.policy.link_max()
}
