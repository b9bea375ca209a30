//! A rename that a store which is written through has performed.

use super::rename_args::End;
use crate::core::Core;
use crate::inode::DirectoryBody;
use crate::namespace::remove::notify_unlinked;
use crate::namespace::rename_apply::notify_moved;
use crate::node::Node;
use crate::through::{Performed, enter};
use crate::types::{Errno, FileType, Ino, RenameFlags, Result};

/// The inode of a name.
type Entry = (Ino, FileType);

/// Updates memory after the store has performed a rename; returns the inodes that changed.
///
/// # Errors
/// Those of the store.
pub(super) fn follow_rename(
    core: &Core,
    performed: &Performed<'_>,
    from: End<'_>,
    to: End<'_>,
    flags: RenameFlags,
) -> Result<Vec<Node>> {
    let done = &performed.done;
    let moved = done.entry.ok_or(Errno::EUCLEAN)?;
    let exchange = flags.contains(RenameFlags::EXCHANGE);
    if done.other == Some(moved) {
        // Two names of one inode: both stay.
        return Ok(Vec::new());
    }
    let from_body = from.dir.inode().directory()?;
    let to_body = to.dir.inode().directory()?;
    move_names(performed, (from, from_body), (to, to_body), flags, moved)?;
    let [source, other] = performed.take_in_moved()?;
    if let Some(target) = other.as_ref().filter(|_| !exchange) {
        notify_unlinked(core, target.inode(), target.inode().nlink());
    }
    notify_moved(core, from, to, moved.0, moved.1.is_dir());
    if let (true, Some((ino, kind))) = (exchange, done.other) {
        notify_moved(core, to, from, ino, kind.is_dir());
    }
    Ok(source.into_iter().chain(other).collect())
}

/// Applies the move to the cached names.
fn move_names(
    performed: &Performed<'_>,
    (from, from_body): (End<'_>, &DirectoryBody),
    (to, to_body): (End<'_>, &DirectoryBody),
    flags: RenameFlags,
    moved: Entry,
) -> Result<()> {
    let exchange = flags.contains(RenameFlags::EXCHANGE);
    // The attributes of a whiteout have to be read from the store.
    let whiteout = flags.contains(RenameFlags::WHITEOUT);
    if from.dir == to.dir {
        return performed.update_names(from.dir.inode(), from_body, |names| {
            match (exchange, names.has(to.name)) {
                _ if whiteout || !names.has(from.name) => return false,
                (true, true) => names.exchange(from.name, to.name),
                (true, false) => return false,
                (false, true) => drop(names.rename_over(from.name, to.name)),
                (false, false) => drop(names.rename(from.name, to.name)),
            }
            true
        });
    }
    performed.update_names(to.dir.inode(), to_body, |names| {
        enter(names, to.name, moved).is_some()
    })?;
    performed.update_names(from.dir.inode(), from_body, |names| {
        match (exchange, performed.done.other) {
            _ if whiteout => false,
            (true, Some(other)) => enter(names, from.name, other).is_some(),
            (true, None) => false,
            (false, _) => {
                names.remove(from.name);
                true
            }
        }
    })
}
