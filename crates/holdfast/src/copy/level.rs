//! The directories from the top of a copy to its current one.
//!
//! Only the lowest are open, since a tree may be deeper than the limit of descriptors. For a closed
//! one, the remaining names are kept in memory. It is opened again through `..` of the one below; a
//! check ensures that it is the same directory.

use std::ffi::OsString;
use std::io;
use std::vec;

use super::tree::{About, Tree};

/// Most open directories below the top.
const OPEN_MAX: usize = 16;

/// A directory on the path.
pub(super) struct Level<F: Tree, T: Tree> {
    /// The directory on both sides; `None` while it is closed.
    sides: Option<(F::Dir, T::Dir)>,
    /// Device and number of the target directory.
    to_id: (u64, u64),
    names: Names<F::Names>,
    pub(super) about: About,
}

/// Names not yet copied.
enum Names<N> {
    Stream(N),
    Kept(vec::IntoIter<io::Result<OsString>>),
}

/// The directories from the top to the current one. `sides.is_some()` for the first, and for the
/// last [`OPEN_MAX`].
pub(super) struct Levels<F: Tree, T: Tree>(Vec<Level<F, T>>);

/// The top, and the lowest.
type TopAndLast<'l, F, T> = (&'l Level<F, T>, &'l Level<F, T>);

impl<F: Tree, T: Tree> Level<F, T> {
    pub(super) fn new(
        sides: (F::Dir, T::Dir),
        names: F::Names,
        about: About,
        to_id: (u64, u64),
    ) -> Self {
        Self {
            sides: Some(sides),
            to_id,
            names: Names::Stream(names),
            about,
        }
    }

    /// The directory on both sides.
    ///
    /// # Errors
    /// If it is closed, which the current directory never is.
    pub(super) fn sides(&self) -> io::Result<(&F::Dir, &T::Dir)> {
        let sides = self.sides.as_ref().map(|(from, to)| (from, to));
        sides.ok_or_else(|| io::Error::other("is not open"))
    }

    fn next_name(&mut self) -> Option<io::Result<OsString>> {
        match &mut self.names {
            Names::Stream(names) => names.next(),
            Names::Kept(names) => names.next(),
        }
    }

    fn close(&mut self) {
        if let Names::Stream(names) = &mut self.names {
            let rest: Vec<_> = names.collect();
            self.names = Names::Kept(rest.into_iter());
        }
        self.sides = None;
    }

    /// Opens it again, as the parent of `below`.
    fn reopen(&mut self, (from, to): (&F, &T), below: &Self) -> io::Result<()> {
        if self.sides.is_some() {
            return Ok(());
        }
        let (lower_from, lower_to) = below.sides()?;
        let (from_dir, to_dir) = (from.parent(lower_from)?, to.parent(lower_to)?);
        let dot = ".".as_ref();
        let same = from.about(&from_dir, dot)?.id == self.about.id
            && to.about(&to_dir, dot)?.id == self.to_id;
        if !same {
            return Err(io::Error::other("a directory above it was moved meanwhile"));
        }
        self.sides = Some((from_dir, to_dir));
        Ok(())
    }
}

impl<F: Tree, T: Tree> Levels<F, T> {
    pub(super) fn new(top: Level<F, T>) -> Self {
        Self(vec![top])
    }

    /// The next name in the lowest directory; `None`: the walk is done.
    pub(super) fn next_name(&mut self) -> Option<Option<io::Result<OsString>>> {
        self.0.last_mut().map(Level::next_name)
    }

    /// The top, and the lowest.
    pub(super) fn top_and_last(&self) -> Option<TopAndLast<'_, F, T>> {
        Some((self.0.first()?, self.0.last()?))
    }

    /// Descends.
    pub(super) fn push(&mut self, level: Level<F, T>) {
        self.0.push(level);
        let to_close = self.0.len().saturating_sub(1 + OPEN_MAX);
        // The top stays open: links are made from there.
        if to_close > 0 {
            self.0[to_close].close();
        }
    }

    /// Ascends; returns the level that was left.
    ///
    /// # Errors
    /// If the parent has been moved.
    pub(super) fn pop(&mut self, sides: (&F, &T)) -> io::Result<Option<Level<F, T>>> {
        let level = self.0.pop();
        if let (Some(level), Some(above)) = (&level, self.0.last_mut()) {
            above.reopen(sides, level)?;
        }
        Ok(level)
    }
}
