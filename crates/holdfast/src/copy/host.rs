//! The host's side of a copy.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType as HostType, Gid, Mode, OFlags, SeekFrom, Stat, Timespec, Timestamps, Uid,
    XattrFlags,
};
use rustix::io::Errno as Code;

use super::tree::{About, Lost, NO_PRIVILEGES, Tree, Xattrs, is_refusal, set_xattrs};
use crate::types::{FileType, Time};

/// Most bytes of a list of attribute names, and of a value.
const XATTR_MAX: usize = 1 << 16;

/// The host's file systems.
pub(crate) struct Host;

/// A path to a name in an open directory, for calls that take no directory.
fn by_descriptor(dir: &OwnedFd, name: &OsStr) -> PathBuf {
    let mut path = PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd()));
    path.push(name);
    path
}

fn time(seconds: i64, nanoseconds: i64) -> (Time, bool) {
    let time = Time::new(seconds, nanoseconds as u32);
    (time, time.secs() != seconds)
}

#[expect(
    clippy::unnecessary_cast,
    reason = "the widths depend on the processor"
)]
fn about(stat: &Stat) -> io::Result<About> {
    let kind = FileType::from_mode(stat.st_mode).ok_or(io::ErrorKind::InvalidData)?;
    let (atime, atime_clamped) = time(stat.st_atime as i64, stat.st_atime_nsec as i64);
    let (mtime, mtime_clamped) = time(stat.st_mtime as i64, stat.st_mtime_nsec as i64);
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    Ok(About {
        kind,
        perm: (stat.st_mode & 0o7777) as u16,
        uid: stat.st_uid,
        gid: stat.st_gid,
        rdev: stat.st_rdev as u64,
        size,
        nlink: stat.st_nlink as u64,
        id: (stat.st_dev as u64, stat.st_ino as u64),
        sparse: u64::try_from(stat.st_blocks)
            .unwrap_or(0)
            .saturating_mul(512)
            < size,
        atime,
        mtime,
        clamped: atime_clamped || mtime_clamped,
    })
}

/// The names in an open directory.
pub(crate) struct Names(rustix::fs::Dir);

impl Iterator for Names {
    type Item = io::Result<OsString>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.0.next()? {
                Ok(entry) => {
                    let name = entry.file_name().to_bytes();
                    if !matches!(name, b"." | b"..") {
                        return Some(Ok(OsStr::from_bytes(name).to_owned()));
                    }
                }
                Err(code) => return Some(Err(code.into())),
            }
        }
    }
}

impl Tree for Host {
    type Dir = OwnedFd;
    type File = File;
    type Names = Names;
    type Place = PathBuf;

