//! Open files.

mod locks;
mod positioned;
mod space;
mod stream;
mod xattr;

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use holdfast_core::{Node, OpenFile};

use crate::dir::attributes::owner;
use crate::types::{Errno, OpenFlags, Result, SetAttr};
use crate::view::View;
use crate::{FileTimes, Metadata, Permissions};

/// An open file, as `std::fs::File`: closed when its last clone is dropped.
///
/// `Read`, `Write` and `Seek` work on `File` and on `&File`, from an offset that the file keeps.
/// The methods with names in `_at` take an offset and do not change the file's. All can be called
/// from many threads at once.
///
/// ```
/// use holdfast::{FileSystem, OpenOptions};
/// use std::io::{Read, Seek, SeekFrom, Write};
///
/// let fs = FileSystem::memory();
/// let mut options = OpenOptions::new();
/// let mut file = fs.open_with("/notes", options.read(true).write(true).create(true))?;
/// writeln!(file, "first line")?;
/// file.write_all_at(b"F", 0)?;
///
/// file.seek(SeekFrom::Start(0))?;
/// let mut text = String::new();
/// file.read_to_string(&mut text)?;
/// assert_eq!(text, "First line\n");
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct File {
    open: Arc<Open>,
}

/// An open file description, which the clones of a file share.
struct Open {
    view: Arc<View>,
    file: OpenFile,
    /// Where the next read or write starts. Held over a read or write, so that those of several
    /// threads follow one another, as in the kernel.
    position: Mutex<u64>,
}

impl File {
    pub(crate) fn new(view: Arc<View>, file: OpenFile) -> Self {
        Self {
            open: Arc::new(Open {
                view,
                file,
                position: Mutex::new(0),
            }),
        }
    }

    /// The attributes of the file, also after its names were removed.
    ///
    /// # Errors
    /// `EIO` when the file system was [revoked](crate::FileSystem::revoke).
    pub fn metadata(&self) -> io::Result<Metadata> {
        Ok(self.view().core.attributes(self.node())?.into())
    }

    /// Cuts the file, or extends it with a hole.
    ///
    /// # Errors
    /// `EINVAL` if not open for writing, or beyond 2^63 - 1; `EFBIG`.
    pub fn set_len(&self, size: u64) -> io::Result<()> {
        self.change(&SetAttr {
            size: Some(size),
            ..SetAttr::default()
        })
    }

    /// Changes the mode, as fchmod(2).
    ///
    /// # Errors
    /// `EPERM` unless the caller is the owner, or acts as one.
    pub fn set_permissions(&self, permissions: Permissions) -> io::Result<()> {
        self.change(&SetAttr {
            perm: Some(permissions.perm()),
            ..SetAttr::default()
        })
    }

    /// Sets times, as futimens(3).
    ///
    /// # Errors
    /// `EPERM` unless the caller is the owner, or acts as one.
    pub fn set_times(&self, times: FileTimes) -> io::Result<()> {
        match times.change() {
            Some(change) => self.change(&change),
            None => Ok(()),
        }
    }

    /// Sets the time of last modification alone.
    ///
    /// # Errors
    /// As [`File::set_times`].
    pub fn set_modified(&self, time: SystemTime) -> io::Result<()> {
        self.set_times(FileTimes::new().set_modified(time))
    }

    /// Changes owner and group, as fchown(2); `None` leaves one as it is.
    ///
    /// # Errors
    /// `EPERM` without `CAP_CHOWN`, except for an owner that sets one of its own groups.
    pub fn chown(&self, uid: Option<u32>, gid: Option<u32>) -> io::Result<()> {
        self.change(&owner(uid, gid))
    }

    /// Makes content and attributes durable, as far as the store can. For a file system in memory
    /// this does nothing.
    ///
    /// # Errors
    /// `EIO` when it could not be made durable.
    pub fn sync_all(&self) -> io::Result<()> {
        Ok(self.view().core.fsync(self.core_file(), false)?)
    }

    /// Makes the content durable, and as much as reading it back needs.
    ///
    /// # Errors
    /// As [`File::sync_all`].
    pub fn sync_data(&self) -> io::Result<()> {
        Ok(self.view().core.fsync(self.core_file(), true)?)
    }

    /// Another handle to the same open file, as dup(2): offset and locks are common to both.
    ///
    /// # Errors
    /// None: a result only as in the standard library.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            open: Arc::clone(&self.open),
        })
    }

    /// The file's inode, for calls to [`FileSystem::core`](crate::FileSystem::core).
    #[must_use]
    pub fn node(&self) -> &Node {
        self.open.file.node()
    }

    /// The core's open file, for calls to [`FileSystem::core`](crate::FileSystem::core).
    #[must_use]
    pub fn core_file(&self) -> &OpenFile {
        &self.open.file
    }

    pub(crate) fn view(&self) -> &View {
        &self.open.view
    }

    /// The inode, for operations that a handle opened with `O_PATH` does not allow.
    ///
    /// # Errors
    /// `EBADF` for such a handle.
    fn opened_node(&self) -> Result<&Node> {
        if self.core_file().flags().contains(OpenFlags::PATH) {
            return Err(Errno::EBADF);
        }
        Ok(self.node())
    }

    fn change(&self, change: &SetAttr) -> io::Result<()> {
        let View { core, who } = self.view();
        core.setattr(who, self.opened_node()?, change, Some(self.core_file()))?;
        Ok(())
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File")
            .field("ino", &self.node().ino())
            .field("flags", &self.core_file().flags())
            .finish_non_exhaustive()
    }
}
