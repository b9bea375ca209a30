//! Attributes, extended and plain.

use holdfast_core::store::{Attributes, Done};
use holdfast_core::types::{Errno, Ino, Result, SetTime, XattrSet};
use rustix::fs::{
    AtFlags, CWD, Gid, Mode, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid, XattrFlags, chmodat,
    chownat, removexattr, setxattr, utimensat,
};

use super::Performer;
use crate::attributes::path_of;
use crate::host::errno;

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

fn timespec(time: Option<SetTime>) -> Timespec {
    let (tv_sec, tv_nsec) = match time {
        None => (0, UTIME_OMIT),
        Some(SetTime::Now) => (0, UTIME_NOW),
        Some(SetTime::At(time)) => (time.secs(), time.subsec_nanos().into()),
    };
    Timespec { tv_sec, tv_nsec }
}
