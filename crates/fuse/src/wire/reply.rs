//! Replies: from values to the kernel's structures.

use super::{device, layout};
use holdfast_types::{Attr, FileType, S_ISGID, S_ISUID, StatFs, Time};
use std::time::Duration;
use zerocopy::{Immutable, IntoBytes};

/// 68 years, which overflow in no kernel.
const FOREVER: Duration = Duration::from_secs(i32::MAX as u64);

/// How long the kernel may cache what, and the block size, which the session adds to attributes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Validities {
    pub(crate) entry: Duration,
    pub(crate) attr: Duration,
    pub(crate) negative: Duration,
    /// All three for what the kernel is notified of, if that differs.
    pub(crate) notified: Option<Duration>,
    /// Preferred size of I/O in bytes (`st_blksize`).
    pub(crate) block_size: u32,
}

/// Copies `value` to the front of `out`; returns its length.
///
/// `out` is a transport's reply area, which is larger than any structure.
pub(crate) fn put<T: IntoBytes + Immutable>(out: &mut [u8], value: &T) -> usize {
    let bytes = value.as_bytes();
    out[..bytes.len()].copy_from_slice(bytes);
    bytes.len()
}

impl Validities {
    /// With no validity above [`FOREVER`].
    pub(crate) fn limited(self) -> Self {
        Self {
            entry: self.entry.min(FOREVER),
            attr: self.attr.min(FOREVER),
            negative: self.negative.min(FOREVER),
            notified: self.notified.map(|validity| validity.min(FOREVER)),
            ..self
        }
    }

    /// Those of an answer; `notified_for`: for how long is the kernel certainly notified of its
    /// changes? It is not called where that makes no difference.
    pub(crate) fn of(&self, notified_for: impl FnOnce() -> Option<Duration>) -> Self {
        let Some(notified) = self.notified else {
            return *self;
        };
        match notified_for() {
            None => *self,
            Some(left) => Self {
                entry: notified.min(left),
                attr: notified.min(left),
                negative: match left == Duration::MAX {
                    true => notified,
                    false => Duration::ZERO,
                },
                ..*self
            },
        }
    }

    /// How long these attributes may be cached.
    ///
    /// Not at all with set-id bits. A change of content clears these bits here, but no reply to
    /// WRITE, FALLOCATE, COPY_FILE_RANGE or OPEN says so. The kernel would run the new content with
    /// the old mode. Without a validity it asks before each execution.
    fn attr_validity(&self, attr: &Attr) -> Duration {
        if attr.kind == FileType::Regular && attr.perm & (S_ISUID | S_ISGID) != 0 {
            return Duration::ZERO;
        }
        self.attr
    }

    pub(crate) fn body(&self, attr: &Attr) -> layout::AttrOutBody {
        layout::AttrOutBody {
            ino: attr.ino.0,
            size: attr.size,
            blocks: attr.blocks,
            atime: attr.atime.secs().cast_unsigned(),
            mtime: attr.mtime.secs().cast_unsigned(),
            ctime: attr.ctime.secs().cast_unsigned(),
            atime_nsec: attr.atime.subsec_nanos(),
            mtime_nsec: attr.mtime.subsec_nanos(),
            ctime_nsec: attr.ctime.subsec_nanos(),
            mode: attr.mode(),
            nlink: attr.nlink,
            uid: attr.uid,
            gid: attr.gid,
            rdev: device::pack(attr.rdev),
            blksize: self.block_size,
            flags: 0,
        }
    }

    pub(crate) fn entry(&self, attr: &Attr) -> layout::EntryOut {
        let valid = self.attr_validity(attr);
        layout::EntryOut {
            nodeid: attr.ino.0,
            generation: 0,
            entry_valid: self.entry.as_secs(),
            attr_valid: valid.as_secs(),
            entry_valid_nsec: self.entry.subsec_nanos(),
            attr_valid_nsec: valid.subsec_nanos(),
            attr: self.body(attr),
        }
    }

    /// "There is no such name", to be cached.
    pub(crate) fn negative(&self) -> layout::EntryOut {
        layout::EntryOut {
            entry_valid: self.negative.as_secs(),
            entry_valid_nsec: self.negative.subsec_nanos(),
            ..Default::default()
        }
    }

    pub(crate) fn attr(&self, attr: &Attr) -> layout::AttrOut {
        let valid = self.attr_validity(attr);
        layout::AttrOut {
            attr_valid: valid.as_secs(),
            attr_valid_nsec: valid.subsec_nanos(),
            dummy: 0,
            attr: self.body(attr),
        }
    }

    pub(crate) fn statx(&self, attr: &Attr) -> layout::StatxOut {
        let rdev = device::pack(attr.rdev);
        let stat = layout::Statx {
            mask: libc::STATX_BASIC_STATS | libc::STATX_BTIME,
            blksize: self.block_size,
            nlink: attr.nlink,
            uid: attr.uid,
            gid: attr.gid,
            mode: attr.mode() as u16,
            ino: attr.ino.0,
            size: attr.size,
            blocks: attr.blocks,
            atime: sx_time(attr.atime),
            btime: sx_time(attr.btime),
            ctime: sx_time(attr.ctime),
            mtime: sx_time(attr.mtime),
            rdev_major: libc::major(device::unpack(rdev)),
            rdev_minor: libc::minor(device::unpack(rdev)),
            ..Default::default()
        };
        let valid = self.attr_validity(attr);
        layout::StatxOut {
            attr_valid: valid.as_secs(),
            attr_valid_nsec: valid.subsec_nanos(),
            stat,
            ..Default::default()
        }
    }
}

fn sx_time(time: Time) -> layout::SxTime {
    layout::SxTime {
        sec: time.secs(),
        nsec: time.subsec_nanos(),
        reserved: 0,
    }
}

pub(crate) fn statfs(stat: &StatFs) -> layout::StatfsOut {
    layout::StatfsOut {
        blocks: stat.blocks,
        bfree: stat.blocks_free,
        bavail: stat.blocks_available,
        files: stat.files,
        ffree: stat.files_free,
        bsize: stat.block_size,
        namelen: stat.name_max,
        frsize: stat.block_size,
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_infinite_validity_stays_within_what_kernels_count() {
        let validities = Validities {
            entry: Duration::MAX,
            attr: Duration::new(3, 5),
            negative: Duration::ZERO,
            notified: Some(Duration::MAX),
            block_size: 4096,
        };
        let limited = validities.limited();
        assert_eq!(limited.entry.as_secs(), i32::MAX as u64);
        assert_eq!(limited.attr, Duration::new(3, 5));
        assert_eq!(limited.notified, Some(limited.entry));
    }

    #[test]
    fn a_notified_validity_is_over_when_notifications_are_not_certain_any_more() {
        const SECOND: Duration = Duration::from_secs(1);
        let validities = Validities {
            entry: SECOND,
            attr: SECOND,
            negative: SECOND,
            notified: Some(60 * SECOND),
            block_size: 4096,
        };
        let of = |left| {
            let of = validities.of(|| left);
            [of.entry, of.attr, of.negative].map(|it| it.as_secs())
        };
        assert_eq!(of(None), [1, 1, 1]);
        assert_eq!(of(Some(Duration::MAX)), [60, 60, 60]);
        assert_eq!(of(Some(5 * SECOND)), [5, 5, 0]);
        assert_eq!(of(Some(90 * SECOND)), [60, 60, 0]);
    }
}
