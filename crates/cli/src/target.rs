//! The target of a command: a mount, or a volume that is not mounted.

use crate::message::{Failure, Result};
use holdfast_fuse::mount::{Mounted, backing_of, mounts};
use std::io;
use std::path::{Path, PathBuf};

/// A volume, or a mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The root of a mount.
    Mounted(PathBuf),
    /// An image file or block device.
    Volume(PathBuf),
}

impl Target {
    /// Resolves a path: a directory means the mount it is in; a mounted image file means its mount.
    ///
    /// # Errors
    /// If the path does not exist, or is a directory in no mount of holdfast.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        let meta = match std::fs::metadata(path) {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Failure::new(error)
                    .at(path)
                    .hint("a directory in a mount, or the image file or device of a volume"));
            }
            // stat(2) fails on the mount of a dead daemon, which is still in the mount table.
            Err(_) => return Ok(Self::Mounted(root_of(path)?)),
        };
        if meta.is_dir() {
            return Ok(Self::Mounted(root_of(path)?));
        }
        Ok(match mount_of(path)? {
            Some(root) => Self::Mounted(root),
            None => Self::Volume(path.to_owned()),
        })
    }
}

/// The root of the mount that `dir` is in.
pub(crate) fn root_of(dir: &Path) -> Result<PathBuf> {
    let path = match std::fs::canonicalize(dir) {
        Ok(path) => path,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Failure::new(error)
                .at(dir)
                .hint("a directory in a mount of holdfast"));
        }
        // The mount point of a dead daemon is still in the mount table.
        Err(_) => std::path::absolute(dir).map_err(|error| Failure::new(error).at(dir))?,
    };
    let mounted = mounts()?
        .into_iter()
        .filter(|mounted| path.starts_with(&mounted.mount_point));
    // The deepest mount point covers the path; of several at one place, the last one made.
    match mounted.max_by_key(|mounted| mounted.mount_point.components().count()) {
        Some(mounted) if mounted.is_fuse() => Ok(mounted.mount_point),
        other => Err(not_ours(dir, other.as_ref())),
    }
}

fn not_ours(dir: &Path, mounted: Option<&Mounted>) -> Failure {
    let failure = Failure::new("is not in a file system mounted by holdfast").at(dir);
    match mounted {
        Some(mounted) => failure.hint(format!(
            "it is in {:?}, a mount of type {}; holdfast mount mounts volumes and directories",
            mounted.mount_point, mounted.fs_type
        )),
        None => failure,
    }
}

/// Is a FUSE file system mounted at this root?
///
/// # Errors
/// Those of reading the mount table.
pub(crate) fn is_mounted(root: &Path) -> Result<bool> {
    let all = mounts()?;
    Ok(all
        .iter()
        .any(|mounted| mounted.mount_point == root && mounted.is_fuse()))
}

/// The mount point of the volume in this file or device, if it is mounted.
fn mount_of(path: &Path) -> io::Result<Option<PathBuf>> {
    let Ok(path) = path.canonicalize() else {
        return Ok(None);
    };
    let is_source = |source: &Path| source == path || backing_of(source) == Some(path.clone());
    let ours = mounts()?
        .into_iter()
        .rev()
        .find(|mounted| mounted.is_holdfast() && is_source(Path::new(&mounted.source)));
    Ok(ours.map(|mounted| mounted.mount_point))
}
