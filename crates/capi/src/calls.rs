//! What most functions do: they find the object of a handle, and name it in an error.

use std::io;
use std::path::Path;

use holdfast::{Dir, File};

use crate::failure::{About as _, Result};
use crate::objects::{Opened, Place};
use crate::sys::{Handle, Text};

impl Handle<Place> {
    /// Runs a call on the directory of this handle and a path.
    pub(crate) fn at<T>(
        self,
        path: Text<'_>,
        call: impl FnOnce(&Dir, &Path) -> io::Result<T>,
    ) -> Result<T> {
        let (place, path) = (self.get()?, path.path()?);
        call(&place.dir, path).about(&path.display())
    }

    /// Runs a call on two directories, with a path from each.
    pub(crate) fn both(
        self,
        from: Text<'_>,
        to_dir: Self,
        to: Text<'_>,
        call: impl FnOnce(&Dir, &Path, &Dir, &Path) -> io::Result<()>,
    ) -> Result<()> {
        let (from_dir, to_dir) = (self.get()?, to_dir.get()?);
        let (from, to) = (from.path()?, to.path()?);
        let done = call(&from_dir.dir, from, &to_dir.dir, to);
        done.about(&format_args!("{} -> {}", from.display(), to.display()))
    }
}

impl Handle<Opened> {
    /// Runs a call on the file of this handle.
    pub(crate) fn with<T>(self, call: impl FnOnce(&File) -> io::Result<T>) -> Result<T> {
        let opened = self.get()?;
        call(&opened.file).about(&opened.path)
    }
}
