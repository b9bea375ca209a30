//! The expected fields of the next record of a frame, and inodes coded as differences from them.
//!
//! *Invariant.* Encoder and decoder update their contexts by the same calls in the same order, so
//! both expect the same. A frame begins with [`Context::new`] and depends on no other frame.

use crate::varint::{Reader, put, put_delta};
use holdfast_core::store::{InodeRecord, Lsn, StoredSpace};
use holdfast_types::{FileFlags, FileType, Ino, Time};

/// The last values of each field that records have.
#[derive(Clone, Debug)]
pub(super) struct Context {
    /// Of the last batch.
    pub(super) lsn: Lsn,
    /// Of the last batch.
    pub(super) subvolume: u64,
    /// The time of the last change.
    pub(super) time: Time,
    /// The last inode created.
    pub(super) created: InodeRecord,
    /// The last attributes of anything but a directory.
    changed: InodeRecord,
    /// The last attributes of a directory.
    directory: InodeRecord,
    /// How much the last attributes of a directory added to its size.
    step: u64,
    /// The directory of the last name.
    pub(super) dir: u64,
    /// The cookie of the last name entered.
    pub(super) entered: u64,
    /// The cookie of the last name removed.
    pub(super) left: u64,
    /// The last inode freed.
    pub(super) freed: u64,
    /// The file with the last change of content.
    pub(super) file: u64,
    /// The end of that change, in bytes.
    pub(super) offset: u64,
    /// The file of the last map.
    pub(super) mapped: u64,
    /// The file block after it.
    pub(super) block: u64,
    /// The device block after it.
    pub(super) place: u64,
    /// Its generation.
    pub(super) generation: u64,
}

const NOTHING: InodeRecord = InodeRecord {
    ino: Ino(0),
    kind: FileType::Regular,
    perm: 0,
    nlink: 1,
    uid: 0,
    gid: 0,
    rdev: 0,
    size: 0,
    atime: Time(0),
    mtime: Time(0),
    ctime: Time(0),
    btime: Time(0),
    parent: Ino(0),
    xattrs: false,
    space: StoredSpace::UNKNOWN,
    flags: FileFlags::empty(),
    project: 0,
};

impl Context {
    /// The context before the first record of a frame.
    pub(super) const fn new(first: Lsn) -> Self {
        Self {
            lsn: first,
            subvolume: 0,
            time: Time(0),
            created: NOTHING,
            changed: NOTHING,
            directory: NOTHING,
            step: 0,
            dir: 0,
            entered: 0,
            left: 0,
            freed: 0,
            file: 0,
            offset: 0,
            mapped: 0,
            block: 0,
            place: 0,
            generation: 0,
        }
    }
}

/// The kind of an inode record, which decides the expected fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Created,
    Changed,
    Directory,
}

impl Role {
    pub(super) const fn of_attributes(kind: FileType) -> Self {
        if kind.is_dir() {
            Self::Directory
        } else {
            Self::Changed
        }
    }
}

// First byte of differences; fields follow in this order.
const INO: u32 = 1;
const CTIME: u32 = 1 << 1;
const MTIME: u32 = 1 << 2;
const ATIME: u32 = 1 << 3;
const SIZE: u32 = 1 << 4;
const NLINK: u32 = 1 << 5;
// Set in the low byte if a second byte follows, and if a third one does.
const MORE: u8 = 1 << 6;
const RARE: u8 = 1 << 7;
// Second byte.
const KIND: u32 = 1 << 8;
const PERM: u32 = 1 << 9;
const UID: u32 = 1 << 10;
const GID: u32 = 1 << 11;
const RDEV: u32 = 1 << 12;
const PARENT: u32 = 1 << 13;
const BTIME: u32 = 1 << 14;
// Has no field: the value is the opposite of the reference's.
const XATTRS: u32 = 1 << 15;
// Third byte.
const FLAGS: u32 = 1 << 16;
const PROJECT: u32 = 1 << 17;
const LOW: u32 = INO | CTIME | MTIME | ATIME | SIZE | NLINK;
const HIGH: u32 = KIND | PERM | UID | GID | RDEV | PARENT | BTIME | XATTRS;
const THIRD: u32 = FLAGS | PROJECT;

/// The fields of an inode that differ from the expected ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Differences(u32);

impl Differences {
    pub(super) const fn none(self) -> bool {
        self.0 == 0
    }
}

