//! One walk over a tree that changes each name.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::archive::check_stop;
use crate::copy::tree::{About, Tree as _};
use crate::copy::walk::{is_fatal, split};
use crate::copy::{CopyError, Inside, Names, Side};
use crate::{Dir, FileSystem};

const SELF: &str = ".";

/// How a tree is changed.
#[derive(Clone, Debug, Default)]
pub struct ChangeOptions {
    /// Once true, the work ends with `ECANCELED`.
    pub stop: Option<Arc<AtomicBool>>,
}

/// What a change of a tree has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Names that were changed.
    pub names: u64,
    /// Names that were not: each was told of.
    pub failed: u64,
}

/// What is told while a tree is changed.
#[derive(Debug)]
pub enum ChangeEvent<'c> {
    /// So much was done so far.
    Progress(&'c Changed),
    /// One name was not changed; the work goes on.
    Failed(&'c CopyError),
}

/// When is a directory's turn?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Before what it holds.
    Before,
    /// After it.
    After,
}

/// What is done to one name.
type Deed<'d> = &'d dyn Fn(&Inside, &Dir, &OsStr, &About) -> io::Result<()>;

/// One change.
pub(super) struct Change<'c> {
    inside: Inside,
    top: &'c Path,
    options: &'c ChangeOptions,
    watch: &'c mut dyn FnMut(ChangeEvent<'_>),
    below: PathBuf,
    changed: Changed,
}

/// A directory on the way, held, and its name in the one above.
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

    pub(super) fn all(mut self, order: Order, deed: Deed<'_>) -> Result<Changed, CopyError> {
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
        let entered = self.one(&above, name, order, deed);
        levels.extend(self.unless_fatal(entered)?.flatten());
        while let Some(level) = levels.last_mut() {
            check_stop(self.options.stop.as_ref()).map_err(|error| self.failed(error))?;
            match level.names.next() {
                Some(Ok(name)) => {
                    let dir = level.dir.clone();
                    self.below.push(&name);
                    let entered = self.one(&dir, name, order, deed);
                    match self.unless_fatal(entered)?.flatten() {
                        Some(deeper) => levels.push(deeper),
                        None => drop(self.below.pop()),
                    }
                    (self.watch)(ChangeEvent::Progress(&self.changed));
                }
                Some(Err(error)) => {
                    let failed = self.unless_fatal::<()>(Err(error));
                    self.leave(&mut levels, order, deed)?;
                    failed?;
                }
                None => self.leave(&mut levels, order, deed)?,
            }
        }
        Ok(self.changed)
    }

    /// Changes a name, or enters it.
    fn one(
        &mut self,
        above: &Dir,
        name: OsString,
        order: Order,
        deed: Deed<'_>,
    ) -> io::Result<Option<Level>> {
        let about = match self.inside.about(above, &name) {
            // Others remove names, too.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            about => about?,
        };
        let is_dir = about.kind.is_dir();
        if !is_dir || order == Order::Before {
            deed(&self.inside, above, &name, &about)?;
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

    /// The last directory is done.
    fn leave(
        &mut self,
        levels: &mut Vec<Level>,
        order: Order,
        deed: Deed<'_>,
    ) -> Result<(), CopyError> {
        if let Some(Level {
            above, name, about, ..
        }) = levels.pop()
        {
            if order == Order::After {
                let done = deed(&self.inside, &above, &name, &about);
                if self.unless_fatal(done)?.is_some() {
                    self.changed.names += 1;
                }
            }
            self.below.pop();
        }
        Ok(())
    }

    fn failed(&self, error: io::Error) -> CopyError {
        let path = if self.below.as_os_str().is_empty() {
            self.top.to_owned()
        } else {
            self.top.join(&self.below)
        };
        let side = Side::To;
        CopyError { side, path, error }
    }

    /// Goes on after what concerns one name only.
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
