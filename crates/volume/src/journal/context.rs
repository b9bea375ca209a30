//! What the next record of a frame is expected to say, and inodes coded as what differs from that.
//!
//! *Invariant.* Encoder and decoder update their contexts by the same calls in the same order, so
//! that both expect the same. A frame begins with [`Context::new`]: it needs no other.

use super::varint::{Malformed, Reader, put, put_delta};
use holdfast_core::store::{InodeRecord, Lsn, StoredSpace};
use holdfast_types::{FileFlags, FileType, Ino, Time};

/// The last values of each field that records have.
#[derive(Clone, Debug)]
pub(super) struct Context {
    /// Of the last batch.
    pub(super) lsn: Lsn,
    /// Of the last batch.
    pub(super) subvolume: u64,
    /// The last time that something changed.
    pub(super) time: Time,
    /// The last inode created.
    pub(super) created: InodeRecord,
    /// The last attributes of anything but a directory.
    changed: InodeRecord,
    /// The last attributes of a directory.
    directory: InodeRecord,
    /// What the last attributes of a directory added to its size.
    step: u64,
    /// The directory of the last name.
    pub(super) dir: u64,
    /// The cookie of the last name that appeared.
    pub(super) entered: u64,
    /// The cookie of the last name that went.
    pub(super) left: u64,
    /// The last inode freed.
    pub(super) freed: u64,
    /// The file whose content changed last.
    pub(super) file: u64,
    /// The byte after that change.
    pub(super) offset: u64,
    /// The file of the last map.
    pub(super) mapped: u64,
    /// The file block after it.
    pub(super) block: u64,
    /// The device block after it.
    pub(super) place: u64,
    /// Its birth.
    pub(super) birth: u64,
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
    /// What the first record of a frame is compared with.
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
            birth: 0,
        }
    }
}

/// What an inode record is for: it decides what is expected.
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
// The low byte's signs that a second byte, and a third, follow.
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
// It says all there is to say: the one of the reference is the other.
const XATTRS: u32 = 1 << 15;
// Third byte.
const FLAGS: u32 = 1 << 16;
const PROJECT: u32 = 1 << 17;
const LOW: u32 = INO | CTIME | MTIME | ATIME | SIZE | NLINK;
const HIGH: u32 = KIND | PERM | UID | GID | RDEV | PARENT | BTIME | XATTRS;
const THIRD: u32 = FLAGS | PROJECT;

