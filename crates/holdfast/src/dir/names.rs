//! Names: making, removing, moving.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use super::{Dir, bytes};
use crate::types::{FileType, RenameFlags};
use crate::view::View;
use crate::{DirBuilder, File};

impl Dir {
    /// [`FileSystem::create_dir`](crate::FileSystem::create_dir), from here.
    pub fn create_dir(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.create_dir_with(path, &DirBuilder::new())
    }

    /// [`FileSystem::create_dir_all`](crate::FileSystem::create_dir_all), from here.
    pub fn create_dir_all(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.create_dir_with(path, DirBuilder::new().recursive(true))
    }

    /// [`FileSystem::create_dir_with`](crate::FileSystem::create_dir_with), from here.
    pub fn create_dir_with(&self, path: impl AsRef<Path>, how: &DirBuilder) -> io::Result<()> {
        if how.is_recursive() {
            Ok(self.make_all(path.as_ref(), how.perm())?)
        } else {
            Ok(self.make(path.as_ref(), how.perm())?)
        }
    }

    /// [`FileSystem::remove_dir`](crate::FileSystem::remove_dir), from here.
    pub fn remove_dir(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let View { core, who } = &*self.view;
        Ok(core.rmdir_at(who, &self.base, bytes(path.as_ref()))?)
    }

    /// [`FileSystem::remove_dir_all`](crate::FileSystem::remove_dir_all), from here.
    pub fn remove_dir_all(&self, path: impl AsRef<Path>) -> io::Result<()> {
        Ok(self.remove_all(path.as_ref())?)
    }

    /// [`FileSystem::remove_file`](crate::FileSystem::remove_file), from here.
    pub fn remove_file(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let View { core, who } = &*self.view;
        Ok(core.unlink_at(who, &self.base, bytes(path.as_ref()))?)
    }

    /// [`FileSystem::rename`](crate::FileSystem::rename), both paths from here.
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
        self.rename_to(from, self, to, RenameFlags::empty())
    }

    /// Moves a name to a path relative to another directory, as renameat2(2) with its flags.
    ///
    /// # Errors
    /// `EXDEV` if `to_dir` belongs to another file system; otherwise as
    /// [`FileSystem::rename_with`](crate::FileSystem::rename_with).
    pub fn rename_to(
        &self,
        from: impl AsRef<Path>,
        to_dir: &Self,
        to: impl AsRef<Path>,
        flags: RenameFlags,
    ) -> io::Result<()> {
        self.view.same_file_system(&to_dir.view)?;
        let View { core, who } = &*self.view;
        let (from, to) = (bytes(from.as_ref()), bytes(to.as_ref()));
        Ok(core.rename_at(who, &self.base, from, &to_dir.base, to, flags)?)
    }

    /// [`FileSystem::hard_link`](crate::FileSystem::hard_link), both paths from here.
    pub fn hard_link(&self, original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
        self.hard_link_to(original, self, link)
    }

    /// Gives a file one more name, at a path relative to another directory.
    ///
    /// # Errors
    /// `EXDEV` if `link_dir` belongs to another file system; otherwise as
    /// [`FileSystem::hard_link`](crate::FileSystem::hard_link).
    pub fn hard_link_to(
        &self,
        original: impl AsRef<Path>,
        link_dir: &Self,
        link: impl AsRef<Path>,
    ) -> io::Result<()> {
        self.view.same_file_system(&link_dir.view)?;
        let View { core, who } = &*self.view;
        let node = self.resolve(original.as_ref(), false)?;
        Ok(core.link_at(who, &node, &link_dir.base, bytes(link.as_ref()))?)
    }

    /// [`FileSystem::link_file`](crate::FileSystem::link_file), from here.
    pub fn link_file(&self, file: &File, link: impl AsRef<Path>) -> io::Result<()> {
        self.view.same_file_system(file.view())?;
        let View { core, who } = &*self.view;
        Ok(core.link_at(who, file.node(), &self.base, bytes(link.as_ref()))?)
    }

    /// [`FileSystem::symlink`](crate::FileSystem::symlink), from here; `original` is kept as it
    /// is.
    pub fn symlink(&self, original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
        let View { core, who } = &*self.view;
        let (target, link) = (bytes(original.as_ref()), bytes(link.as_ref()));
        core.symlink_at(who, &self.base, link, target)?;
        Ok(())
    }

    /// [`FileSystem::read_link`](crate::FileSystem::read_link), from here.
    pub fn read_link(&self, path: impl AsRef<Path>) -> io::Result<PathBuf> {
        let node = self.resolve(path.as_ref(), false)?;
        let target = self.view.core.readlink(&node)?;
        Ok(OsString::from_vec(target.into()).into())
    }

    /// [`FileSystem::mkfifo`](crate::FileSystem::mkfifo), from here.
    pub fn mkfifo(&self, path: impl AsRef<Path>, mode: u32) -> io::Result<()> {
        self.mknod(path, FileType::Fifo, mode, 0)
    }

    /// [`FileSystem::mknod`](crate::FileSystem::mknod), from here.
    pub fn mknod(
        &self,
        path: impl AsRef<Path>,
        kind: FileType,
        mode: u32,
        rdev: u64,
    ) -> io::Result<()> {
        let View { core, who } = &*self.view;
        let perm = (mode & 0o7777) as u16;
        core.mknod_at(who, &self.base, bytes(path.as_ref()), kind, perm, rdev)?;
        Ok(())
    }
}
