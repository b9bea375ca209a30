//! realpath(3): the path without links, `.` and `..`.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use holdfast_core::Node;

use super::FileSystem;
use crate::dir::{Dir, bytes};
use crate::types::{Errno, FileType, Result, SYMLOOP_MAX};
use crate::view::View;

impl FileSystem {
    /// The absolute path without symbolic links, `.` and `..`, as `std::fs::canonicalize`.
    ///
    /// ```
    /// use holdfast::FileSystem;
    /// use std::path::Path;
    ///
    /// let fs = FileSystem::memory();
    /// fs.create_dir_all("/usr/lib")?;
    /// fs.symlink("usr/lib", "/lib")?;
    /// assert_eq!(fs.canonicalize("lib/.././lib")?, Path::new("/usr/lib"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Dir::metadata`].
    pub fn canonicalize(&self, path: impl AsRef<Path>) -> io::Result<PathBuf> {
        Ok(canonical(&self.root, path.as_ref())?)
    }
}

/// The canonical form of `path`, relative to the root directory.
///
/// # Errors
/// Those of resolving the path, which is done first.
fn canonical(root: &Dir, path: &Path) -> Result<PathBuf> {
    root.resolve(path, true)?;
    let View { core, who } = &*root.view;
    // `left`: names still to be walked, the next one last. `walked`: the current position, by name
    // and inode.
    let mut left = names_reversed(bytes(path));
    let mut walked: Vec<(Vec<u8>, Node)> = Vec::new();
    let mut links = 0;
    while let Some(name) = left.pop() {
        if name == b".." {
            walked.pop();
            continue;
        }
        let dir = walked.last().map_or(&root.base, |(_, node)| node);
        let node = core.lookup(who, dir, &name)?;
        if node.kind() != FileType::Symlink {
            walked.push((name, node));
            continue;
        }
        links += 1;
        if links > SYMLOOP_MAX {
            return Err(Errno::ELOOP);
        }
        let target = core.readlink(&node)?;
        if target.starts_with(b"/") {
            walked.clear();
        }
        left.append(&mut names_reversed(&target));
    }
    let mut spelt = Vec::new();
    for (name, _) in &walked {
        spelt.push(b'/');
        spelt.extend_from_slice(name);
    }
    if spelt.is_empty() {
        spelt.push(b'/');
    }
    Ok(OsString::from_vec(spelt).into())
}

/// The names of a path in reverse order, without empty ones and `.`.
fn names_reversed(path: &[u8]) -> Vec<Vec<u8>> {
    let names = path.split(|&byte| byte == b'/').rev();
    let names = names.filter(|name| !name.is_empty() && *name != b".");
    names.map(<[u8]>::to_vec).collect()
}
