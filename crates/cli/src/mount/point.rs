//! The mount point: resolved, made if only the last component is missing, and removed again if it
//! was made.

use crate::message::{Failure, Result};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A directory to mount at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MountPoint {
    /// Without symbolic links and dots.
    pub(crate) path: PathBuf,
    /// Did this command make it? Then it is removed with the mount.
    pub(crate) made: bool,
}

impl MountPoint {
    /// Finds the directory; makes it if only its last component is missing.
    ///
    /// # Errors
    /// If its parent does not exist, or it is not a directory, or cannot be looked at.
    pub(crate) fn prepare(dir: &Path) -> Result<Self> {
        match fs::create_dir(dir) {
            Ok(()) => {
                let path = fs::canonicalize(dir).map_err(|error| unusable(dir, &error))?;
                Ok(Self { path, made: true })
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Self::existing(dir),
            Err(error) => match fs::metadata(dir) {
                // On a read-only file system mkdir(2) fails before it looks up the name.
                Ok(_) => Self::existing(dir),
                Err(_) => Err(not_made(dir, &error)),
            },
        }
    }

    fn existing(dir: &Path) -> Result<Self> {
        let meta = fs::metadata(dir).map_err(|error| unusable(dir, &error))?;
        if !meta.is_dir() {
            return Err(Failure::new("is not a directory")
                .at(dir)
                .hint("the root of a file system is a directory: choose one to mount at"));
        }
        let path = fs::canonicalize(dir).map_err(|error| unusable(dir, &error))?;
        Ok(Self { path, made: false })
    }

    /// Removes the directory if this command made it and it is empty.
    pub(crate) fn remove_if_made(&self) {
        if self.made
            && let Err(error) = fs::remove_dir(&self.path)
        {
            tracing::info!(dir = ?self.path, %error, "the mount point stays");
        }
    }
}

fn not_made(dir: &Path, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::NotFound {
        let failure = Failure::new("there is no such directory, nor the one it would be made in");
        return failure.at(dir).hint(format!("mkdir -p {}", dir.display()));
    }
    let failure = Failure::new(format!("cannot be made: {error}")).at(dir);
    failure.hint("choose a directory that is there, or one below a directory of this user")
}

fn unusable(dir: &Path, error: &io::Error) -> Failure {
    // The last two occur while a dying daemon closes its descriptors.
    let gone = [libc::ENOTCONN, libc::ECONNABORTED, libc::ECANCELED];
    if error
        .raw_os_error()
        .is_some_and(|code| gone.contains(&code))
    {
        return stale(dir);
    }
    Failure::new(format!("cannot be used as mount point: {error}")).at(dir)
}

/// The failure for a mount without its daemon.
pub(crate) fn stale(dir: &Path) -> Failure {
    Failure::new("is the mount point of a daemon that is gone")
        .at(dir)
        .hint(format!("clear it: holdfast umount {}", dir.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_point_is_made_in_its_parent_and_removed_again() {
        let temp = tempfile::tempdir().unwrap();
        let made = MountPoint::prepare(&temp.path().join("mnt")).unwrap();
        assert!(made.made && made.path.is_dir());
        let found = MountPoint::prepare(&temp.path().join("mnt/.")).unwrap();
        assert_eq!(
            found,
            MountPoint {
                path: made.path.clone(),
                made: false
            }
        );
        found.remove_if_made();
        assert!(made.path.is_dir());
        fs::write(made.path.join("file"), "x").unwrap();
        made.remove_if_made();
        assert!(made.path.is_dir());
        fs::remove_file(made.path.join("file")).unwrap();
        made.remove_if_made();
        assert!(!made.path.exists());
    }

    #[test]
    fn what_cannot_be_a_mount_point_is_refused_with_a_remedy() {
        let temp = tempfile::tempdir().unwrap();
        let refusal = |path: &str| MountPoint::prepare(&temp.path().join(path)).unwrap_err();
        assert!(refusal("none/mnt").to_string().contains("mkdir -p"));
        fs::write(temp.path().join("file"), "x").unwrap();
        assert!(refusal("file").to_string().contains("is not a directory"));
        assert!(refusal("file/mnt").to_string().contains("cannot be made"));
        std::os::unix::fs::symlink("nowhere", temp.path().join("link")).unwrap();
        assert!(refusal("link").to_string().contains("cannot be used"));
    }
}