fn bit(flag: u32, differs: bool) -> u32 {
    if differs { flag } else { 0 }
}

impl Context {
    fn reference(&self, role: Role) -> &InodeRecord {
        match role {
            Role::Created => &self.created,
            Role::Changed => &self.changed,
            Role::Directory => &self.directory,
        }
    }

    fn expected_ino(&self, role: Role) -> u64 {
        let last = self.reference(role).ino.0;
        match role {
            Role::Created | Role::Changed => last.wrapping_add(1),
            Role::Directory => last,
        }
    }

    fn expected_size(&self, role: Role) -> u64 {
        match role {
            Role::Created | Role::Changed => self.reference(role).size,
            Role::Directory => self.directory.size.wrapping_add(self.step),
        }
    }

    fn expected_parent(&self, role: Role) -> u64 {
        match role {
            // Most names are created in the directory of the last change.
            Role::Created => self.dir,
            Role::Changed | Role::Directory => self.reference(role).parent.0,
        }
    }

    /// The fields of `inode` that differ from the expected ones.
    #[inline]
    pub(super) fn differences(&self, role: Role, inode: &InodeRecord) -> Differences {
        let last = self.reference(role);
        let (atime, btime) = match role {
            Role::Created => (inode.ctime, inode.ctime),
            Role::Changed | Role::Directory => (last.atime, last.btime),
        };
        Differences(
            bit(INO, inode.ino.0 != self.expected_ino(role))
                | bit(CTIME, inode.ctime != self.time)
                | bit(MTIME, inode.mtime != inode.ctime)
                | bit(ATIME, inode.atime != atime)
                | bit(SIZE, inode.size != self.expected_size(role))
                | bit(NLINK, inode.nlink != last.nlink)
                | bit(KIND, inode.kind != last.kind)
                | bit(PERM, inode.perm != last.perm)
                | bit(UID, inode.uid != last.uid)
                | bit(GID, inode.gid != last.gid)
                | bit(RDEV, inode.rdev != last.rdev)
                | bit(PARENT, inode.parent.0 != self.expected_parent(role))
                | bit(BTIME, inode.btime != btime)
                | bit(XATTRS, inode.xattrs != last.xattrs)
                | bit(FLAGS, inode.flags != last.flags)
                | bit(PROJECT, inode.project != last.project),
        )
    }

    /// Writes those differences, and updates the context.
    #[inline]
    pub(super) fn put_inode(
        &mut self,
        buf: &mut Vec<u8>,
        role: Role,
        inode: &InodeRecord,
        differences: Differences,
    ) {
        if !differences.none() {
            self.put_fields(buf, role, inode, differences.0);
        }
        self.remember(role, inode);
    }

    fn put_fields(&self, buf: &mut Vec<u8>, role: Role, inode: &InodeRecord, mask: u32) {
        let last = self.reference(role);
        let more = mask & HIGH != 0;
        let rare = mask & THIRD != 0;
        let sign = |set, sign| if set { sign } else { 0 };
        buf.push((mask & LOW) as u8 | sign(more, MORE) | sign(rare, RARE));
        if more {
            buf.push((mask >> 8) as u8);
        }
        if rare {
            buf.push((mask >> 16) as u8);
        }
        let delta = |buf: &mut Vec<u8>, flag, value, from| {
            if mask & flag != 0 {
                put_delta(buf, value, from);
            }
        };
        let time = |buf: &mut Vec<u8>, flag, time: Time, from: Time| {
            delta(buf, flag, time.0.cast_unsigned(), from.0.cast_unsigned());
        };
        let plain = |buf: &mut Vec<u8>, flag, value| {
            if mask & flag != 0 {
                put(buf, value);
            }
        };
        delta(buf, INO, inode.ino.0, self.expected_ino(role));
        time(buf, CTIME, inode.ctime, self.time);
        time(buf, MTIME, inode.mtime, last.mtime);
        time(buf, ATIME, inode.atime, last.atime);
        delta(buf, SIZE, inode.size, self.expected_size(role));
        plain(buf, NLINK, inode.nlink.into());
        // One byte, as `read_kind` expects: the type's number is below 0x80.
        plain(buf, KIND, inode.kind.dirent_type().into());
        plain(buf, PERM, inode.perm.into());
        plain(buf, UID, inode.uid.into());
        plain(buf, GID, inode.gid.into());
        plain(buf, RDEV, inode.rdev);
        delta(buf, PARENT, inode.parent.0, self.expected_parent(role));
        time(buf, BTIME, inode.btime, last.btime);
        plain(buf, FLAGS, inode.flags.bits().into());
        plain(buf, PROJECT, inode.project.into());
    }

