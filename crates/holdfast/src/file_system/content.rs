//! Opening files, and whole contents at once.

use std::io;
use std::path::Path;

use super::FileSystem;
use crate::{File, OpenOptions, ReadDir};

impl FileSystem {
    /// Opens a file for reading, as `std::fs::File::open`.
    ///
    /// # Errors
    /// `ENOENT`, `EACCES`; `ENXIO` for pipes, sockets and devices, which only a kernel can serve.
    pub fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        self.root.open(path)
    }

    /// Opens a file for writing, made or emptied, as `std::fs::File::create`.
    ///
    /// # Errors
    /// `EISDIR`, `ENOENT` if there is no directory above it, `EACCES`, `ENOSPC`, `EROFS`.
    pub fn create(&self, path: impl AsRef<Path>) -> io::Result<File> {
        self.root.create(path)
    }

    /// Makes a file that was not there, for reading and writing, as `std::fs::File::create_new`.
    ///
    /// # Errors
    /// As [`FileSystem::create`]; `EEXIST`.
    pub fn create_new(&self, path: impl AsRef<Path>) -> io::Result<File> {
        self.root.create_new(path)
    }

    /// Opens a file as the options say.
    ///
    /// # Errors
    /// Those of open(2); `EINVAL` for options that make no sense together.
    pub fn open_with(&self, path: impl AsRef<Path>, options: &OpenOptions) -> io::Result<File> {
        self.root.open_with(path, options)
    }

    /// The whole content of a file, as `std::fs::read`.
    ///
    /// # Errors
    /// As [`FileSystem::open`]; `EISDIR`; `OutOfMemory` for what no memory can hold.
    pub fn read(&self, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        self.root.read(path)
    }

    /// The whole content of a file as text, as `std::fs::read_to_string`.
    ///
    /// # Errors
    /// As [`FileSystem::read`]; `InvalidData` for what is not UTF-8.
    pub fn read_to_string(&self, path: impl AsRef<Path>) -> io::Result<String> {
        self.root.read_to_string(path)
    }

    /// Makes or replaces the whole content of a file, as `std::fs::write`.
    ///
    /// # Errors
    /// As [`FileSystem::create`].
    pub fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> io::Result<()> {
        self.root.write(path, content)
    }

    /// Copies content and mode of a file, as `std::fs::copy`; holes stay holes. Returns the bytes
    /// copied.
    ///
    /// # Errors
    /// As [`FileSystem::open`] and [`FileSystem::create`]; `EINVAL` for what is not a regular
    /// file; `EPERM` if the target is another's.
    pub fn copy(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<u64> {
        self.root.copy(from, to)
    }

    /// The entries of a directory, as `std::fs::read_dir`.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`; `EACCES` without permission to read.
    pub fn read_dir(&self, path: impl AsRef<Path>) -> io::Result<ReadDir> {
        self.root.read_dir(path)
    }
}
