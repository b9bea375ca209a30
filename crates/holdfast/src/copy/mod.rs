//! Copying trees in and out of a file system, without mounting it.
//!
//! Files, directories, symbolic and hard links, pipes, sockets and devices, with modes, owners,
//! access and modification times and extended attributes (ACLs among them); holes stay holes.
//! Times of birth and change cannot be set anywhere, and are those of the copy.

pub(crate) mod counts;
mod host;
mod inside;
mod level;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod tree;
pub(crate) mod walk;

pub use counts::{Copied, CopyError, Losses, Side};

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::types::Errno;
use crate::{Dir, FileSystem};
use host::Host;
pub(crate) use inside::{Inside, Names};
use tree::Tree;
use walk::{Walk, split};

/// How a tree is copied.
#[derive(Clone, Debug, Default)]
pub struct CopyOptions {
    /// The device and the number of a file of the host that is left out: the image copied into,
    /// say.
    pub skip: Option<(u64, u64)>,
    /// Once true, the copy ends with `ECANCELED`.
    pub stop: Option<Arc<AtomicBool>>,
}

/// What is told while a copy goes on.
#[derive(Debug)]
pub enum CopyEvent<'c> {
    /// So much was copied so far.
    Progress(&'c Copied),
    /// One name was not copied; the copy goes on.
    Failed(&'c CopyError),
    /// This name is copied, and there is something to know about it.
    Warning {
        /// Its path.
        path: &'c Path,
        /// What is to know.
        text: &'c str,
    },
    /// This name, below the top, was left out as the options say.
    Skipped(&'c Path),
}

/// Numbers for file systems, so that a copy knows whether it meets its own goal.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

impl FileSystem {
    /// Copies what a path of the host leads to so that it becomes what `to` leads to: a directory
    /// with all below it, merged into one that is there; anything else replaces what is there,
    /// unless that is a directory. A link as `from` is copied, not followed, unless it ends with a
    /// slash.
    ///
    /// What cannot be copied is told to `watch`, and the copy goes on; what this caller or file
    /// system does not get of owners and attributes is counted.
    ///
    /// ```
    /// use holdfast::{CopyOptions, FileSystem};
    ///
    /// # let dir = tempfile::tempdir()?;
    /// # std::fs::write(dir.path().join("notes"), "kept")?;
    /// let fs = FileSystem::memory();
    /// let copied = fs.copy_in(dir.path(), "/home", &CopyOptions::default(), &mut |_| ())?;
    /// assert_eq!((copied.files, copied.directories), (1, 1));
    /// assert_eq!(fs.read("/home/notes")?, b"kept");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `from` cannot be looked at, or nothing more can be written: no space, read-only, `EIO`.
    pub fn copy_in(
        &self,
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
        options: &CopyOptions,
        watch: &mut dyn FnMut(CopyEvent<'_>),
    ) -> Result<Copied, CopyError> {
        let inside = self.side();
        let (from, to) = (from.as_ref(), to.as_ref());
        copy((&Host, from), (&inside, to), options, watch)
    }

    /// Copies what a path leads to out to a path of the host, as [`FileSystem::copy_in`] does the
    /// other way.
    ///
    /// # Errors
    /// As [`FileSystem::copy_in`].
    pub fn copy_out(
        &self,
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
        options: &CopyOptions,
        watch: &mut dyn FnMut(CopyEvent<'_>),
    ) -> Result<Copied, CopyError> {
        let inside = self.side();
        let (from, to) = (from.as_ref(), to.as_ref());
        copy((&inside, from), (&Host, to), options, watch)
    }

    /// Copies what a path leads to into another file system, or elsewhere in this one, as
    /// [`FileSystem::copy_in`]. A directory is not copied into itself.
    ///
    /// # Errors
    /// As [`FileSystem::copy_in`].
    pub fn copy_across(
        &self,
        from: impl AsRef<Path>,
        other: &Self,
        to: impl AsRef<Path>,
        options: &CopyOptions,
        watch: &mut dyn FnMut(CopyEvent<'_>),
    ) -> Result<Copied, CopyError> {
        let (source, mut target) = (self.side(), other.side());
        if self.root.view.same_file_system(&other.root.view).is_ok() {
            target.number = source.number;
        }
        let (from, to) = (from.as_ref(), to.as_ref());
        copy((&source, from), (&target, to), options, watch)
    }

    pub(crate) fn side(&self) -> Inside {
        Inside::new(self.root.clone(), NUMBERS.fetch_add(1, Ordering::Relaxed))
    }
}

/// A side whose directories can be opened by path.
trait Openable: Tree {
    fn dir(&self, path: &Path) -> io::Result<Self::Dir>;
}

impl Openable for Host {
    fn dir(&self, path: &Path) -> io::Result<Self::Dir> {
        Self::open_dir(path)
    }
}

impl Openable for Inside {
    fn dir(&self, path: &Path) -> io::Result<Dir> {
        self.open_dir(path)
    }
}

fn copy<F: Openable, T: Openable>(
    (from, source): (&F, &Path),
    (to, target): (&T, &Path),
    options: &CopyOptions,
    watch: &mut dyn FnMut(CopyEvent<'_>),
) -> Result<Copied, CopyError> {
    let failed = |side, path: &Path| {
        let path = path.to_owned();
        move |error| CopyError { side, path, error }
    };
    let walk = Walk::new((from, to), (source, target), options, watch);
    // What has no last name (`/`, `..`) is a directory.
    let single = match split(source) {
        Some((parent, name)) if !ends_with_slash(source) => {
            let dir = from.dir(parent).map_err(failed(Side::From, source))?;
            let about = from
                .about(&dir, &name)
                .map_err(failed(Side::From, source))?;
            (!about.kind.is_dir()).then_some((dir, name))
        }
        _ => None,
    };
    if let Some((dir, name)) = single {
        let (parent, new) =
            split(target).ok_or_else(|| failed(Side::To, target)(Errno::EISDIR.into()))?;
        let parent = to.dir(parent).map_err(failed(Side::To, target))?;
        return walk.single((&dir, &name), (&parent, &new));
    }
    let dir = from.dir(source).map_err(failed(Side::From, source))?;
    if let Some((parent, new)) = split(target) {
        let parent = to.dir(parent).map_err(failed(Side::To, target))?;
        match to.make_dir(&parent, &new) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made.map_err(failed(Side::To, target))?,
        }
    }
    let goal = to.dir(target).map_err(failed(Side::To, target))?;
    walk.contents(dir, goal)
}

fn ends_with_slash(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/")
}
