//! Opening files, and whole contents at once.

use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use super::{Dir, bytes};
use crate::types::Errno;
use crate::view::View;
use crate::{File, OpenOptions, ReadDir};

impl Dir {
    /// [`FileSystem::open`](crate::FileSystem::open), from here.
    pub fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        self.open_with(path, OpenOptions::new().read(true))
    }

    /// [`FileSystem::create`](crate::FileSystem::create), from here.
    pub fn create(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let mut options = OpenOptions::new();
        self.open_with(path, options.write(true).create(true).truncate(true))
    }

    /// [`FileSystem::create_new`](crate::FileSystem::create_new), from here.
    pub fn create_new(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let mut options = OpenOptions::new();
        self.open_with(path, options.read(true).write(true).create_new(true))
    }

    /// [`FileSystem::open_with`](crate::FileSystem::open_with), from here.
    pub fn open_with(&self, path: impl AsRef<Path>, options: &OpenOptions) -> io::Result<File> {
        let View { core, who } = &*self.view;
        let (path, flags) = (bytes(path.as_ref()), options.open_flags()?);
        let file = core.open_at(who, &self.base, path, flags, options.perm())?;
        Ok(File::new(Arc::clone(&self.view), file))
    }

    /// [`FileSystem::read`](crate::FileSystem::read), from here.
    pub fn read(&self, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        self.open(path)?.read_to_end(&mut content)?;
        Ok(content)
    }

    /// [`FileSystem::read_to_string`](crate::FileSystem::read_to_string), from here.
    pub fn read_to_string(&self, path: impl AsRef<Path>) -> io::Result<String> {
        let mut content = String::new();
        self.open(path)?.read_to_string(&mut content)?;
        Ok(content)
    }

    /// [`FileSystem::write`](crate::FileSystem::write), from here.
    pub fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> io::Result<()> {
        self.create(path)?.write_all(content.as_ref())
    }

    /// [`FileSystem::copy`](crate::FileSystem::copy), both paths from here.
    pub fn copy(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<u64> {
        let source = self.open(from)?;
        let metadata = source.metadata()?;
        if !metadata.is_file() {
            return Err(Errno::EINVAL.into());
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let target = self.open_with(to, options.mode(metadata.mode()))?;
        // The umask took from the mode, or the file was there with another one.
        target.set_permissions(metadata.permissions())?;
        let mut copied = 0;
        loop {
            match source.copy_range_to(copied, &target, copied, u64::MAX)? {
                0 => return Ok(copied),
                more => copied += more,
            }
        }
    }

    /// [`FileSystem::read_dir`](crate::FileSystem::read_dir), from here: `.` lists this
    /// directory.
    pub fn read_dir(&self, path: impl AsRef<Path>) -> io::Result<ReadDir> {
        let path = path.as_ref();
        let dir = self.open_with(path, OpenOptions::new().read(true).directory(true))?;
        Ok(ReadDir::new(dir, path))
    }
}
