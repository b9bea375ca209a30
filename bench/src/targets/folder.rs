//! Folders for one run, which leave nothing behind.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The directory that folders are made in. It is made if only that one is missing, and then
/// removed in the end.
pub(crate) struct Parent {
    _made: Option<Made>,
}

/// A directory to be removed when it is empty.
struct Made(PathBuf);

impl Drop for Made {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

impl Parent {
    /// Sees to it that there is one.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(crate) fn ready(path: &Path) -> Result<Self> {
        let made = match fs::symlink_metadata(path) {
            Ok(_) => None,
            Err(_) => {
                fs::create_dir(path).with_context(|| cannot_use(path))?;
                Some(Made(path.to_owned()))
            }
        };
        Ok(Self { _made: made })
    }
}

/// An empty folder of a name that was not there, removed with its content when dropped.
pub(crate) struct Folder {
    own: TempDir,
}

impl Folder {
    /// Makes one in `parent`.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(crate) fn fresh_in(parent: &Path) -> Result<Self> {
        let own = tempfile::Builder::new()
            .prefix("holdfast-bench-")
            .tempdir_in(parent);
        Ok(Self {
            own: own.with_context(|| cannot_use(parent))?,
        })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.own.path()
    }

    /// Removes it with its content.
    ///
    /// # Errors
    /// If that fails.
    pub(crate) fn close(self) -> Result<()> {
        let path = self.own.path().to_owned();
        self.own
            .close()
            .with_context(|| format!("cannot remove {}", path.display()))
    }
}

fn cannot_use(path: &Path) -> String {
    format!("cannot use {}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_directory_is_made_and_goes_again() {
        let place = tempfile::tempdir().expect("made");
        let path = place.path().join("bench");
        {
            let _parent = Parent::ready(&path).expect("made");
            let folders = [(); 2].map(|()| Folder::fresh_in(&path).expect("made"));
            fs::write(folders[1].path().join("file"), b"x").expect("written");
            for folder in folders {
                folder.close().expect("removed");
                assert!(path.exists(), "another one may follow");
            }
        }
        assert!(!path.exists());
        fs::create_dir(&path).expect("made");
        drop(Parent::ready(&path).expect("there"));
        assert!(path.exists(), "it was there before");
        assert!(Parent::ready(&place.path().join("no/such")).is_err());
        assert!(Folder::fresh_in(&place.path().join("no")).is_err());
    }
}
