//! Making inodes and names.

use holdfast_core::store::{Done, New, Touched};
use holdfast_core::types::{Errno, FileType, Ino, Result, S_ISGID};
use rustix::fs::{
    AtFlags, CWD, FileType as HostType, Mode, OFlags, Statx, chmodat, fchmod, fstat, linkat,
    mkdirat, mknodat, openat, symlinkat,
};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::Performer;
use crate::attributes::{File, path_of};
use crate::identity::Identity;
use crate::one_name::open_name;
use crate::record::record;
use crate::sys::errno;

/// In a directory with this attribute the caller's umask is ignored.
const ACL_DEFAULT: &[u8] = b"system.posix_acl_default";

impl Performer<'_> {
    pub(super) fn make(self, dir: Ino, name: &[u8], new: &New<'_>, open: bool) -> Result<Done> {
        let host = self.host;
        if open {
            host.held.room()?;
        }
        let opened = host.opened(dir)?;
        let at = opened.get(host);
        let before = host.stat(at)?;
        let (mode, counts) = self.mode(at, new);
        let made = {
            let _acting = self.act()?;
            make_in(at, name, new, mode, open)?
        };
        let mut done = self.changed();
        let look = || match &made {
            Some(file) => host.stat(file.as_fd()),
            None => Ok(host.find(at, name)?.ok_or(Errno::ENOENT)?.stat),
        };
        let mut stat = look()?;
        if counts && new.kind != FileType::Symlink && is_masked(&stat, mode) {
            {
                let _acting = self.act()?;
                give(at, name, mode)?;
            }
            stat = look()?;
        }
        let ino = self.note(dir, name, &stat);
        if let Some(file) = made {
            host.held.opened(ino, Some(Arc::new(file)), true);
        }
        let named = || File::named(at, name);
        let has = self.xattrs && host.has_attributes(named).unwrap_or(true);
        done.entry = Some((ino, new.kind));
        done.touched.extend(self.touched(dir, Some(&before), at));
        done.touched.push(Touched {
            before: None,
            record: record(ino, dir, &stat, has),
        });
        Ok(done)
    }

    /// The mode to create an inode with, and whether the caller's umask applies.
    fn mode(self, dir: BorrowedFd<'_>, new: &New<'_>) -> (Mode, bool) {
        // The host clears set-group-id by the mode of the call, which has fewer bits.
        let kept = new.perm | !S_ISGID;
        let asked = match new.kind {
            FileType::Directory => new.asked,
            _ => new.asked & kept,
        };
        let counts = !self.host.may_have_attributes() || !File::open(dir).has(ACL_DEFAULT);
        let bits = if counts {
            asked & !self.caller.umask
        } else {
            asked
        };
        (Mode::from_raw_mode(bits.into()), counts)
    }

    /// The number of a new inode; stores its place.
    fn note(self, dir: Ino, name: &[u8], stat: &Statx) -> Ino {
        let is = Identity::of(stat);
        let ino = self.host.number(is.host, &is);
        self.host.places.note(ino, dir, name, is);
        ino
    }

    pub(super) fn make_unnamed(self, dir: Ino, new: &New<'_>, linkable: bool) -> Result<Done> {
        let host = self.host;
        host.held.room()?;
        let opened = host.opened(dir)?;
        let at = opened.get(host);
        let (mode, counts) = self.mode(at, new);
        let mut flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        flags.set(OFlags::EXCL, !linkable);
        let file = {
            let _acting = self.act()?;
            let file = openat(at, ".", flags, mode).map_err(errno)?;
            if counts && is_masked(&host.stat(file.as_fd())?, mode) {
                fchmod(&file, mode).map_err(errno)?;
            }
            file
        };
        let mut done = self.changed();
        let stat = host.stat(file.as_fd())?;
        let names = file.try_clone().map_err(Errno::from)?;
        // It has no name.
        let ino = self.note(dir, b"", &stat);
        host.held.nameless.keep(ino, names);
        let file = Arc::new(file);
        host.held.opened(ino, Some(Arc::clone(&file)), true);
        done.entry = Some((ino, FileType::Regular));
        done.touched.extend(self.touched(ino, None, file.as_fd()));
        Ok(done)
    }

    pub(super) fn link(self, ino: Ino, dir: Ino, name: &[u8]) -> Result<Done> {
        let host = self.host;
        let (pinned, before) = host.pin(ino)?;
        let file = pinned.get(host);
        let opened = host.opened(dir)?;
        let at = opened.get(host);
        let dir_before = host.stat(at)?;
        {
            let _acting = self.act()?;
            linkat(CWD, path_of(file), at, name, AtFlags::SYMLINK_FOLLOW).map_err(errno)?;
        }
        let mut done = self.changed();
        host.held.nameless.retire(ino);
        host.places.note(ino, dir, name, Identity::of(&before));
        done.touched
            .extend(self.touched(dir, Some(&dir_before), at));
        done.touched.extend(self.touched(ino, Some(&before), file));
        Ok(done)
    }
}

/// Did the umask of this process remove bits?
fn is_masked(stat: &Statx, mode: Mode) -> bool {
    let permissions = mode & (Mode::RWXU | Mode::RWXG | Mode::RWXO);
    !Mode::from_raw_mode(stat.stx_mode.into()).contains(permissions)
}

/// Sets the mode of the new inode of this name.
fn give(dir: BorrowedFd<'_>, name: &[u8], mode: Mode) -> Result<()> {
    let made = open_name(dir, name, OFlags::PATH, Mode::empty())?;
    let has = fstat(&made).map_err(errno)?;
    let set_group = Mode::from_raw_mode(has.st_mode) & Mode::SGID;
    chmodat(
        CWD,
        path_of(made.as_fd()),
        mode | set_group,
        AtFlags::empty(),
    )
    .map_err(errno)
}

/// Creates the inode; returns its descriptor if it is to be open.
fn make_in(
    dir: BorrowedFd<'_>,
    name: &[u8],
    new: &New<'_>,
    mode: Mode,
    open: bool,
) -> Result<Option<OwnedFd>> {
    let kind = match (new.kind, new.target) {
        (FileType::Regular, _) if open => {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR;
            return open_name(dir, name, flags, mode).map(Some);
        }
        (FileType::Directory, _) => return mkdirat(dir, name, mode).map(|()| None).map_err(errno),
        (FileType::Symlink, Some(target)) => {
            return symlinkat(target, dir, name).map(|()| None).map_err(errno);
        }
        (FileType::Symlink, None) => return Err(Errno::EINVAL),
        (FileType::Regular, _) => HostType::RegularFile,
        (FileType::Fifo, _) => HostType::Fifo,
        (FileType::Socket, _) => HostType::Socket,
        (FileType::CharDevice, _) => HostType::CharacterDevice,
        (FileType::BlockDevice, _) => HostType::BlockDevice,
    };
    mknodat(dir, name, kind, mode, new.rdev).map_err(errno)?;
    Ok(None)
}
