//! The inode tree: attributes by number.
//!
//! Neighbours were mostly created together: same owner, same directory, similar times. Times are
//! coded against the previous record's, so that even a chmod of everything stays short.

use super::record::{Key, Kind, Record};
use crate::varint::{Reader, put, put_delta};
use holdfast_core::store::{InodeRecord, StoredSpace};
use holdfast_types::{FileFlags, FileType, Ino, Time, mode_bits};

/// Records of the inode tree.
#[derive(Debug)]
pub struct Inodes;

/// The attributes of an inode in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inode {
    /// Its attributes; `ino` is the key.
    pub record: InodeRecord,
    /// A directory's next cookie; 0 for others.
    pub next_cookie: u64,
    /// Flags of the store; the tree gives no bit a meaning.
    pub flags: u32,
}

/// Kind, permissions and owners are those of the previous record.
const SAME_OWNER: u8 = 1;
/// The usual number of links: two for a directory, one for all else.
const USUAL_LINKS: u8 = 1 << 1;
/// Size 0.
const EMPTY: u8 = 1 << 2;
/// The parent is that of the previous record.
const SAME_PARENT: u8 = 1 << 3;
/// The number is the previous one plus 1.
const NEXT: u8 = 1 << 4;
/// Extensions follow.
const EXTENDED: u8 = 1 << 5;
/// The first bit of the form of the times.
const TIMES_SHIFT: u8 = 6;

/// Extension: a device number.
const DEVICE: u64 = 1;
/// Extension: the next cookie.
const COOKIE: u64 = 1 << 1;
/// Extension: flags.
const FLAGS: u64 = 1 << 2;
/// Extension of no bytes: there may be extended attributes.
const XATTRS: u64 = 1 << 3;
/// Extension: the blocks of a regular file, where they do not follow from its size.
const SPACE: u64 = 1 << 4;

/// Extension: file flags and project.
const ATTRIBUTES: u64 = 1 << 5;

const KNOWN: u64 = DEVICE | COOKIE | FLAGS | XATTRS | SPACE | ATTRIBUTES;

/// The most blocks of a file.
const BLOCKS_MAX: u64 = 1 << 51;

/// The relation of the four times.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Times {
    /// All equal: fresh.
    Fresh = 0,
    /// Only ctime differs: attributes were changed.
    Changed = 1,
    /// mtime is ctime, atime is birth: content was written.
    Written = 2,
    /// Anything else.
    Any = 3,
}

impl Times {
    fn of(record: &InodeRecord) -> Self {
        let InodeRecord {
            atime,
            mtime,
            ctime,
            btime,
            ..
        } = *record;
        if (atime, mtime) == (btime, btime) {
            if ctime == btime {
                Self::Fresh
            } else {
                Self::Changed
            }
        } else if (mtime, atime) == (ctime, btime) {
            Self::Written
        } else {
            Self::Any
        }
    }
}

/// The fields that the next record is coded against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InodeContext {
    ino: u64,
    parent: u64,
    ctime: u64,
    btime: u64,
    mode: u16,
    uid: u32,
    gid: u32,
}

fn mode_of(record: &InodeRecord) -> u16 {
    mode_bits(record.kind, record.perm) as u16
}

fn kind_of(mode: u16) -> Option<FileType> {
    // `from_mode` returns a regular file for a missing kind; on disk that is a defect.
    FileType::from_mode(u32::from(mode)).filter(|&kind| kind as u16 == mode >> 12)
}

fn usual_links(kind: FileType) -> u32 {
    if kind.is_dir() { 2 } else { 1 }
}

impl Key for Ino {
    const LEN: usize = 8;

    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.to_le_bytes());
    }

    #[inline]
    fn read(bytes: &mut Reader<'_>) -> Option<Self> {
        bytes.long().map(Self)
    }
}

impl Record for Inodes {
    const KIND: Kind = Kind::Inodes;
    const PER_BLOCK: u8 = 32;
    const LEN_MAX: usize = 144;
    type Key = Ino;
    type Value<'a> = Inode;
    type Context = InodeContext;

