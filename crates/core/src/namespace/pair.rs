//! Locking the two directories of a rename.
//!
//! *Locking.* A rename between two directories first takes the rename lock, exclusively if a
//! directory moves, so that the tree's shape is constant. Then it locks the names of the directory
//! with the smaller depth, and at equal depth that with the lower number. So an ancestor is locked
//! before a descendant, and renames cannot deadlock. A directory that is replaced is locked last.

use std::sync::atomic::Ordering;

use super::rename_args::End;
use crate::by_number::find_node;
use crate::core::{Core, no_entry};
use crate::directory::Names;
use crate::namespace::lock::{lock_name, lock_names};
use crate::node::Node;
use crate::types::{Errno, Ino, Result};

/// The locked names of both ends; `to` is absent if both are in one directory.
pub(super) struct Locked<'a> {
    pub(super) from: Names<'a>,
    to: Option<Names<'a>>,
}

impl<'a> Locked<'a> {
    pub(super) fn to(&mut self) -> &mut Names<'a> {
        self.to.as_mut().unwrap_or(&mut self.from)
    }

    /// Does one of the names lead to a directory?
    pub(super) fn have_directory(&mut self, from: End<'_>, to: End<'_>) -> bool {
        let entries = [self.from.get(from.name), self.to().get(to.name)];
        entries
            .into_iter()
            .flatten()
            .any(|entry| entry.kind.is_dir())
    }
}

/// Locks the names of both ends in order. For two directories the caller holds the rename lock.
pub(super) fn lock_both<'n>(core: &Core, from: End<'n>, to: End<'n>) -> Result<Locked<'n>> {
    let bodies = (from.dir.inode().directory()?, to.dir.inode().directory()?);
    if from.dir == to.dir {
        return Ok(Locked {
            from: lock_names(core, from.dir.inode(), bodies.0, [from.name, to.name])?,
            to: None,
        });
    }
    // An ancestor has the smaller depth.
    let place = |dir: &Node| depth(core, dir).map(|depth| (depth, dir.ino()));
    let to_first = place(to.dir)? < place(from.dir)?;
    let lock_from = || lock_name(core, from.dir.inode(), bodies.0, from.name);
    let lock_to = || lock_name(core, to.dir.inode(), bodies.1, to.name);
    let (from, to) = if to_first {
        let to = lock_to()?;
        (lock_from()?, to)
    } else {
        (lock_from()?, lock_to()?)
    };
    Ok(Locked { from, to: Some(to) })
}

/// Is `dir` equal to `above` or below it? The caller holds the rename lock.
pub(super) fn descends(core: &Core, dir: &Node, above: Ino) -> Result<bool> {
    let mut descends = false;
    climb(core, dir, |at| {
        descends = at == above;
        !descends
    })?;
    Ok(descends)
}

/// The number of ancestors of a directory. The caller holds the rename lock.
///
/// # Errors
/// `ENOENT` if it was removed and has no path to the root.
fn depth(core: &Core, dir: &Node) -> Result<usize> {
    let mut steps = 0;
    let top = climb(core, dir, |_| {
        steps += 1;
        true
    })?;
    // Every directory that was not removed is below the root.
    if top == Ino::ROOT {
        Ok(steps)
    } else {
        Err(no_entry(core))
    }
}

/// Calls `go_on` for a directory, its parent, and so on, until it returns false; returns the
/// last. That is the root if `go_on` never returned false and nothing on the way was removed.
fn climb(core: &Core, dir: &Node, mut go_on: impl FnMut(Ino) -> bool) -> Result<Ino> {
    let mut at = dir.clone();
    while go_on(at.ino()) {
        let parent = Ino(at.inode().directory()?.parent.load(Ordering::Relaxed));
        if parent == at.ino() {
            break;
        }
        // The parent of a removed directory may have been freed: stop there.
        at = match find_node(core, parent) {
            Ok(node) => node,
            Err(Errno::ESTALE) => break,
            Err(error) => return Err(error),
        };
    }
    Ok(at.ino())
}
