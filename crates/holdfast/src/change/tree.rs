//! A walk over a tree that changes each name.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::copy::tree::{About, Tree as _};
use crate::copy::walk::{is_fatal, split};
use crate::copy::{CopyError, Inside, Names, Side};
use crate::stop::check_stop;
use crate::{Dir, FileSystem};

const SELF: &str = ".";

/// Options of a change.
#[derive(Clone, Debug, Default)]
pub struct ChangeOptions {
    /// Once true, the work ends with `ECANCELED`.
    pub stop: Option<Arc<AtomicBool>>,
}

/// The counts of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Names that were changed.
    pub names: u64,
    /// Names that failed; each was reported.
    pub failed: u64,
}

/// An event of a change.
#[derive(Debug)]
pub enum ChangeEvent<'c> {
    /// The counts so far.
    Progress(&'c Changed),
    /// One name failed; the work goes on.
    Failed(&'c CopyError),
}

/// When a directory is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Before its content.
    Before,
    /// After its content.
    After,
}

/// The change of one name.
type Apply<'d> = &'d dyn Fn(&Inside, &Dir, &OsStr, &About) -> io::Result<()>;

/// A change in progress.
pub(super) struct Change<'c> {
    inside: Inside,
    top: &'c Path,
    options: &'c ChangeOptions,
    watch: &'c mut dyn FnMut(ChangeEvent<'_>),
    below: PathBuf,
    changed: Changed,
}

/// An open directory on the path of the walk, and its name in its parent.
struct Level {
    above: Dir,
    name: OsString,
    about: About,
    dir: Dir,
    names: Names,
}

impl<'c> Change<'c> {
    pub(super) fn new(
        fs: &FileSystem,
        top: &'c Path,
        options: &'c ChangeOptions,
        watch: &'c mut dyn FnMut(ChangeEvent<'_>),
    ) -> Self {
        Self {
            inside: fs.side(),
            top,
            options,
            watch,
            below: PathBuf::new(),
            changed: Changed::default(),
        }
    }

    pub(super) fn all(mut self, order: Order, apply: Apply<'_>) -> Result<Changed, CopyError> {
        let (above, name) = match split(self.top) {
            Some((above, name)) => (above.to_owned(), name),
            None => (self.top.to_owned(), OsString::from(SELF)),
        };
        let above = self
            .inside
            .open_dir(&above)
            .map_err(|error| self.failed(error))?;
        if let Err(error) = self.inside.about(&above, &name) {
            return Err(self.failed(error));
        }
        let mut levels: Vec<Level> = Vec::new();
        let entered = self.one(&above, name, order, apply);
        levels.extend(self.unless_fatal(entered)?.flatten());
        while let Some(level) = levels.last_mut() {
            check_stop(&self.options.stop).map_err(|error| self.failed(error))?;
            match level.names.next() {
                Some(Ok(name)) => {
                    let dir = level.dir.clone();
                    self.below.push(&name);
                    let entered = self.one(&dir, name, order, apply);
                    match self.unless_fatal(entered)?.flatten() {
                        Some(deeper) => levels.push(deeper),
                        None => drop(self.below.pop()),
                    }
                    (self.watch)(ChangeEvent::Progress(&self.changed));
                }
                Some(Err(error)) => {
                    let failed = self.unless_fatal::<()>(Err(error));
                    self.leave(&mut levels, order, apply)?;
                    failed?;
                }
                None => self.leave(&mut levels, order, apply)?,
            }
        }
        Ok(self.changed)
    }

    /// Changes a name; returns a directory to descend into.
    fn one(
        &mut self,
        above: &Dir,
        name: OsString,
        order: Order,
        apply: Apply<'_>,
    ) -> io::Result<Option<Level>> {
        let about = match self.inside.about(above, &name) {
            // Another process may have removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            about => about?,
        };
        let is_dir = about.kind.is_dir();
        if !is_dir || order == Order::Before {
            apply(&self.inside, above, &name, &about)?;
            self.changed.names += 1;
        }
        if !is_dir {
            return Ok(None);
        }
        let dir = self.inside.enter(above, &name)?;
        let names = self.inside.names(&dir)?;
        Ok(Some(Level {
            above: above.clone(),
            name,
            about,
            dir,
            names,
        }))
    }

    /// Finishes the last directory.
    fn leave(
        &mut self,
        levels: &mut Vec<Level>,
        order: Order,
        apply: Apply<'_>,
    ) -> Result<(), CopyError> {
        if let Some(Level {
            above, name, about, ..
        }) = levels.pop()
        {
            if order == Order::After {
                let done = apply(&self.inside, &above, &name, &about);
                if self.unless_fatal(done)?.is_some() {
                    self.changed.names += 1;
                }
            }
            self.below.pop();
        }
        Ok(())
    }

    fn failed(&self, error: io::Error) -> CopyError {
        CopyError::below(Side::To, self.top, &self.below, error)
    }

    /// Reports an error of one name, and goes on; passes a fatal error on.
    fn unless_fatal<R>(&mut self, done: io::Result<R>) -> Result<Option<R>, CopyError> {
        let failed = match done {
            Ok(done) => return Ok(Some(done)),
            Err(error) => self.failed(error),
        };
        if is_fatal(&failed) {
            return Err(failed);
        }
        self.changed.failed += 1;
        (self.watch)(ChangeEvent::Failed(&failed));
        Ok(None)
    }
}
