//! The two directories of a rename, and which is above the other.
//!
//! *Locking.* A rename between two directories holds the lock of the tree's shape, so that it
//! stands still (and alone, if a directory moves): then the names of the directory with fewer above it are
//! locked first, of two with as many the one with the lower number. So an ancestor comes before a
//! descendant, and however many renames there are, none waits for another in a circle. A directory that
//! is replaced is locked last.

use holdfast_sync::epoch;
use std::sync::atomic::Ordering;

use super::rename::End;
use crate::directory::Names;
use crate::file_system::Core;
use crate::inode::{Inode, Numbered as _};
use crate::node::Node;
use crate::types::{Errno, Ino, Result};

/// The locked names of both ends; `to` is absent when it is the same directory.
pub(super) struct Locked<'a> {
    pub(super) from: Names<'a>,
    to: Option<Names<'a>>,
}

impl<'a> Locked<'a> {
    pub(super) fn to(&mut self) -> &mut Names<'a> {
        self.to.as_mut().unwrap_or(&mut self.from)
    }
}

impl Core {
    /// Locks both names, in the order of the directories. If those are two, the shape stands still.
    pub(super) fn lock_ends<'n>(&self, from: End<'n>, to: End<'n>) -> Result<Locked<'n>> {
        let bodies = (from.dir.inode().directory()?, to.dir.inode().directory()?);
        if from.dir == to.dir {
            return Ok(Locked {
                from: self.lock_names(from.dir.inode(), bodies.0, [from.name, to.name])?,
                to: None,
            });
        }
        // Who is above another has fewer above himself.
        let place = |dir: &Node| self.depth(dir).map(|depth| (depth, dir.ino()));
        let to_first = place(to.dir)? < place(from.dir)?;
        let lock_from = || self.lock_name(from.dir.inode(), bodies.0, from.name);
        let lock_to = || self.lock_name(to.dir.inode(), bodies.1, to.name);
        let (from, to) = if to_first {
            let to = lock_to()?;
            (lock_from()?, to)
        } else {
            (lock_from()?, lock_to()?)
        };
        Ok(Locked { from, to: Some(to) })
    }

    /// Is `dir` below the directory `above` (or the same)? The shape stands still.
    pub(super) fn descends(&self, dir: &Node, above: Ino) -> Result<bool> {
        let mut descends = false;
        self.climb(dir, |at| {
            descends = at == above;
            !descends
        })?;
        Ok(descends)
    }

    /// How many directories are above this one? The shape stands still.
    ///
    /// # Errors
    /// `ENOENT` if it was removed: then nobody can say.
    fn depth(&self, dir: &Node) -> Result<usize> {
        let mut steps = 0;
        let top = self.climb(dir, |_| {
            steps += 1;
            true
        })?;
        // What is not removed hangs at the root.
        if top == Ino::ROOT {
            Ok(steps)
        } else {
            Err(self.absent())
        }
    }

    /// Shows a directory, the one above it, and so on, until `go_on` says no; returns the last. That is
    /// the root if it said yes all the time and nothing on the way was removed.
    fn climb(&self, dir: &Node, mut go_on: impl FnMut(Ino) -> bool) -> Result<Ino> {
        if self.pinned {
            return self.climb_in_memory(dir.inode(), go_on);
        }
        let mut at = dir.clone();
        while go_on(at.ino()) {
            let parent = Ino(at.inode().directory()?.parent.load(Ordering::Relaxed));
            if parent == at.ino() {
                break;
            }
            // A removed directory's parent may be gone as well: then nothing is above it.
            at = match self.node(parent) {
                Ok(node) => node,
                Err(Errno::ESTALE) => break,
                Err(error) => return Err(error),
            };
        }
        Ok(at.ino())
    }

    /// As [`Core::climb`], where nothing has to be loaded: without a use of directories that many
    /// have in common.
    pub(super) fn climb_in_memory(
        &self,
        dir: &Inode,
        mut go_on: impl FnMut(Ino) -> bool,
    ) -> Result<Ino> {
        let guard = epoch::pin();
        let mut at = dir;
        while go_on(at.ino()) {
            let parent = Ino(at.directory()?.parent.load(Ordering::Relaxed));
            if parent == at.ino() {
                break;
            }
            at = match self.index.peek(parent.0, &guard) {
                Some(inode) if inode.is_live() => inode,
                _ => break,
            };
        }
        Ok(at.ino())
    }
}
