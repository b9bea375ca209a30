//! Replies: from values to the kernel's structures.

use super::{device, layout};
use holdfast_types::{Attr, FileType, S_ISGID, S_ISUID, StatFs, Time};
use std::time::Duration;
use zerocopy::{Immutable, IntoBytes};

/// How long the kernel may believe something: seconds and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Validity {
    secs: u64,
    nanos: u32,
}

impl Validity {
    /// Seconds at which every kernel's arithmetic still is far from its end (68 years).
    const FOREVER: u64 = i32::MAX as u64;
    const NONE: Self = Self { secs: 0, nanos: 0 };

    pub(crate) fn new(duration: Duration) -> Self {
        if duration.as_secs() >= Self::FOREVER {
            return Self {
                secs: Self::FOREVER,
                nanos: 0,
            };
        }
        Self {
            secs: duration.as_secs(),
            nanos: duration.subsec_nanos(),
        }
    }
}

/// What the session adds to attributes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Validities {
    pub(crate) entry: Validity,
    pub(crate) attr: Validity,
    pub(crate) negative: Validity,
    /// All three where changes are told, if that makes a difference.
    pub(crate) heard: Option<Validity>,
    /// Preferred size of I/O in bytes, told as `st_blksize`.
    pub(crate) block_size: u32,
}

/// Copies `value` to the front of `out`; gives its length.
///
/// `out` is a transport's reply area, which is larger than any structure.
pub(crate) fn put<T: IntoBytes + Immutable>(out: &mut [u8], value: &T) -> usize {
    let bytes = value.as_bytes();
    out[..bytes.len()].copy_from_slice(bytes);
    bytes.len()
}

impl Validities {
    /// Those of an answer of which changes are told, as the closure says; it is not asked where that makes no difference.
    pub(crate) fn of(&self, is_heard: impl FnOnce() -> bool) -> Self {
        match self.heard {
            Some(heard) if is_heard() => Self {
                entry: heard,
                attr: heard,
                negative: heard,
                ..*self
            },
            _ => *self,
        }
    }

    /// How long these attributes may be believed.
    ///
    /// Not at all where they lend an identity: a change of content takes the set-id bits away here, of which
    /// no reply to WRITE, FALLOCATE, COPY_FILE_RANGE or OPEN tells the kernel. It would run the new content
    /// under the old mode. So it asks before it lets anybody run such a file.
    fn attr_validity(&self, attr: &Attr) -> Validity {
        if attr.kind == FileType::Regular && attr.perm & (S_ISUID | S_ISGID) != 0 {
            return Validity::NONE;
        }
        self.attr
    }

    /// The same, with attributes that are not to be believed.
    pub(crate) fn without_attributes(self) -> Self {
        Self {
            attr: Validity::NONE,
            ..self
        }
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
            entry_valid: self.entry.secs,
            attr_valid: valid.secs,
            entry_valid_nsec: self.entry.nanos,
            attr_valid_nsec: valid.nanos,
            attr: self.body(attr),
        }
    }

    /// "There is no such name", to be remembered.
    pub(crate) fn negative(&self) -> layout::EntryOut {
        layout::EntryOut {
            entry_valid: self.negative.secs,
            entry_valid_nsec: self.negative.nanos,
            ..Default::default()
        }
    }

    /// Should the absence of names be remembered at all?
    pub(crate) fn remembers_absence(&self) -> bool {
        self.negative != Validity::NONE
    }

    pub(crate) fn attr(&self, attr: &Attr) -> layout::AttrOut {
        let valid = self.attr_validity(attr);
        layout::AttrOut {
            attr_valid: valid.secs,
            attr_valid_nsec: valid.nanos,
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
            attr_valid: valid.secs,
            attr_valid_nsec: valid.nanos,
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
        let forever = Validity::new(Duration::MAX);
        assert_eq!(
            forever,
            Validity {
                secs: i32::MAX as u64,
                nanos: 0
            }
        );
        let short = Validity::new(Duration::new(3, 5));
        assert_eq!(short, Validity { secs: 3, nanos: 5 });
    }
}
