//! The copy of one tree: depth first, setting a directory's attributes when it is left.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use super::counts::{Copied, CopyError, Side};
use super::level::{Level, Levels};
use super::options::{CopyEvent, CopyOptions};
use super::tree::{About, Tree, Xattrs};
use crate::stop::check_stop;
use crate::types::{Errno, FileType};

/// Bytes copied at once.
const CHUNK: usize = 1 << 20;
/// The name of a directory in itself.
const SELF: &str = ".";

/// The error of a directory that is its own target.
pub(crate) const INTO_ITSELF: &str = "is where it is copied to: not copied into itself";

/// A result with a [`CopyError`].
type Result<T> = std::result::Result<T, CopyError>;

/// A copy in progress.
pub(crate) struct Walk<'w, F: Tree, T: Tree> {
    pub(crate) from: &'w F,
    pub(crate) to: &'w T,
    pub(crate) options: &'w CopyOptions,
    pub(crate) watch: &'w mut dyn FnMut(CopyEvent<'_>),
    /// The top paths of both sides, for messages.
    pub(crate) tops: (&'w Path, &'w Path),
    /// The path below both.
    below: PathBuf,
    /// The target directory, which is not copied into itself.
    goal: Option<(u64, u64)>,
    copied: Copied,
    /// Files with several names, and the number of names not met yet.
    places: HashMap<(u64, u64), (T::Place, u64)>,
    buffer: Vec<u8>,
}

