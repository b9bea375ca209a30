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
    /// Makes a directory, as `std::fs::create_dir`.
    ///
    /// # Errors
    /// `EEXIST`; `ENOENT` if there is no directory above it; `EACCES`, `EROFS`, `ENOSPC`.
    pub fn create_dir(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.create_dir_with(path, &DirBuilder::new())
    }

    /// Makes a directory and missing parents, as `std::fs::create_dir_all`. An existing directory
    /// is no error, and several threads may make the same path.
    ///
    /// # Errors
    /// As [`Dir::create_dir`]; `ENOTDIR`, `EEXIST` where something else is in the way.
    pub fn create_dir_all(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.create_dir_with(path, DirBuilder::new().recursive(true))
    }

    /// Makes a directory with options, as `std::fs::DirBuilder`.
    ///
    /// # Errors
    /// As [`Dir::create_dir`] or [`Dir::create_dir_all`].
    pub fn create_dir_with(&self, path: impl AsRef<Path>, how: &DirBuilder) -> io::Result<()> {
        if how.is_recursive() {
            Ok(self.make_all(path.as_ref(), how.perm())?)
        } else {
            Ok(self.make(path.as_ref(), how.perm())?)
        }
    }

    /// Removes an empty directory, as `std::fs::remove_dir`.
    ///
    /// # Errors
    /// `ENOTEMPTY`, `ENOTDIR`, `ENOENT`; `EBUSY` for the root; `EACCES`; `EPERM` in a sticky
    /// directory; `EROFS`.
    pub fn remove_dir(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let View { core, who } = &*self.view;
        Ok(core.rmdir_at(who, &self.base, bytes(path.as_ref()))?)
    }

    /// Removes a directory with all below it, as `std::fs::remove_dir_all`. Symbolic links are
    /// removed, never followed, also when the tree changes concurrently. A name that another thread
    /// removes first is no error. `.`, `..` and `/` are refused before anything is removed.
    ///
    /// ```
    /// use holdfast::FileSystem;
    ///
    /// let fs = FileSystem::memory();
    /// fs.create_dir_all("/build/deps")?;
    /// fs.create_dir("/precious")?;
    /// fs.write("/precious/ring", "one")?;
    /// fs.symlink("/precious", "/build/deps/link")?;
    /// fs.remove_dir_all("/build")?;
    /// assert_eq!(fs.read("/precious/ring")?, b"one");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ENOENT`; `ENOTDIR` unless it is a directory or a symbolic link; `ENOTEMPTY` when others
    /// add names meanwhile; `EACCES`; `EPERM`; `EROFS`.
    pub fn remove_dir_all(&self, path: impl AsRef<Path>) -> io::Result<()> {
        Ok(self.remove_all(path.as_ref())?)
    }

    /// Removes a name that is not a directory's, as `std::fs::remove_file`. The content stays
    /// until the last name and the last open file are gone.
    ///
    /// # Errors
    /// `ENOENT`; `EISDIR` for a directory; `EACCES`; `EPERM` in a sticky directory; `EROFS`.
    pub fn remove_file(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let View { core, who } = &*self.view;
        Ok(core.unlink_at(who, &self.base, bytes(path.as_ref()))?)
    }

    /// Moves a name, replacing what the new name led to, as `std::fs::rename`.
    ///
    /// # Errors
    /// `ENOENT`; `ENOTEMPTY`, `EISDIR`, `ENOTDIR` when the new name cannot be replaced; `EINVAL`
    /// for a directory moved into itself; `EACCES`; `EPERM` in a sticky directory; `EROFS`.
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
        self.rename_to(from, self, to, RenameFlags::empty())
    }

    /// Moves a name as renameat2(2): without replacing, in exchange for the other, or leaving a
    /// whiteout.
    ///
    /// ```
    /// use holdfast::{FileSystem, RenameFlags};
    ///
    /// let fs = FileSystem::memory();
    /// fs.write("/blue", "b")?;
    /// fs.write("/green", "g")?;
    /// fs.rename_with("/blue", "/green", RenameFlags::EXCHANGE)?;
    /// assert_eq!(fs.read("/blue")?, b"g");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Dir::rename`]; `EEXIST` with NOREPLACE; `EINVAL` for flags that contradict.
    pub fn rename_with(
        &self,
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
        flags: RenameFlags,
    ) -> io::Result<()> {
        self.rename_to(from, self, to, flags)
    }

    /// Moves a name to a path relative to another directory, as renameat2(2) with its flags.
    ///
    /// # Errors
    /// `EXDEV` if `to_dir` belongs to another file system; otherwise as [`Dir::rename_with`].
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

    /// Makes another name of a file, as `std::fs::hard_link`. A symbolic link is not followed.
    ///
    /// # Errors
    /// `EEXIST`; `ENOENT`; `EPERM` for a directory; `EMLINK`; `EACCES`; `EROFS`.
    pub fn hard_link(&self, original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
        self.hard_link_to(original, self, link)
    }

    /// Makes another name of a file, at a path relative to another directory.
    ///
    /// # Errors
    /// `EXDEV` if `link_dir` belongs to another file system; otherwise as [`Dir::hard_link`].
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

    /// Makes another name of an open file, or the first name of an unnamed one
    /// ([`OpenOptions::tmpfile`](crate::OpenOptions::tmpfile)).
    ///
    /// # Errors
    /// As [`Dir::hard_link`]; `ENOENT` if the file had lost its last name; `EXDEV` for a
    /// file of another file system.
    pub fn link_file(&self, file: &File, link: impl AsRef<Path>) -> io::Result<()> {
        self.view.same_file_system(file.view())?;
        let View { core, who } = &*self.view;
        Ok(core.link_at(who, file.node(), &self.base, bytes(link.as_ref()))?)
    }

    /// Makes a symbolic link, as `std::os::unix::fs::symlink`; `original` may be any text.
    ///
    /// # Errors
    /// `EEXIST`; `ENOENT` also for an empty original; `ENAMETOOLONG`; `EACCES`; `ENOSPC`;
    /// `EROFS`.
    pub fn symlink(&self, original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
        let View { core, who } = &*self.view;
        let (target, link) = (bytes(original.as_ref()), bytes(link.as_ref()));
        core.symlink_at(who, &self.base, link, target)?;
        Ok(())
    }

    /// The target of a symbolic link, as `std::fs::read_link`.
    ///
    /// # Errors
    /// `EINVAL` for anything but a symbolic link.
    pub fn read_link(&self, path: impl AsRef<Path>) -> io::Result<PathBuf> {
        let node = self.resolve(path.as_ref(), false)?;
        let target = self.view.core.readlink(&node)?;
        Ok(OsString::from_vec(target.into()).into())
    }

    /// Makes a named pipe. Only a kernel mount can carry data through it.
    ///
    /// # Errors
    /// As [`Dir::create_dir`].
    pub fn mkfifo(&self, path: impl AsRef<Path>, mode: u32) -> io::Result<()> {
        self.mknod(path, FileType::Fifo, mode, 0)
    }

    /// Makes a regular file, pipe, socket or device. `rdev` is the device's number as makedev(3)
    /// packs it.
    ///
    /// ```
    /// use holdfast::{FileSystem, NodeKind};
    ///
    /// let fs = FileSystem::memory();
    /// fs.mknod("/null", NodeKind::CharDevice, 0o666, 0x103)?;
    /// assert!(fs.metadata("/null")?.file_type().is_char_device());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Dir::create_dir`]; `EPERM` for a directory, or for a device without
    /// `CAP_MKNOD`; `EINVAL` for a symbolic link.
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