    fn open_dir(&self, path: &Path) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(path, flags, Mode::empty())?)
    }

    fn about(&self, dir: &OwnedFd, name: &OsStr) -> io::Result<About> {
        about(&rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    fn enter(&self, dir: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(dir, name, flags, Mode::empty())?)
    }

    fn names(&self, dir: &OwnedFd) -> io::Result<Names> {
        Ok(Names(rustix::fs::Dir::read_from(dir)?))
    }

    fn target(&self, dir: &OwnedFd, name: &OsStr) -> io::Result<OsString> {
        let target = rustix::fs::readlinkat(dir, name, Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()))
    }

    fn xattrs(&self, dir: &OwnedFd, name: &OsStr) -> io::Result<Xattrs> {
        let path = by_descriptor(dir, name);
        // Most files have none, which this learns without a buffer.
        match rustix::fs::llistxattr_query(&path) {
            Ok(0) | Err(Code::OPNOTSUPP | Code::NOSYS) => return Ok(Xattrs::new()),
            Ok(_) => {}
            Err(code) => return Err(code.into()),
        }
        let mut bytes = vec![0; XATTR_MAX];
        let length = rustix::fs::llistxattr(&path, &mut bytes[..])?;
        let names = bytes[..length].to_vec();
        let mut found = Xattrs::new();
        for name in names
            .split(|&byte| byte == 0)
            .filter(|name| !name.is_empty())
        {
            let name = OsStr::from_bytes(name);
            match rustix::fs::lgetxattr(&path, name, &mut bytes[..]) {
                Ok(length) => found.push((name.to_owned(), bytes[..length].to_vec())),
                // It was removed meanwhile, or has no value.
                Err(Code::NODATA | Code::OPNOTSUPP) => {}
                Err(code) => return Err(code.into()),
            }
        }
        Ok(found)
    }

    fn open(&self, dir: &OwnedFd, name: &OsStr) -> io::Result<File> {
        // `NONBLOCK`, in case it has become a pipe.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(dir, name, flags, Mode::empty())?.into())
    }

    fn read_at(&self, file: &File, buf: &mut [u8], at: u64) -> io::Result<usize> {
        file.read_at(buf, at)
    }

    fn next_data(&self, file: &File, at: u64) -> io::Result<Option<Range<u64>>> {
        let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(Code::NXIO) => return Ok(None),
            // A file system without holes.
            Err(Code::INVAL | Code::OPNOTSUPP) => return Ok(Some(at..u64::MAX)),
            Err(code) => return Err(code.into()),
        };
        match rustix::fs::seek(file, SeekFrom::Hole(start)) {
            Ok(end) => Ok(Some(start..end)),
            // It was truncated meanwhile.
            Err(Code::NXIO) => Ok(None),
            Err(code) => Err(code.into()),
        }
    }

    fn make_dir(&self, dir: &OwnedFd, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(dir, name, Mode::RWXU)?)
    }

    fn make_file(&self, dir: &OwnedFd, name: &OsStr, _about: &About) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        Ok(rustix::fs::openat(dir, name, flags, mode)?.into())
    }

    fn make_symlink(&self, dir: &OwnedFd, name: &OsStr, target: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(target, dir, name)?)
    }

    fn make_special(&self, dir: &OwnedFd, name: &OsStr, about: &About) -> io::Result<()> {
        let kind = match about.kind {
            FileType::Fifo => HostType::Fifo,
            FileType::Socket => HostType::Socket,
            FileType::CharDevice => HostType::CharacterDevice,
            FileType::BlockDevice => HostType::BlockDevice,
            FileType::Regular | FileType::Directory | FileType::Symlink => {
                return Err(io::ErrorKind::InvalidInput.into());
            }
        };
        let mode = Mode::RUSR | Mode::WUSR;
        Ok(rustix::fs::mknodat(dir, name, kind, mode, about.rdev)?)
    }

    fn write_all_at(&self, file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
        file.write_all_at(bytes, at)
    }

    fn set_len(&self, file: &File, size: u64) -> io::Result<()> {
        file.set_len(size)
    }

    fn place(&self, path: &Path, _dir: &OwnedFd, _name: &OsStr) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }

    fn link(&self, top: &OwnedFd, place: &PathBuf, dir: &OwnedFd, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::linkat(top, place, dir, name, AtFlags::empty())?)
    }

    fn remove(&self, dir: &OwnedFd, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(dir, name, AtFlags::empty())?)
    }

    /// The order matters: chown(2) clears set-id bits and capabilities, setxattr(2) without root
    /// needs write permission, and both change times.
    fn finish(
        &self,
        dir: &OwnedFd,
        name: &OsStr,
        about: &About,
        xattrs: &Xattrs,
    ) -> io::Result<Lost> {
        let mut lost = Lost::default();
        let owner = (
            Some(Uid::from_raw(about.uid)),
            Some(Gid::from_raw(about.gid)),
        );
        match rustix::fs::chownat(dir, name, owner.0, owner.1, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Code::PERM) => lost.owner = !is_owned(dir, name, about)?,
            other => other?,
        }
        if !xattrs.is_empty() {
            let path = by_descriptor(dir, name);
            let set = |name: &OsStr, value: &[u8]| {
                let flags = XattrFlags::empty();
                Ok(rustix::fs::lsetxattr(&path, name, value, flags)?)
            };
            lost.xattrs = set_xattrs(xattrs, |_| true, set)?;
        }
        if about.kind != FileType::Symlink {
            let perm = if lost.owner {
                about.perm & NO_PRIVILEGES
            } else {
                about.perm
            };
            let mode = Mode::from_raw_mode(perm.into());
            rustix::fs::chmodat(dir, name, mode, AtFlags::empty())?;
        }
        let spec = |time: Time| Timespec {
            tv_sec: time.secs(),
            tv_nsec: time.subsec_nanos().into(),
        };
        let times = Timestamps {
            last_access: spec(about.atime),
            last_modification: spec(about.mtime),
        };
        match rustix::fs::utimensat(dir, name, &times, AtFlags::SYMLINK_NOFOLLOW) {
            Err(code) if !is_refusal(&code.into()) => return Err(code.into()),
            Ok(()) | Err(_) => {}
        }
        Ok(lost)
    }
}

/// Does the file have this owner and group already?
fn is_owned(dir: &OwnedFd, name: &OsStr, about: &About) -> io::Result<bool> {
    let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok((stat.st_uid, stat.st_gid) == (about.uid, about.gid))
}