impl<'w, F: Tree, T: Tree> Walk<'w, F, T> {
    pub(crate) fn new(
        sides: (&'w F, &'w T),
        tops: (&'w Path, &'w Path),
        options: &'w CopyOptions,
        watch: &'w mut dyn FnMut(CopyEvent<'_>),
    ) -> Self {
        Self {
            from: sides.0,
            to: sides.1,
            options,
            watch,
            tops,
            below: PathBuf::new(),
            goal: None,
            copied: Copied::default(),
            places: HashMap::new(),
            buffer: Vec::new(),
        }
    }

    /// An error of one side, with the current path there.
    fn error(&self, side: Side, error: io::Error) -> CopyError {
        let top = match side {
            Side::From => self.tops.0,
            Side::To => self.tops.1,
        };
        CopyError::below(side, top, &self.below, error)
    }

    /// The result of an operation on the source.
    fn reading<R>(&self, done: io::Result<R>) -> Result<R> {
        done.map_err(|error| self.error(Side::From, error))
    }

    /// The result of an operation on the target.
    fn writing<R>(&self, done: io::Result<R>) -> Result<R> {
        done.map_err(|error| self.error(Side::To, error))
    }

    /// Copies the content and the attributes of a directory into another.
    pub(crate) fn contents(mut self, from: F::Dir, to: T::Dir) -> Result<Copied> {
        let dot = OsStr::new(SELF);
        let goal = self.writing(self.to.about(&to, dot))?.id;
        self.goal = Some(goal);
        let about = self.reading(self.from.about(&from, dot))?;
        let names = self.reading(self.from.names(&from))?;
        let mut levels = Levels::new(Level::<F, T>::new((from, to), names, about, goal));
        while let Some(next) = levels.next_name() {
            match next {
                Some(Ok(name)) => {
                    self.below.push(&name);
                    let Some((top, last)) = levels.top_and_last() else {
                        break;
                    };
                    let deeper = self.step(last, top, &name);
                    match self.unless_fatal(deeper)? {
                        Some(Some(deeper)) => levels.push(deeper),
                        _ => drop(self.below.pop()),
                    }
                    self.breathe()?;
                }
                Some(Err(error)) => {
                    let failed = Err(self.error(Side::From, error));
                    self.unless_fatal::<()>(failed)?;
                    self.leave(&mut levels)?;
                }
                None => self.leave(&mut levels)?,
            }
        }
        Ok(self.copied)
    }

    /// Copies one name that is not a directory.
    pub(crate) fn single(
        mut self,
        from: (&F::Dir, &OsStr),
        to: (&T::Dir, &OsStr),
    ) -> Result<Copied> {
        let about = self.reading(self.from.about(from.0, from.1))?;
        self.other(from, to, to.0, &about)?;
        Ok(self.copied)
    }

    /// Reports an error of one name, and goes on; passes a fatal error on.
    fn unless_fatal<R>(&mut self, done: Result<R>) -> Result<Option<R>> {
        match done {
            Ok(done) => Ok(Some(done)),
            Err(error) if is_fatal(&error) => Err(error),
            Err(error) => {
                self.copied.failed += 1;
                (self.watch)(CopyEvent::Failed(&error));
                Ok(None)
            }
        }
    }

    fn breathe(&mut self) -> Result<()> {
        self.writing(check_stop(&self.options.stop))?;
        (self.watch)(CopyEvent::Progress(&self.copied));
        self.reading(self.from.relax())?;
        self.writing(self.to.relax())
    }

    /// Finishes the last directory.
    fn leave(&mut self, levels: &mut Levels<F, T>) -> Result<()> {
        let left = levels.pop((self.from, self.to));
        if let Some(level) = self.reading(left)? {
            let dot = OsStr::new(SELF);
            let (from, to) = self.reading(level.sides())?;
            let finished = self.finish((from, dot), (to, dot), &level.about);
            if self.unless_fatal(finished)?.is_some() {
                self.copied.directories += 1;
            }
            self.below.pop();
        }
        Ok(())
    }

    /// Copies a name; returns a directory to descend into.
    fn step(
        &mut self,
        level: &Level<F, T>,
        top: &Level<F, T>,
        name: &OsStr,
    ) -> Result<Option<Level<F, T>>> {
        let (from, to) = self.reading(level.sides())?;
        let about = self.reading(self.from.about(from, name))?;
        if self.options.skip == Some(about.id) {
            (self.watch)(CopyEvent::Skipped(&self.below));
            return Ok(None);
        }
        if about.kind != FileType::Directory {
            let (_, top) = self.writing(top.sides())?;
            self.other((from, name), (to, name), top, &about)?;
            return Ok(None);
        }
        if self.goal == Some(about.id) {
            return Err(self.error(Side::From, io::Error::other(INTO_ITSELF)));
        }
        let from = self.reading(self.from.enter(from, name))?;
        let names = self.reading(self.from.names(&from))?;
        match self.to.make_dir(to, name) {
            // An existing directory is merged; anything else fails below.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => self.writing(made)?,
        }
        let to = self.writing(self.to.enter(to, name))?;
        let made = self.to.about(&to, OsStr::new(SELF));
        let made = self.writing(made)?.id;
        Ok(Some(Level::new((from, to), names, about, made)))
    }

    /// Copies a name that is not a directory.
    fn other(
        &mut self,
        from: (&F::Dir, &OsStr),
        to: (&T::Dir, &OsStr),
        top: &T::Dir,
        about: &About,
    ) -> Result<()> {
        if let Some((place, left)) = self.places.get_mut(&about.id) {
            *left -= 1;
            let last = *left == 0;
            let linked = replacing(self.to, to, || self.to.link(top, place, to.0, to.1));
            if last {
                self.places.remove(&about.id);
            }
            self.writing(linked)?;
            self.copied.links += 1;
            return Ok(());
        }
        match about.kind {
            FileType::Regular => {
                self.content(from, to, about)?;
                self.copied.files += 1;
            }
            FileType::Symlink => {
                let target = self.reading(self.from.target(from.0, from.1))?;
                self.writing(replacing(self.to, to, || {
                    self.to.make_symlink(to.0, to.1, &target)
                }))?;
                self.copied.symlinks += 1;
            }
            _ => {
                self.writing(replacing(self.to, to, || {
                    self.to.make_special(to.0, to.1, about)
                }))?;
                self.copied.special += 1;
            }
        }
        self.finish(from, to, about)?;
        if about.nlink > 1 {
            let place = self.writing(self.to.place(&self.below, to.0, to.1))?;
            self.places.insert(about.id, (place, about.nlink - 1));
        }
        Ok(())
    }

    /// Makes a regular file and fills it; its holes stay holes.
    fn content(
        &mut self,
        from: (&F::Dir, &OsStr),
        to: (&T::Dir, &OsStr),
        about: &About,
    ) -> Result<()> {
        let source = self.reading(self.from.open(from.0, from.1))?;
        let target = self.writing(replacing(self.to, to, || {
            self.to.make_file(to.0, to.1, about)
        }))?;
        self.buffer.resize(CHUNK, 0);
        let mut at = 0;
        'runs: loop {
            let run = if about.sparse {
                self.reading(self.from.next_data(&source, at))?
            } else {
                Some(at..u64::MAX)
            };
            let Some(run) = run else { break };
            at = run.start;
            while at < run.end {
                let most = usize::try_from(run.end - at).map_or(CHUNK, |left| left.min(CHUNK));
                let read = self.from.read_at(&source, &mut self.buffer[..most], at);
                let read = self.reading(read)?;
                if read == 0 {
                    break 'runs;
                }
                self.writing(self.to.write_all_at(&target, &self.buffer[..read], at))?;
                at += read as u64;
                self.copied.bytes += read as u64;
                if read == CHUNK {
                    (self.watch)(CopyEvent::Progress(&self.copied));
                    self.writing(check_stop(&self.options.stop))?;
                }
            }
        }
        if about.sparse {
            self.writing(self.to.set_len(&target, about.size.max(at)))?;
        }
        // Files of sysfs end before their size, which stays the same.
        let now = (at < about.size).then(|| self.from.about(from.0, from.1));
        if now.is_some_and(|now| now.is_ok_and(|now| now.size < about.size)) {
            let error = io::Error::other("became shorter while it was copied");
            return Err(self.error(Side::From, error));
        }
        Ok(())
    }

    fn finish(
        &mut self,
        from: (&F::Dir, &OsStr),
        to: (&T::Dir, &OsStr),
        about: &About,
    ) -> Result<()> {
        let xattrs: Xattrs = self.reading(self.from.xattrs(from.0, from.1))?;
        let finished = self.to.finish(to.0, to.1, about, &xattrs);
        let lost = self.writing(finished)?;
        let path = if self.below.as_os_str().is_empty() {
            Path::new(SELF)
        } else {
            &self.below
        };
        self.copied.lost.note(lost, about.clamped, path);
        Ok(())
    }
}

