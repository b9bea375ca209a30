//! A folder for one round, which leaves nothing behind.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// An empty folder of a name that was not there, removed with its content when dropped. The
/// directory that holds it is made if only that one is missing, and then removed as well.
pub(crate) struct Folder {
    own: TempDir,
    /// The directory that was made for it.
    _around: Option<Around>,
}

/// A directory to be removed, if nobody put anything else there.
struct Around(PathBuf);

impl Drop for Around {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

impl Folder {
    /// Makes one in `parent`.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(crate) fn fresh_in(parent: &Path) -> Result<Self> {
        let told = || format!("cannot use {}", parent.display());
        let around = match fs::symlink_metadata(parent) {
            Ok(_) => None,
            Err(_) => {
                fs::create_dir(parent).with_context(told)?;
                Some(Around(parent.to_owned()))
            }
        };
        let own = tempfile::Builder::new()
            .prefix("holdfast-bench-")
            .tempdir_in(parent);
        Ok(Self {
            own: own.with_context(told)?,
            _around: around,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_directory_is_made_and_goes_again() {
        let place = tempfile::tempdir().expect("made");
        let parent = place.path().join("bench");
        let folder = Folder::fresh_in(&parent).expect("made");
        fs::write(folder.path().join("file"), b"x").expect("written");
        folder.close().expect("removed");
        assert!(!parent.exists());
        fs::create_dir(&parent).expect("made");
        Folder::fresh_in(&parent)
            .expect("made")
            .close()
            .expect("removed");
        assert!(parent.exists(), "it was there before");
        assert!(Folder::fresh_in(&place.path().join("no/such")).is_err());
    }
}