    fn is_storable(key: Ino, inode: &Inode) -> bool {
        let record = &inode.record;
        let space = record.space.beside_size();
        let fits = |blocks| record.kind == FileType::Regular && is_space(blocks, record.size);
        record.ino == key && record.perm <= 0o7777 && space.is_none_or(fits)
    }

    #[inline]
    fn encode(context: &mut InodeContext, key: Ino, inode: &Inode, out: &mut Vec<u8>) {
        let record = &inode.record;
        let mode = mode_of(record);
        let owner = (mode, record.uid, record.gid);
        let times = Times::of(record);
        let usual = usual_links(record.kind);
        let extensions = extensions_of(inode);
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let same_owner = owner == (context.mode, context.uid, context.gid);
        let next = context.ino.checked_add(1) == Some(key.0);
        out.push(
            flag(same_owner, SAME_OWNER)
                | flag(record.nlink == usual, USUAL_LINKS)
                | flag(record.size == 0, EMPTY)
                | flag(record.parent.0 == context.parent, SAME_PARENT)
                | flag(next, NEXT)
                | flag(extensions != 0, EXTENDED)
                | (times as u8) << TIMES_SHIFT,
        );
        if !next {
            put(out, key.0.wrapping_sub(context.ino));
        }
        put_delta(out, record.ctime.0 as u64, context.ctime);
        if times != Times::Fresh {
            put_delta(out, record.btime.0 as u64, context.btime);
        }
        if times == Times::Any {
            put_delta(out, record.mtime.0 as u64, record.ctime.0 as u64);
            put_delta(out, record.atime.0 as u64, record.mtime.0 as u64);
        }
        if !same_owner {
            out.extend_from_slice(&mode.to_le_bytes());
            put(out, u64::from(record.uid));
            put(out, u64::from(record.gid));
        }
        if record.nlink != usual {
            put(out, u64::from(record.nlink));
        }
        if record.size != 0 {
            put(out, record.size);
        }
        if record.parent.0 != context.parent {
            put_delta(out, record.parent.0, context.parent);
        }
        if extensions != 0 {
            put_extensions(inode, extensions, out);
        }
        *context = InodeContext {
            ino: key.0,
            parent: record.parent.0,
            ctime: record.ctime.0 as u64,
            btime: record.btime.0 as u64,
            mode,
            uid: record.uid,
            gid: record.gid,
        };
    }

    #[inline]
    fn decode<'a>(context: &mut InodeContext, input: &mut Reader<'a>) -> Option<(Ino, Inode)> {
        let flags = input.byte()?;
        let step = if flags & NEXT == 0 {
            input.number()?
        } else {
            1
        };
        context.ino = context.ino.checked_add(step)?;
        let [atime, mtime, btime] = read_times(context, flags >> TIMES_SHIFT, input)?;
        if flags & SAME_OWNER == 0 {
            context.mode = input.short()?;
            context.uid = input.narrow()?;
            context.gid = input.narrow()?;
        }
        context.btime = btime;
        let kind = kind_of(context.mode)?;
        let nlink = if flags & USUAL_LINKS == 0 {
            input.narrow()?
        } else {
            usual_links(kind)
        };
        let size = if flags & EMPTY == 0 {
            input.number()?
        } else {
            0
        };
        if flags & SAME_PARENT == 0 {
            context.parent = input.delta(context.parent)?;
        }
        let more = match flags & EXTENDED {
            0 => Extensions::default(),
            _ => read_extensions(input)?,
        };
        let space = match (kind, more.space) {
            (FileType::Regular, None) => StoredSpace::AS_SIZE,
            (FileType::Regular, Some(blocks)) if is_space(blocks, size) => {
                StoredSpace::of(blocks, size)
            }
            (_, None) => StoredSpace::UNKNOWN,
            (_, Some(_)) => return None,
        };
        let record = InodeRecord {
            ino: Ino(context.ino),
            kind,
            perm: context.mode & 0o7777,
            nlink,
            uid: context.uid,
            gid: context.gid,
            rdev: more.rdev,
            size,
            atime: Time(atime as i64),
            mtime: Time(mtime as i64),
            ctime: Time(context.ctime as i64),
            btime: Time(btime as i64),
            parent: Ino(context.parent),
            xattrs: more.xattrs,
            space,
            flags: more.file_flags,
            project: more.project,
        };
        let inode = Inode {
            record,
            next_cookie: more.next_cookie,
            flags: more.flags,
        };
        Some((Ino(context.ino), inode))
    }

    #[inline]
    fn first_key(input: &mut Reader<'_>) -> Option<Ino> {
        let flags = input.byte()?;
        Some(Ino(if flags & NEXT == 0 {
            input.number()?
        } else {
            1
        }))
    }
}

