//! How inodes are reached: by descriptors, names and handles.

use holdfast_core::types::{Errno, FileType, Ino, Result};
use rustix::fs::{CWD, Mode, OFlags, Statx, fcntl_getfl, openat};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::Host;
use crate::attributes;
use crate::identity::{Identity, kind};
use crate::one_name::{open_name, open_to_list};
use crate::places::Place;
use crate::sys::{Handle, errno};

/// An inode that is open; `None`: the root.
pub(crate) struct Opened(Option<Arc<OwnedFd>>);

impl Opened {
    pub(crate) fn get<'h>(&'h self, host: &'h Host) -> BorrowedFd<'h> {
        self.0.as_ref().map_or(host.root(), |open| open.as_fd())
    }
}

impl Host {
    /// Calls `act` with an open directory.
    ///
    /// # Errors
    /// `ESTALE`: it is not known, or no longer where it was. `EXDEV`: it is another mount's. Those
    /// of openat2(2).
    pub(crate) fn in_directory<R>(
        &self,
        dir: Ino,
        act: impl FnOnce(BorrowedFd<'_>) -> Result<R>,
    ) -> Result<R> {
        act(self.opened(dir)?.get(self))
    }

    /// A directory that stays open while the result exists.
    ///
    /// # Errors
    /// As [`in_directory`](Self::in_directory).
    pub(crate) fn opened(&self, dir: Ino) -> Result<Opened> {
        match dir {
            Ino::ROOT => Ok(Opened(None)),
            dir => self.directory(dir).map(Some).map(Opened),
        }
    }

    /// An `O_PATH` descriptor of an inode that the core knows, and its statx(2).
    ///
    /// # Errors
    /// `ESTALE`: it is not known, or has gone. Those of openat2(2).
    pub(crate) fn pin(&self, ino: Ino) -> Result<(Opened, Statx)> {
        let pinned = match ino {
            Ino::ROOT => Opened(None),
            _ => match self.held.get(ino) {
                Some(open) => Opened(Some(open)),
                None => return self.pin_named(ino),
            },
        };
        let stat = self.stat(pinned.get(self))?;
        Ok((pinned, stat))
    }

    fn pin_named(&self, ino: Ino) -> Result<(Opened, Statx)> {
        let place = self.places.get(ino).ok_or_else(|| self.has_gone())?;
        match self.by_name(&place) {
            Ok((open, stat)) => Ok((Opened(Some(Arc::new(open))), stat)),
            Err(Errno::ESTALE | Errno::ENOENT) => {
                let open = self.reach(ino, &place.is).ok_or_else(|| self.has_gone())?;
                let stat = self.stat(open.as_fd())?;
                Ok((Opened(Some(open)), stat))
            }
            Err(error) => Err(error),
        }
    }

    /// Does the name of an inode lead to it? Link counts are not reliable: some hosts report 1 for
    /// a file without names, and some 0 for all files.
    pub(crate) fn is_named(&self, ino: Ino) -> bool {
        let Some(place) = self.places.get(ino) else {
            return ino == Ino::ROOT;
        };
        self.by_name(&place).is_ok()
    }

    fn by_name(&self, place: &Place) -> Result<(OwnedFd, Statx)> {
        self.in_directory(place.parent, |dir| {
            self.find_below(dir, &place.name, OFlags::PATH, &place.is)
        })
    }

    /// An inode that its name does not lead to any more: by a cached descriptor, or by its handle.
    pub(crate) fn reach(&self, ino: Ino, is: &Identity) -> Option<Arc<OwnedFd>> {
        let open = self.held.get(ino).or_else(|| self.files.get(ino));
        let open = open.or_else(|| self.directories.get(ino));
        open.or_else(|| self.by_handle(ino, is).map(Arc::new))
    }

    fn by_handle(&self, ino: Ino, is: &Identity) -> Option<OwnedFd> {
        let handle = self.places.handle(ino)?;
        let open = handle.open(self.handles.as_ref()?.as_fd()).ok()?;
        let stat = self.stat(open.as_fd()).ok()?;
        (Identity::of(&stat) == *is).then_some(open)
    }

    /// Stores the handle of an inode before its last descriptor is closed, in case its name
    /// changes.
    pub(crate) fn note_handle(&self, ino: Ino, open: BorrowedFd<'_>) {
        if self.handles.is_some() {
            self.places.note_handle(ino, Handle::of(open));
        }
    }

    /// An `O_PATH` descriptor of an inode, not the one it is written by. `None`: of the root.
    ///
    /// # Errors
    /// As [`pin`](Self::pin).
    pub(crate) fn name(&self, ino: Ino) -> Result<Option<Arc<OwnedFd>>> {
        let (Opened(pinned), _) = self.pin(ino)?;
        let Some(open) = pinned else { return Ok(None) };
        match self.held.writer(ino) {
            Some(writer) if Arc::ptr_eq(&writer, &open) => {
                reopen(open.as_fd(), OFlags::PATH).map(|named| Some(Arc::new(named)))
            }
            _ => Ok(Some(open)),
        }
    }

    fn directory(&self, dir: Ino) -> Result<Arc<OwnedFd>> {
        let mut way = Vec::new();
        let mut at = dir;
        let mut open = loop {
            if at == Ino::ROOT {
                break None;
            }
            if let Some(open) = self.directories.get(at).or_else(|| self.held.get(at)) {
                break Some(open);
            }
            let place = self.places.get(at).ok_or_else(|| self.has_gone())?;
            let parent = place.parent;
            way.push((at, place));
            at = parent;
            if way.len() > u16::MAX.into() {
                // Places stored at different times can form a circle.
                return Err(Errno::ESTALE);
            }
        };
        for (ino, place) in way.into_iter().rev() {
            let flags = OFlags::PATH | OFlags::DIRECTORY;
            let parent = open.as_ref().map_or(self.root(), |open| open.as_fd());
            let (found, _) = match self.find_below(parent, &place.name, flags, &place.is) {
                Err(Errno::ESTALE) => return self.moved_directory(dir),
                found => found?,
            };
            open = Some(self.keep_directory(ino, found));
        }
        open.ok_or(Errno::ESTALE)
    }

    /// A directory that was moved, itself or one above it.
    fn moved_directory(&self, dir: Ino) -> Result<Arc<OwnedFd>> {
        let place = self.places.get(dir);
        let found = place.and_then(|place| self.by_handle(dir, &place.is));
        let found = found.ok_or_else(|| self.has_gone())?;
        Ok(self.keep_directory(dir, found))
    }

    /// Caches an open directory. A handle is stored for those that are closed instead.
    fn keep_directory(&self, dir: Ino, open: OwnedFd) -> Arc<OwnedFd> {
        let closed = |dir, open: &OwnedFd| self.note_handle(dir, open.as_fd());
        self.directories.keep_and(dir, open, closed)
    }

    /// Opens a name of a directory if it still is this file, with its statx(2).
    fn find_below(
        &self,
        dir: BorrowedFd<'_>,
        name: &[u8],
        flags: OFlags,
        is: &Identity,
    ) -> Result<(OwnedFd, Statx)> {
        let opened = open_name(dir, name, flags, Mode::empty());
        let opened = opened.map_err(|error| match error {
            // The name belongs to another file, or to none.
            Errno::ENOENT | Errno::ELOOP | Errno::ENOTDIR => Errno::ESTALE,
            error => error,
        })?;
        let stat = self.stat(opened.as_fd())?;
        match Identity::of(&stat) == *is {
            true => Ok((opened, stat)),
            false => Err(Errno::ESTALE),
        }
    }

    /// Opens a directory for listing it.
    ///
    /// # Errors
    /// As [`in_directory`](Self::in_directory), and `EACCES`.
    pub(crate) fn open_listing(&self, dir: Ino) -> Result<OwnedFd> {
        self.in_directory(dir, |dir| {
            // As with files: reads by this process must not update access times.
            match open_to_list(dir, OFlags::NOATIME) {
                Err(Errno::EPERM) => open_to_list(dir, OFlags::empty()),
                opened => opened,
            }
        })
    }

    /// A regular file, open for reading and cached. It can be read regardless of its name.
    ///
    /// # Errors
    /// As [`pin`](Self::pin); those of open(2).
    pub(crate) fn file(&self, ino: Ino) -> Result<Arc<OwnedFd>> {
        if let Some(open) = self.files.get(ino) {
            return Ok(open);
        }
        if let Some(open) = self.held.writer(ino)
            && fcntl_getfl(&open).is_ok_and(|flags| flags.contains(OFlags::RDWR))
        {
            return Ok(open);
        }
        let (pinned, stat) = self.pin(ino)?;
        if kind(&stat) != FileType::Regular {
            return Err(Errno::EINVAL);
        }
        let named = pinned.get(self);
        let opened = match reopen(named, OFlags::RDONLY | OFlags::NOATIME) {
            // `O_NOATIME` takes ownership.
            Err(Errno::EPERM) => reopen(named, OFlags::RDONLY)?,
            opened => opened?,
        };
        Ok(self.files.keep(ino, opened))
    }
}

/// Opens the inode of a descriptor again.
///
/// # Errors
/// Those of open(2).
pub(crate) fn reopen(open: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd> {
    let flags = flags | OFlags::NONBLOCK | OFlags::CLOEXEC;
    openat(CWD, attributes::path_of(open), flags, Mode::empty()).map_err(errno)
}