    /// Reads what [`put_inode`](Self::put_inode) wrote. `differs`: were there any differences?
    #[inline]
    pub(super) fn inode(
        &mut self,
        reader: &mut Reader<'_>,
        role: Role,
        differs: bool,
    ) -> Option<InodeRecord> {
        let mask = if differs { read_mask(reader)? } else { 0 };
        let inode = self.fields(reader, role, mask)?;
        self.remember(role, &inode);
        Some(inode)
    }

    fn fields(&self, reader: &mut Reader<'_>, role: Role, mask: u32) -> Option<InodeRecord> {
        let last = self.reference(role);
        let mut inode = last.clone();
        let delta = |reader: &mut Reader<'_>, flag: u32, expected: u64| match mask & flag {
            0 => Some(expected),
            _ => reader.delta(expected),
        };
        let time = |reader: &mut Reader<'_>, flag: u32, from: Time, otherwise: Time| {
            if mask & flag == 0 {
                return Some(otherwise);
            }
            let time = reader.delta(from.0.cast_unsigned())?;
            Some(Time(time.cast_signed()))
        };
        inode.ino = Ino(delta(reader, INO, self.expected_ino(role))?);
        inode.ctime = time(reader, CTIME, self.time, self.time)?;
        let (atime, btime) = match role {
            Role::Created => (inode.ctime, inode.ctime),
            Role::Changed | Role::Directory => (last.atime, last.btime),
        };
        inode.mtime = time(reader, MTIME, last.mtime, inode.ctime)?;
        inode.atime = time(reader, ATIME, last.atime, atime)?;
        inode.size = delta(reader, SIZE, self.expected_size(role))?;
        inode.nlink = narrow(reader, mask & NLINK, inode.nlink)?;
        if mask & KIND != 0 {
            inode.kind = read_kind(reader)?;
        }
        inode.perm = narrow(reader, mask & PERM, inode.perm)?;
        inode.uid = narrow(reader, mask & UID, inode.uid)?;
        inode.gid = narrow(reader, mask & GID, inode.gid)?;
        inode.rdev = narrow(reader, mask & RDEV, inode.rdev)?;
        inode.parent = Ino(delta(reader, PARENT, self.expected_parent(role))?);
        inode.btime = time(reader, BTIME, last.btime, btime)?;
        inode.xattrs ^= mask & XATTRS != 0;
        let flags = narrow(reader, mask & FLAGS, inode.flags.bits())?;
        inode.flags = FileFlags::from_bits_retain(flags);
        inode.project = narrow(reader, mask & PROJECT, inode.project)?;
        Some(inode)
    }

    fn remember(&mut self, role: Role, inode: &InodeRecord) {
        self.time = inode.ctime;
        match role {
            Role::Created => self.created.clone_from(inode),
            Role::Changed => self.changed.clone_from(inode),
            Role::Directory => {
                self.step = if inode.ino == self.directory.ino {
                    inode.size.wrapping_sub(self.directory.size)
                } else {
                    0
                };
                self.directory.clone_from(inode);
            }
        }
    }
}

/// A number of a field, read if its `flag` is set.
fn narrow<T: TryFrom<u64>>(reader: &mut Reader<'_>, flag: u32, otherwise: T) -> Option<T> {
    match flag {
        0 => Some(otherwise),
        _ => reader.narrow(),
    }
}

fn read_mask(reader: &mut Reader<'_>) -> Option<u32> {
    let low = reader.byte()?;
    let mut next = |sign: u8| match low & sign {
        0 => Some(0),
        _ => reader.byte().map(u32::from),
    };
    let (high, third) = (next(MORE)?, next(RARE)?);
    let mask = u32::from(low & !(MORE | RARE)) | high << 8 | third << 16;
    (mask & !(LOW | HIGH | THIRD) == 0).then_some(mask)
}

/// A type by its number in readdir(3).
pub(super) fn read_kind(reader: &mut Reader<'_>) -> Option<FileType> {
    let number = reader.byte().filter(|number| *number != 0)?;
    FileType::from_mode(u32::from(number & 0x0f) << 12).filter(|kind| kind.dirent_type() == number)
}
