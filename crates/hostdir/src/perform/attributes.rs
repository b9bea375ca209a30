//! Attributes, extended and plain.

use holdfast_core::store::{Attributes, Done};
use holdfast_core::types::{Errno, FileFlags, FileType, Ino, Result, SetTime, XattrSet};
use rustix::fs::{
    AtFlags, CWD, Gid, IFlags, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid,
    XattrFlags, chmodat, chownat, ioctl_getflags, ioctl_setflags, removexattr, setxattr, utimensat,
};

use super::Performer;
use crate::attributes::path_of;
use crate::host::reach::reopen;
use crate::sys::errno;

impl Performer<'_> {
    pub(super) fn set_attributes(self, ino: Ino, set: &Attributes<'_>) -> Result<Done> {
        self.change(ino, |file| {
            if *set == Attributes::default() || set.uid.is_some() || set.gid.is_some() {
                let uid = set.uid.map(Uid::from_raw);
                chownat(
                    file,
                    "",
                    uid,
                    set.gid.map(Gid::from_raw),
                    AtFlags::EMPTY_PATH,
                )
                .map_err(errno)?;
            }
            if let Some(perm) = set.perm {
                chmodat(
                    CWD,
                    path_of(file),
                    Mode::from(u32::from(perm)),
                    AtFlags::empty(),
                )
                .map_err(errno)?;
            }
            if set.atime.is_some() || set.mtime.is_some() {
                let times = &Timestamps {
                    last_access: timespec(set.atime),
                    last_modification: timespec(set.mtime),
                };
                utimensat(CWD, path_of(file), times, AtFlags::empty()).map_err(errno)?;
            }
            if set.drops_capability {
                match removexattr(path_of(file), "security.capability") {
                    Err(rustix::io::Errno::NODATA) => {}
                    removed => removed.map_err(errno)?,
                }
            }
            Ok(())
        })
    }

    pub(super) fn set_flags(
        self,
        ino: Ino,
        flags: Option<FileFlags>,
        project: Option<u32>,
    ) -> Result<Done> {
        // Only flags that statx(2) reports: others would seem to be cleared.
        let reported = FileFlags::from_iter(FLAGS.map(|(flag, _)| flag));
        if flags.is_some_and(|flags| !reported.contains(flags)) || project.unwrap_or(0) != 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        let (pinned, before) = self.host.pin(ino)?;
        let file = pinned.get(self.host);
        if let Some(flags) = flags {
            if !matches!(
                FileType::from_mode(before.stx_mode.into()),
                Some(FileType::Regular | FileType::Directory)
            ) {
                return Err(Errno::EOPNOTSUPP);
            }
            let open = reopen(file, OFlags::RDONLY)?;
            let held = ioctl_getflags(&open).map_err(of_flags)?;
            let mut wanted = held;
            for (flag, bit) in FLAGS {
                wanted.set(bit, flags.contains(flag));
            }
            if wanted != held {
                let _acting = self.act()?;
                ioctl_setflags(&open, wanted).map_err(of_flags)?;
            }
        }
        Ok(self.done(ino, &before, file))
    }

    pub(super) fn set_xattr(
        self,
        ino: Ino,
        name: &[u8],
        value: &[u8],
        how: XattrSet,
    ) -> Result<Done> {
        self.with_xattrs()?;
        let flags = match how {
            XattrSet::Any => XattrFlags::empty(),
            XattrSet::Create => XattrFlags::CREATE,
            XattrSet::Replace => XattrFlags::REPLACE,
        };
        self.change(ino, |file| {
            setxattr(path_of(file), name, value, flags).map_err(errno)
        })
    }

    pub(super) fn remove_xattr(self, ino: Ino, name: &[u8]) -> Result<Done> {
        self.with_xattrs()?;
        self.change(ino, |file| removexattr(path_of(file), name).map_err(errno))
    }

    fn with_xattrs(self) -> Result<()> {
        self.xattrs.then_some(()).ok_or(Errno::EOPNOTSUPP)
    }
}

/// File flags of the host that a record has.
const FLAGS: [(FileFlags, IFlags); 3] = [
    (FileFlags::IMMUTABLE, IFlags::IMMUTABLE),
    (FileFlags::APPEND, IFlags::APPEND),
    (FileFlags::NODUMP, IFlags::NODUMP),
];

/// A host without flags does not implement the ioctl.
fn of_flags(error: rustix::io::Errno) -> Errno {
    match errno(error) {
        Errno::ENOTTY => Errno::EOPNOTSUPP,
        error => error,
    }
}

fn timespec(time: Option<SetTime>) -> Timespec {
    let (tv_sec, tv_nsec) = match time {
        None => (0, UTIME_OMIT),
        Some(SetTime::Now) => (0, UTIME_NOW),
        Some(SetTime::At(time)) => (time.secs(), time.subsec_nanos().into()),
    };
    Timespec { tv_sec, tv_nsec }
}
