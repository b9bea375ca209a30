//! Attributes, extended and plain.

use holdfast_core::store::{Attributes, Done};
use holdfast_core::types::{Errno, FileFlags, FileType, Ino, Result, SetTime, XattrSet};
use rustix::fs::{
    AtFlags, CWD, Gid, IFlags, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid,
    XattrFlags, chmodat, chownat, ioctl_getflags, ioctl_setflags, removexattr, setxattr, utimensat,
};

use super::Performer;
use crate::attributes::path_of;
use crate::host::{errno, reopen};

impl Performer<'_> {
    pub(super) fn set(self, ino: Ino, set: &Attributes<'_>) -> Result<Done> {
        let (pinned, before) = self.host.pin(ino)?;
        let file = pinned.get(self.host);
        {
            let _acting = self.act()?;
            let nothing = *set == Attributes::default();
            if nothing || set.uid.is_some() || set.gid.is_some() {
                let uid = set.uid.map(Uid::from_raw);
                let gid = set.gid.map(Gid::from_raw);
                chownat(file, "", uid, gid, AtFlags::EMPTY_PATH).map_err(errno)?;
            }
            if let Some(perm) = set.perm {
                let mode = Mode::from_raw_mode(perm.into());
                chmodat(CWD, path_of(file), mode, AtFlags::empty()).map_err(errno)?;
            }
            if set.atime.is_some() || set.mtime.is_some() {
                let times = Timestamps {
                    last_access: timespec(set.atime),
                    last_modification: timespec(set.mtime),
                };
                utimensat(CWD, path_of(file), &times, AtFlags::empty()).map_err(errno)?;
            }
        }
        Ok(self.done(ino, &before, file))
    }

    pub(super) fn set_flags(
        self,
        ino: Ino,
        flags: Option<FileFlags>,
        project: Option<u32>,
    ) -> Result<Done> {
        // Those that statx(2) tells, and no others: they would seem to be gone.
        let others = flags.is_some_and(|flags| !told().contains(flags));
        if others || project.is_some_and(|project| project != 0) {
            return Err(Errno::EOPNOTSUPP);
        }
        let (pinned, before) = self.host.pin(ino)?;
        let file = pinned.get(self.host);
        if let Some(flags) = flags {
            let kind = FileType::from_mode(before.stx_mode.into());
            if !matches!(kind, Some(FileType::Regular | FileType::Directory)) {
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
        let (pinned, before) = self.host.pin(ino)?;
        let file = pinned.get(self.host);
        let flags = match how {
            XattrSet::Any => XattrFlags::empty(),
            XattrSet::Create => XattrFlags::CREATE,
            XattrSet::Replace => XattrFlags::REPLACE,
        };
        {
            let _acting = self.act()?;
            setxattr(path_of(file), name, value, flags).map_err(errno)?;
        }
        Ok(self.done(ino, &before, file))
    }

    pub(super) fn remove_xattr(self, ino: Ino, name: &[u8]) -> Result<Done> {
        self.with_xattrs()?;
        let (pinned, before) = self.host.pin(ino)?;
        let file = pinned.get(self.host);
        {
            let _acting = self.act()?;
            removexattr(path_of(file), name).map_err(errno)?;
        }
        Ok(self.done(ino, &before, file))
    }

    fn with_xattrs(self) -> Result<()> {
        match self.xattrs {
            true => Ok(()),
            false => Err(Errno::EOPNOTSUPP),
        }
    }
}

/// A host's file flags that a record tells.
const FLAGS: [(FileFlags, IFlags); 3] = [
    (FileFlags::IMMUTABLE, IFlags::IMMUTABLE),
    (FileFlags::APPEND, IFlags::APPEND),
    (FileFlags::NODUMP, IFlags::NODUMP),
];

fn told() -> FileFlags {
    FLAGS.iter().map(|(flag, _)| *flag).collect()
}

/// A host without flags does not know the command.
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
