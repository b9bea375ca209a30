//! Copying trees in and out of a file system, without mounting it.
//!
//! Files, directories, symbolic and hard links, pipes, sockets and devices, with modes, owners,
//! access and modification times and extended attributes (ACLs among them); holes stay holes. Times
//! of birth and change cannot be set, and are those of the copy.

pub(crate) mod counts;
mod host;
mod inside;
mod level;
mod options;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod tree;
pub(crate) mod walk;

pub use counts::{Copied, CopyError, Losses, Side};
pub use options::{CopyEvent, CopyOptions};

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::FileSystem;
use crate::types::Errno;
pub(crate) use host::Host;
pub(crate) use inside::{Inside, Names};
use tree::Tree;
use walk::{Walk, split};

/// Device numbers for file systems, so that a copy can detect its own target. The host's have 32
/// bits, so none of them is equal.
static NUMBERS: AtomicU64 = AtomicU64::new(1 << 32);

impl FileSystem {
    /// Copies a path of the host to `to`. A directory is copied with all below it, and merged with
    /// an existing one. Any other file replaces an existing name, unless that is a directory. If
    /// `from` is a link, the link itself is copied, unless the path ends with a slash.
    ///
    /// Names that cannot be copied are reported to `watch`, and the copy goes on. Owners and
    /// attributes that cannot be set are counted.
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
    /// If `from` cannot be read, or nothing more can be written: no space, read-only, `EIO`.
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

    /// Copies a path to a path of the host, as [`FileSystem::copy_in`] in the other direction.
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

    /// Copies a path to another file system, or within this one, as [`FileSystem::copy_in`]. A
    /// directory is not copied into itself.
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

fn copy<F: Tree, T: Tree>(
    (from, source): (&F, &Path),
    (to, target): (&T, &Path),
    options: &CopyOptions,
    watch: &mut dyn FnMut(CopyEvent<'_>),
) -> Result<Copied, CopyError> {
    let reading = |error| CopyError::new(Side::From, source, error);
    let writing = |error| CopyError::new(Side::To, target, error);
    let walk = Walk::new((from, to), (source, target), options, watch);
    // A path without a last name (`/`, `..`) is a directory.
    let single = match split(source) {
        Some((parent, name)) if !source.as_os_str().as_encoded_bytes().ends_with(b"/") => {
            let dir = from.open_dir(parent).map_err(reading)?;
            let about = from.about(&dir, &name).map_err(reading)?;
            (!about.kind.is_dir()).then_some((dir, name))
        }
        _ => None,
    };
    if let Some((dir, name)) = single {
        let (parent, new) = split(target).ok_or_else(|| writing(Errno::EISDIR.into()))?;
        let parent = to.open_dir(parent).map_err(writing)?;
        return walk.single((&dir, &name), (&parent, &new));
    }
    let dir = from.open_dir(source).map_err(reading)?;
    if let Some((parent, new)) = split(target) {
        let parent = to.open_dir(parent).map_err(writing)?;
        match to.make_dir(&parent, &new) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made.map_err(writing)?,
        }
    }
    let goal = to.open_dir(target).map_err(writing)?;
    walk.contents(dir, goal)
}
