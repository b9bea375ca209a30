//! The directories between the top of a copy and where it is.
//!
//! Only the lowest are held open: a tree may be deeper than a process may have descriptors. One further up keeps its
//! names in memory and is entered again from below; that it is the same one is checked.

use std::ffi::OsString;
use std::io;
use std::vec;

use super::tree::{About, Tree};

/// Directories that are held open, below the top.
const AWAKE: usize = 16;

/// A directory on the way.
pub(super) struct Level<F: Tree, T: Tree> {
    /// Both sides; none while it sleeps.
    sides: Option<(F::Dir, T::Dir)>,
    /// Which directory the copy is.
    to_id: (u64, u64),
    names: Names<F::Names>,
    pub(super) about: About,
}

/// Names that are still to come.
enum Names<N> {
    Stream(N),
    Kept(vec::IntoIter<io::Result<OsString>>),
}

/// The directories from the top down to where a copy is. `sides.is_some()` of the first, and of the last
/// [`AWAKE`].
pub(super) struct Levels<F: Tree, T: Tree>(Vec<Level<F, T>>);

/// The top, and the lowest.
type Ends<'l, F, T> = (&'l Level<F, T>, &'l Level<F, T>);

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
    /// While it sleeps, which no directory does that is worked on.
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

    fn sleep(&mut self) {
        if let Names::Stream(names) = &mut self.names {
            let rest: Vec<_> = names.collect();
            self.names = Names::Kept(rest.into_iter());
        }
        self.sides = None;
    }

    /// Holds it again, as the directory above `below`.
    fn wake(&mut self, (from, to): (&F, &T), below: &Self) -> io::Result<()> {
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

    /// The next name in the lowest directory; `None`: all is done.
    pub(super) fn next_name(&mut self) -> Option<Option<io::Result<OsString>>> {
        self.0.last_mut().map(Level::next_name)
    }

    /// The top, and the lowest.
    pub(super) fn ends(&self) -> Option<Ends<'_, F, T>> {
        Some((self.0.first()?, self.0.last()?))
    }

    /// Goes down.
    pub(super) fn push(&mut self, level: Level<F, T>) {
        self.0.push(level);
        let asleep = self.0.len().saturating_sub(1 + AWAKE);
        // The top stays: links are made from there.
        if asleep > 0 {
            self.0[asleep].sleep();
        }
    }

    /// Goes up; gives what was left.
    ///
    /// # Errors
    /// If the directory above is not to be found again.
    pub(super) fn pop(&mut self, sides: (&F, &T)) -> io::Result<Option<Level<F, T>>> {
        let level = self.0.pop();
        if let (Some(level), Some(above)) = (&level, self.0.last_mut()) {
            above.wake(sides, level)?;
        }
        Ok(level)
    }
}