/// Reads atime, mtime and btime; ctime is already in the context.
#[inline]
fn read_times(context: &mut InodeContext, form: u8, input: &mut Reader<'_>) -> Option<[u64; 3]> {
    context.ctime = input.delta(context.ctime)?;
    let ctime = context.ctime;
    if form == Times::Fresh as u8 {
        return Some([ctime; 3]);
    }
    let btime = input.delta(context.btime)?;
    if form == Times::Changed as u8 {
        return Some([btime; 3]);
    }
    if form == Times::Written as u8 {
        return Some([btime, ctime, btime]);
    }
    let mtime = input.delta(ctime)?;
    let atime = input.delta(mtime)?;
    Some([atime, mtime, btime])
}

/// Can a file of so many bytes have so many blocks, and must it say so?
fn is_space(blocks: u64, size: u64) -> bool {
    blocks <= BLOCKS_MAX && StoredSpace::of(blocks, size) != StoredSpace::AS_SIZE
}

fn extensions_of(inode: &Inode) -> u64 {
    let flag = |set: bool, flag: u64| if set { flag } else { 0 };
    flag(inode.record.rdev != 0, DEVICE)
        | flag(inode.next_cookie != 0, COOKIE)
        | flag(inode.flags != 0, FLAGS)
        | flag(inode.record.xattrs, XATTRS)
        | flag(inode.record.space.beside_size().is_some(), SPACE)
        | flag(has_attributes(&inode.record), ATTRIBUTES)
}

fn has_attributes(record: &InodeRecord) -> bool {
    !record.flags.is_empty() || record.project != 0
}

fn put_extensions(inode: &Inode, extensions: u64, out: &mut Vec<u8>) {
    put(out, extensions);
    if extensions & DEVICE != 0 {
        put(out, inode.record.rdev);
    }
    if extensions & COOKIE != 0 {
        put(out, inode.next_cookie);
    }
    if extensions & FLAGS != 0 {
        put(out, u64::from(inode.flags));
    }
    if let Some(blocks) = inode.record.space.beside_size() {
        put(out, blocks);
    }
    if extensions & ATTRIBUTES != 0 {
        put(out, u64::from(inode.record.flags.bits()));
        put(out, u64::from(inode.record.project));
    }
}

/// The fields that few inodes have.
#[derive(Default)]
struct Extensions {
    rdev: u64,
    next_cookie: u64,
    flags: u32,
    xattrs: bool,
    space: Option<u64>,
    file_flags: FileFlags,
    project: u32,
}

/// A record with the extension bit has an extension, and no extension is 0 but space.
fn read_extensions(input: &mut Reader<'_>) -> Option<Extensions> {
    let extensions = input.number()?;
    if extensions == 0 || extensions & !KNOWN != 0 {
        return None;
    }
    let mut one = |flag| {
        if extensions & flag == 0 {
            Some(0)
        } else {
            input.number().filter(|&value| value != 0)
        }
    };
    let mut found = Extensions {
        rdev: one(DEVICE)?,
        next_cookie: one(COOKIE)?,
        flags: u32::try_from(one(FLAGS)?).ok()?,
        xattrs: extensions & XATTRS != 0,
        ..Extensions::default()
    };
    if extensions & SPACE != 0 {
        found.space = Some(input.number()?);
    }
    if extensions & ATTRIBUTES != 0 {
        found.file_flags = FileFlags::from_bits_retain(input.narrow()?);
        found.project = input.narrow()?;
        if found.file_flags.is_empty() && found.project == 0 {
            return None;
        }
    }
    Some(found)
}
