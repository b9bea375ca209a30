//! What names lead to, as records of inodes.

use holdfast_core::store::InodeRecord;
use holdfast_core::types::{Errno, Ino, Result};
use rustix::fs::{AtFlags, Mode, OFlags, Statx, statx};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::{Host, mount};
use crate::attributes::{self, File};
use crate::dirents;
use crate::identity::{HostNumber, Identity, is_settled_since, time};
use crate::one_name::{open_name, open_to_list};
use crate::record::record;
use crate::sys::errno;

/// A file as it was found.
pub(crate) struct Found {
    pub(crate) stat: Statx,
    pub(crate) is: Identity,
    pub(crate) ino: Ino,
}

impl Host {
    /// What a name of a directory leads to; `None`: there is no such name.
    ///
    /// # Errors
    /// Those of statx(2).
    pub(crate) fn find(&self, dir: BorrowedFd<'_>, name: &[u8]) -> Result<Option<Found>> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        let stat = match statx(dir, name, flags, self.of.asked()).map_err(errno) {
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ENAMETOOLONG) => return Ok(None),
            stat => stat?,
        };
        let is = Identity::of(&stat);
        let mounted_over = mount(&stat) != self.mount;
        let number = match mounted_over.then(|| listed_number(dir, name)).transpose()? {
            // Its number may be that of a file here, so it is given the number of the covered
            // inode.
            Some(Some(number)) => HostNumber {
                number,
                ..self.root_is.host
            },
            _ => is.host,
        };
        let ino = self.number(number, &is);
        Ok(Some(Found { stat, is, ino }))
    }

    /// The record of a name of a directory; stores the place. `None`: there is no such name.
    ///
    /// # Errors
    /// Those of statx(2) and listxattr(2).
    pub(crate) fn tell(
        &self,
        at: BorrowedFd<'_>,
        dir: Ino,
        name: &[u8],
        xattrs: bool,
    ) -> Result<Option<InodeRecord>> {
        let Some(file) = self.find(at, name)? else {
            return Ok(None);
        };
        self.places.note(file.ino, dir, name, file.is);
        let named = || File::named(at, name);
        self.record(file.ino, dir, &file.stat, xattrs, named)
            .map(Some)
    }

    /// The same, and keeps the inode open for a moment, regardless of its name.
    ///
    /// # Errors
    /// The same.
    pub(crate) fn tell_and_hold(
        self: &Arc<Self>,
        at: BorrowedFd<'_>,
        dir: Ino,
        name: &[u8],
        xattrs: bool,
    ) -> Result<Option<InodeRecord>> {
        let open = match open_name(at, name, OFlags::PATH, Mode::empty()) {
            Ok(open) => open,
            // A result must be held, so a name that appears meanwhile is not returned.
            Err(Errno::ENOENT) => return Ok(None),
            // It may be another mount.
            Err(_) => return self.tell(at, dir, name, xattrs),
        };
        let stat = self.stat(open.as_fd())?;
        let is = Identity::of(&stat);
        let ino = self.number(is.host, &is);
        self.places.note(ino, dir, name, is);
        let opened = || File::open(open.as_fd());
        let record = self.record(ino, dir, &stat, xattrs, opened)?;
        self.held.looked_up.keep(ino, open);
        self.close_looked_up();
        Ok(Some(record))
    }

    /// The record of an inode, with extended attributes if `xattrs`. Its place is known, and `stat`
    /// is new.
    ///
    /// # Errors
    /// Those of listxattr(2).
    pub(crate) fn record(
        &self,
        ino: Ino,
        parent: Ino,
        stat: &Statx,
        xattrs: bool,
        file: impl FnOnce() -> File,
    ) -> Result<InodeRecord> {
        let has = xattrs && self.has_attributes_of(ino, stat, file)?;
        Ok(record(ino, parent, stat, has))
    }

    /// Has a file extended attributes that are shown? Its place is known, and `stat` is new.
    ///
    /// # Errors
    /// Those of listxattr(2).
    fn has_attributes_of(
        &self,
        ino: Ino,
        stat: &Statx,
        file: impl FnOnce() -> File,
    ) -> Result<bool> {
        let (mtime, ctime) = (time(stat.stx_mtime), time(stat.stx_ctime));
        if let Some(has) = self.places.has_xattrs(ino, ctime) {
            return Ok(has);
        }
        // Computed before the call.
        let is_settled = is_settled_since(mtime, ctime, Instant::now());
        let has = self.has_attributes(file)?;
        if is_settled {
            self.places.note_xattrs(ino, ctime, has);
        }
        Ok(has)
    }

    /// Has a file extended attributes that are shown?
    ///
    /// # Errors
    /// Those of listxattr(2).
    pub(crate) fn has_attributes(&self, file: impl FnOnce() -> File) -> Result<bool> {
        if !self.may_have_attributes() {
            return Ok(false);
        }
        match attributes::names(&file()).map(|names| !names.is_empty()) {
            Err(Errno::EOPNOTSUPP) => {
                self.has_xattrs.store(false, Relaxed);
                Ok(false)
            }
            watcher => watcher,
        }
    }

    /// May a file have extended attributes?
    pub(crate) fn may_have_attributes(&self) -> bool {
        // Relaxed: a late thread only makes one more call.
        self.has_xattrs.load(Relaxed)
    }

    /// The number of a file, different from that of any other known file.
    pub(crate) fn number(&self, host: HostNumber, is: &Identity) -> Ino {
        let mut ino = self.numbers.of(host);
        while let Some(known) = self.places.get(ino)
            && known.is.host == is.host
            && known.is != *is
        {
            ino = self.numbers.change(host, ino);
        }
        ino
    }

    /// The number for a listed file of the root's device.
    pub(crate) fn listed(&self, number: u64) -> Ino {
        self.numbers.of(HostNumber {
            number,
            ..self.root_is.host
        })
    }
}

/// The number in a directory for a name, regardless of mounts.
fn listed_number(dir: BorrowedFd<'_>, name: &[u8]) -> Result<Option<u64>> {
    let listing = open_to_list(dir, OFlags::empty())?;
    let mut found = None;
    dirents::each(listing.as_fd(), &mut |entry| {
        if entry.name == name {
            found = Some(entry.number);
        }
        found.is_none()
    })?;
    Ok(found)
}