/// Makes a name; an existing name is removed first, unless it is a directory.
pub(crate) fn replacing<T: Tree, R>(
    tree: &T,
    (dir, name): (&T::Dir, &OsStr),
    make: impl Fn() -> io::Result<R>,
) -> io::Result<R> {
    match make() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            tree.remove(dir, name)?;
            make()
        }
        made => made,
    }
}

/// Is it an error that ends the copy?
pub(crate) fn is_fatal(failed: &CopyError) -> bool {
    use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    let kind = failed.error.kind();
    if failed.error.raw_os_error() == Some(ECANCELED) {
        return true;
    }
    let stops = matches!(kind, StorageFull | ReadOnlyFilesystem | QuotaExceeded);
    failed.side == Side::To && (stops || failed.error.raw_os_error() == Some(EIO))
}

/// The error of the stop flag.
const ECANCELED: i32 = Errno::ECANCELED.raw();
/// The error of a failed device.
const EIO: i32 = Errno::EIO.raw();

/// The parent and the last name of a path.
pub(crate) fn split(path: &Path) -> Option<(&Path, OsString)> {
    let name = path.file_name()?;
    let parent = match path.parent()? {
        parent if parent.as_os_str().is_empty() => Path::new(SELF),
        parent => parent,
    };
    Some((parent, name.to_owned()))
}
