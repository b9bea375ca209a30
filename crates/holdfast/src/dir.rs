//! Directories as handles, and the operations on paths. [`crate::FileSystem`] dereferences to one.

pub(crate) mod attributes;
mod content;
mod names;
mod tree;
mod xattr;

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use holdfast_core::{Node, Prefetch};

use crate::Metadata;
use crate::types::{Attr, Caller, Errno, OpenFlags, Result};
use crate::view::View;

/// A directory held open, to which paths are relative.
///
/// The handle leads to the same directory wherever it is moved; once the directory is removed,
/// nothing can be made in it (`ENOENT`). Opening it needs no permission to read, and it does not
/// count as an open file. `.` is the directory itself; a path that starts with `/` starts at the
/// file system's root, as with openat(2).
///
/// Each call takes paths of up to 4095 bytes. Deeper names are reached step by step:
///
/// ```
/// use holdfast::FileSystem;
///
/// let fs = FileSystem::memory();
/// let mut dir = fs.open_dir("/")?;
/// for _ in 0..5000 {
///     dir.create_dir("deeper")?;
///     dir = dir.open_dir("deeper")?;
/// }
/// dir.write("treasure", "found")?;
/// assert_eq!(dir.read_to_string("treasure")?, "found");
/// fs.remove_dir_all("/deeper")?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Dir {
    pub(crate) view: Arc<View>,
    pub(crate) base: Node,
}

impl Dir {
    pub(crate) fn at_root(view: View) -> Self {
        let base = view.core.root();
        Self {
            view: Arc::new(view),
            base,
        }
    }

    /// A handle to a directory, to which paths can be relative.
    ///
    /// # Errors
    /// `ENOTDIR`, and those of any path.
    pub fn open_dir(&self, path: impl AsRef<Path>) -> io::Result<Self> {
        let node = self.resolve(path.as_ref(), true)?;
        if !node.kind().is_dir() {
            return Err(Errno::ENOTDIR.into());
        }
        Ok(Self {
            view: Arc::clone(&self.view),
            base: node,
        })
    }

    /// The same directory on behalf of another caller.
    #[must_use]
    pub fn as_user(&self, caller: Caller) -> Self {
        let core = self.view.core.clone();
        Self {
            view: Arc::new(View { core, who: caller }),
            base: self.base.clone(),
        }
    }

    /// The caller that operations are checked against.
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.view.who
    }

    /// The directory's own attributes; unlike `metadata(".")` it needs no permission to search.
    ///
    /// # Errors
    /// `EIO` when the file system was [revoked](crate::FileSystem::revoke).
    pub fn dir_metadata(&self) -> io::Result<Metadata> {
        Ok(self.view.core.attributes(&self.base)?.into())
    }

    /// Reads the inodes of at most `entries` names after `cursor` (0: from the first name) into
    /// memory, and sets `cursor` to the last of them. Returns the number of names: fewer than
    /// `entries` if memory is short, 0 at the end. Concurrent creations, removals and renames make
    /// it neither skip nor repeat names that stay. An inode that cannot be read is no error here,
    /// but where it is used.
    ///
    /// ```
    /// use holdfast::FileSystem;
    ///
    /// let fs = FileSystem::memory();
    /// fs.create_dir("/dir")?;
    /// fs.write("/dir/file", "content")?;
    /// let (dir, mut cursor) = (fs.open_dir("/dir")?, 0);
    /// while dir.prefetch(&mut cursor, 10_000)? != 0 {}
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// `EACCES` without permission to read and to search it; `ENOENT` if it was removed.
    pub fn prefetch(&self, cursor: &mut u64, entries: u64) -> io::Result<u64> {
        let View { core, who } = &*self.view;
        let open = core.open(who, &self.base, OpenFlags::DIRECTORY)?;
        Ok(core.prefetch_dir(who, &open, cursor, Prefetch { entries })?)
    }

    /// The directory's inode, for calls to [`FileSystem::core`](crate::FileSystem::core).
    #[must_use]
    pub fn node(&self) -> &Node {
        &self.base
    }

    /// The inode that a path leads to.
    pub(crate) fn resolve(&self, path: &Path, follow: bool) -> Result<Node> {
        let View { core, who } = &*self.view;
        core.resolve(who, &self.base, bytes(path), follow)
    }

    /// The attributes of what a path leads to. Takes no reference to the inode if the path is
    /// cached.
    pub(crate) fn stat(&self, path: &Path, follow: bool) -> Result<Attr> {
        let View { core, who } = &*self.view;
        core.stat_at(who, &self.base, bytes(path), follow)
    }
}

/// A path as the core takes it.
pub(crate) fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// A name as the core gives it.
pub(crate) fn os_str(name: &[u8]) -> &OsStr {
    OsStr::from_bytes(name)
}

impl fmt::Debug for Dir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dir")
            .field("ino", &self.base.ino())
            .finish_non_exhaustive()
    }
}