/// The fields in which an inode is not what was expected.
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
            // Names are mostly created where the last one was touched.
            Role::Created => self.dir,
            Role::Changed | Role::Directory => self.reference(role).parent.0,
        }
    }

    /// In what `inode` surprises.
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

    /// Writes those differences, and expects more of the same.
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
        let time = |buf: &mut Vec<u8>, time: Time, from: Time| {
            put_delta(buf, time.0.cast_unsigned(), from.0.cast_unsigned());
        };
        if mask & INO != 0 {
            put_delta(buf, inode.ino.0, self.expected_ino(role));
        }
        if mask & CTIME != 0 {
            time(buf, inode.ctime, self.time);
        }
        if mask & MTIME != 0 {
            time(buf, inode.mtime, last.mtime);
        }
        if mask & ATIME != 0 {
            time(buf, inode.atime, last.atime);
        }
        if mask & SIZE != 0 {
            put_delta(buf, inode.size, self.expected_size(role));
        }
        if mask & NLINK != 0 {
            put(buf, u64::from(inode.nlink));
        }
        if mask & KIND != 0 {
            buf.push(inode.kind.dirent_type());
        }
        if mask & PERM != 0 {
            put(buf, u64::from(inode.perm));
        }
        if mask & UID != 0 {
            put(buf, u64::from(inode.uid));
        }
        if mask & GID != 0 {
            put(buf, u64::from(inode.gid));
        }
        if mask & RDEV != 0 {
            put(buf, inode.rdev);
        }
        if mask & PARENT != 0 {
            put_delta(buf, inode.parent.0, self.expected_parent(role));
        }
        if mask & BTIME != 0 {
            time(buf, inode.btime, last.btime);
        }
        if mask & FLAGS != 0 {
            put(buf, u64::from(inode.flags.bits()));
        }
        if mask & PROJECT != 0 {
            put(buf, u64::from(inode.project));
        }
    }

    /// Reads what [`put_inode`](Self::put_inode) wrote. `differs`: were there any differences?
    #[inline]
    pub(super) fn inode(
        &mut self,
        reader: &mut Reader<'_>,
        role: Role,
        differs: bool,
    ) -> Result<InodeRecord, Malformed> {
        let mask = if differs { read_mask(reader)? } else { 0 };
        let inode = self.fields(reader, role, mask)?;
        self.remember(role, &inode);
        Ok(inode)
    }

    fn fields(
        &self,
        reader: &mut Reader<'_>,
        role: Role,
        mask: u32,
    ) -> Result<InodeRecord, Malformed> {
        let mut inode = self.reference(role).clone();
        let last = self.reference(role);
        let time = |reader: &mut Reader<'_>, flag: u32, from: Time, otherwise: Time| {
            if mask & flag == 0 {
                return Ok(otherwise);
            }
            let time = reader.delta(from.0.cast_unsigned())?;
            Ok(Time(time.cast_signed()))
        };
        inode.ino = Ino(self.expected_ino(role));
        if mask & INO != 0 {
            inode.ino = Ino(reader.delta(inode.ino.0)?);
        }
        inode.ctime = time(reader, CTIME, self.time, self.time)?;
        let (atime, btime) = match role {
            Role::Created => (inode.ctime, inode.ctime),
            Role::Changed | Role::Directory => (last.atime, last.btime),
        };
        inode.mtime = time(reader, MTIME, last.mtime, inode.ctime)?;
        inode.atime = time(reader, ATIME, last.atime, atime)?;
        inode.size = self.expected_size(role);
        if mask & SIZE != 0 {
            inode.size = reader.delta(inode.size)?;
        }
        if mask & NLINK != 0 {
            inode.nlink = reader.narrow()?;
        }
        if mask & KIND != 0 {
            inode.kind = read_kind(reader)?;
        }
        if mask & PERM != 0 {
            inode.perm = reader.narrow()?;
        }
        if mask & UID != 0 {
            inode.uid = reader.narrow()?;
        }
        if mask & GID != 0 {
            inode.gid = reader.narrow()?;
        }
        if mask & RDEV != 0 {
            inode.rdev = reader.varint()?;
        }
        inode.parent = Ino(self.expected_parent(role));
        if mask & PARENT != 0 {
            inode.parent = Ino(reader.delta(inode.parent.0)?);
        }
        inode.btime = time(reader, BTIME, last.btime, btime)?;
        inode.xattrs ^= mask & XATTRS != 0;
        if mask & FLAGS != 0 {
            inode.flags = FileFlags::from_bits_retain(reader.narrow()?);
        }
        if mask & PROJECT != 0 {
            inode.project = reader.narrow()?;
        }
        Ok(inode)
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

fn read_mask(reader: &mut Reader<'_>) -> Result<u32, Malformed> {
    let low = reader.byte()?;
    let mut next = |sign: u8| match low & sign {
        0 => Ok(0),
        _ => reader.byte().map(u32::from),
    };
    let (high, third) = (next(MORE)?, next(RARE)?);
    let mask = u32::from(low & !(MORE | RARE)) | high << 8 | third << 16;
    if mask & !(LOW | HIGH | THIRD) != 0 {
        return Err(Malformed);
    }
    Ok(mask)
}

/// A type by the number that readdir(3) has for it.
pub(super) fn read_kind(reader: &mut Reader<'_>) -> Result<FileType, Malformed> {
    match reader.byte()? {
        0 => Err(Malformed),
        number => FileType::from_mode(u32::from(number & 0x0f) << 12)
            .filter(|kind| kind.dirent_type() == number)
            .ok_or(Malformed),
    }
}
