//! Opening files, and whole contents at once.

use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use super::{Dir, bytes};
use crate::types::Errno;
use crate::view::View;
use crate::{File, OpenOptions, ReadDir};

impl Dir {
    /// Opens a file for reading, as `std::fs::File::open`.
    ///
    /// # Errors
    /// `ENOENT`, `EACCES`; `ENXIO` for pipes, sockets and devices, which only a kernel can serve.
    pub fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        self.open_with(path, OpenOptions::new().read(true))
    }

    /// Opens a file for writing, made or emptied, as `std::fs::File::create`.
    ///
    /// # Errors
    /// `EISDIR`, `ENOENT` if there is no directory above it, `EACCES`, `ENOSPC`, `EROFS`.
    pub fn create(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let mut options = OpenOptions::new();
        self.open_with(path, options.write(true).create(true).truncate(true))
    }

    /// Makes a file that was not there, for reading and writing, as `std::fs::File::create_new`.
    ///
    /// # Errors
    /// As [`Dir::create`]; `EEXIST`.
    pub fn create_new(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let mut options = OpenOptions::new();
        self.open_with(path, options.read(true).write(true).create_new(true))
    }

    /// Opens a file as the options say.
    ///
    /// # Errors
    /// Those of open(2); `EINVAL` for options that contradict.
    pub fn open_with(&self, path: impl AsRef<Path>, options: &OpenOptions) -> io::Result<File> {
        let View { core, who } = &*self.view;
        let (path, flags) = (bytes(path.as_ref()), options.open_flags()?);
        let file = core.open_at(who, &self.base, path, flags, options.perm())?;
        Ok(File::new(Arc::clone(&self.view), file))
    }

    /// The whole content of a file, as `std::fs::read`.
    ///
    /// # Errors
    /// As [`Dir::open`]; `EISDIR`; `OutOfMemory` for what no memory can hold.
    pub fn read(&self, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        self.open(path)?.read_to_end(&mut content)?;
        Ok(content)
    }

    /// The whole content of a file as text, as `std::fs::read_to_string`.
    ///
    /// # Errors
    /// As [`Dir::read`]; `InvalidData` for what is not UTF-8.
    pub fn read_to_string(&self, path: impl AsRef<Path>) -> io::Result<String> {
        let mut content = String::new();
        self.open(path)?.read_to_string(&mut content)?;
        Ok(content)
    }

    /// Makes or replaces the whole content of a file, as `std::fs::write`.
    ///
    /// # Errors
    /// As [`Dir::create`].
    pub fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> io::Result<()> {
        self.create(path)?.write_all(content.as_ref())
    }

    /// Copies content and mode of a file, as `std::fs::copy`; holes stay holes. Returns the bytes
    /// copied.
    ///
    /// # Errors
    /// As [`Dir::open`] and [`Dir::create`]; `EINVAL` for what is not a regular
    /// file; `EPERM` if the target is another's.
    pub fn copy(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<u64> {
        let source = self.open(from)?;
        let metadata = source.metadata()?;
        if !metadata.is_file() {
            return Err(Errno::EINVAL.into());
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let target = self.open_with(to, options.mode(metadata.mode()))?;
        // The umask has cleared bits, or the file existed with another mode.
        target.set_permissions(metadata.permissions())?;
        let mut copied = 0;
        loop {
            match source.copy_range_to(copied, &target, copied, u64::MAX)? {
                0 => return Ok(copied),
                more => copied += more,
            }
        }
    }

    /// The entries of a directory, as `std::fs::read_dir`.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`; `EACCES` without permission to read.
    pub fn read_dir(&self, path: impl AsRef<Path>) -> io::Result<ReadDir> {
        let path = path.as_ref();
        let dir = self.open_with(path, OpenOptions::new().read(true).directory(true))?;
        Ok(ReadDir::new(dir, path))
    }
}
