//! Attributes: reading and changing them.

use std::path::Path;

use holdfast::Metadata;
use holdfast::types::{SetAttr, SetTime, Time};

use crate::failure::{About as _, Failure, Result};
use crate::objects::Place;
use crate::types::{HF_NOFOLLOW, hf_stat, hf_timespec};

/// The preferred size of reads and writes.
const BLKSIZE: u32 = 4096;

fn timespec(time: Time) -> hf_timespec {
    hf_timespec {
        tv_sec: time.secs(),
        tv_nsec: time.subsec_nanos().into(),
    }
}

impl From<Metadata> for hf_stat {
    fn from(metadata: Metadata) -> Self {
        let attr = metadata.attr();
        Self {
            size: 0,
            st_mode: attr.mode(),
            st_ino: attr.ino.0,
            st_size: attr.size,
            st_blocks: attr.blocks,
            st_rdev: attr.rdev,
            st_nlink: attr.nlink,
            st_uid: attr.uid,
            st_gid: attr.gid,
            st_blksize: BLKSIZE,
            st_atim: timespec(attr.atime),
            st_mtim: timespec(attr.mtime),
            st_ctim: timespec(attr.ctime),
            st_btim: timespec(attr.btime),
        }
    }
}

/// `UTIME_NOW` and `UTIME_OMIT` of utimensat(2).
const NOW: i64 = (1 << 30) - 1;
const OMIT: i64 = (1 << 30) - 2;

/// A time for utimensat(2); `None` leaves it.
fn set_time(time: hf_timespec) -> Result<Option<SetTime>> {
    let hf_timespec { tv_sec, tv_nsec } = time;
    match tv_nsec {
        NOW => Ok(Some(SetTime::Now)),
        OMIT => Ok(None),
        0..1_000_000_000 => Ok(Some(SetTime::At(Time::new(tv_sec, tv_nsec as u32)))),
        _ => {
            let reason =
                format!("tv_nsec is {tv_nsec}; pass 0 to 999999999, UTIME_NOW or UTIME_OMIT");
            Err(Failure::invalid(reason))
        }
    }
}

/// The change of utimensat(2); without times both are now.
pub(crate) fn times(times: Option<&[hf_timespec]>) -> Result<SetAttr> {
    let [atime, mtime] = match times {
        Some(&[atime, mtime]) => [set_time(atime)?, set_time(mtime)?],
        _ => [Some(SetTime::Now); 2],
    };
    Ok(SetAttr {
        atime,
        mtime,
        ..SetAttr::default()
    })
}

/// Changes attributes of what a path leads to; with `HF_NOFOLLOW`, of a symbolic link at its end.
pub(crate) fn change(place: &Place, path: &Path, change: &SetAttr, flags: u32) -> Result<()> {
    if flags & !HF_NOFOLLOW != 0 {
        return Err(Failure::unknown_flags(flags, "0 or HF_NOFOLLOW"));
    }
    let (core, caller) = (place.shared.fs.core(), place.dir.caller());
    let bytes = path.as_os_str().as_encoded_bytes();
    let node = core.resolve(caller, place.dir.node(), bytes, flags == 0);
    let node = node.about(&path.display())?;
    if *change != SetAttr::default() {
        let changed = core.setattr(caller, &node, change, None);
        changed.about(&path.display())?;
    }
    Ok(())
}
