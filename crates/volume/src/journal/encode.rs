//! Encodes batches.

use super::context::{Context, Role};
use super::opcode::{
    ALLOCATE, ATTRIBUTES, CHOICE, COLLAPSE, CREATE, CREATE_NAMED, DIFFERS, DIRECTORY, ENTER, FREE,
    HEAD_MAX, INSERT, LAST, LEAVE, MAP, MAP_FILE, MAP_GENERATION, MAP_OFFSET, MAP_PLACE,
    NAME_COOKIE, NAME_DIR, NAME_INO, NAME_KIND, NAMED_COOKIE, NAMED_DIRECTORY, NAMED_INODE,
    NUMBERS, OVERWRITE, RANGE_FILE, RANGE_OFFSET, RECORD_MAX, TRUNCATE, WRITE, XATTR, ZERO,
};
use super::record::{AsRecord, BatchHead, Map, RecordRef};
use crate::varint::{put, put_bytes, put_delta};
use holdfast_core::store::{Change, InodeRecord};
use holdfast_types::{FileType, Ino};

/// The most bytes of a batch of these records, in any context.
pub(super) fn longest<R: AsRecord>(records: &[R]) -> usize {
    let bytes = |record: &R| match record.as_record() {
        RecordRef::Change(Change::Enter { name, .. } | Change::Leave { name, .. }) => name.len(),
        RecordRef::Change(Change::Write { data, .. }) => data.len(),
        RecordRef::Change(Change::Create { target, .. }) => target.map_or(0, <[u8]>::len),
        RecordRef::Change(Change::Xattr { name, value, .. }) => {
            name.len() + value.map_or(0, <[u8]>::len)
        }
        RecordRef::Overwrite(bytes) => bytes.data.len(),
        _ => 0,
    };
    let records = records.iter().map(|record| RECORD_MAX + bytes(record));
    HEAD_MAX + records.sum::<usize>()
}

/// Appends a batch, which is not empty.
pub(super) fn batch<R: AsRecord>(
    buf: &mut Vec<u8>,
    context: &mut Context,
    head: BatchHead,
    records: &[R],
) {
    debug_assert!(head.lsn >= context.lsn && head.lsn.0 < 1 << 63);
    let moved = head.subvolume != context.subvolume;
    let passed = head.lsn.0 - context.lsn.0;
    put(buf, passed << 1 | u64::from(moved));
    if moved {
        put(buf, head.subvolume);
        context.subvolume = head.subvolume;
    }
    context.lsn = head.lsn;
    let mut last = buf.len();
    let mut rest = records;
    while let [first, after @ ..] = rest {
        last = buf.len();
        if let Some(named) = Named::of(rest) {
            named.put(buf, context);
            rest = &rest[3..];
            continue;
        }
        match first.as_record() {
            RecordRef::Change(change) => put_change(buf, context, change),
            RecordRef::Map(map) => put_map(buf, context, map),
            RecordRef::Numbers(upto) => {
                buf.push(NUMBERS);
                put(buf, upto.0);
            }
            RecordRef::Overwrite(bytes) => {
                buf.push(OVERWRITE);
                put(buf, bytes.block);
                put(buf, bytes.from as u64);
                put_bytes(buf, bytes.data);
            }
        }
        rest = after;
    }
    buf[last] |= LAST;
}

/// The most common batch: a new inode, its name, and the directory's attributes.
struct Named<'a> {
    inode: &'a InodeRecord,
    name: &'a [u8],
    cookie: u64,
    directory: &'a InodeRecord,
}

impl<'a> Named<'a> {
    #[inline]
    fn of<R: AsRecord>(records: &'a [R]) -> Option<Self> {
        let [first, second, third, ..] = records else {
            return None;
        };
        let (
            RecordRef::Change(Change::Create {
                inode,
                target: None,
            }),
            RecordRef::Change(&Change::Enter {
                dir,
                name,
                cookie,
                ino,
                kind,
            }),
            RecordRef::Change(Change::Attributes { inode: directory }),
        ) = (first.as_record(), second.as_record(), third.as_record())
        else {
            return None;
        };
        let one = ino == inode.ino && kind == inode.kind;
        (one && dir == directory.ino && directory.kind.is_dir()).then_some(Self {
            inode,
            name,
            cookie,
            directory,
        })
    }

    fn put(&self, buf: &mut Vec<u8>, context: &mut Context) {
        let start = buf.len();
        let mut mask = 0;
        buf.extend_from_slice(&[CREATE_NAMED, 0]);
        let differences = context.differences(Role::Directory, self.directory);
        if !differences.none() {
            mask |= NAMED_DIRECTORY;
        }
        context.put_inode(buf, Role::Directory, self.directory, differences);
        context.dir = self.directory.ino.0;
        let differences = context.differences(Role::Created, self.inode);
        if !differences.none() {
            mask |= NAMED_INODE;
        }
        context.put_inode(buf, Role::Created, self.inode, differences);
        let expected = context.entered.wrapping_add(1);
        mask |= differ(buf, NAMED_COOKIE, self.cookie, expected);
        context.entered = self.cookie;
        seal(buf, start, mask);
        put_bytes(buf, self.name);
    }
}

/// Writes a number that is not the expected one; returns its flag then, and otherwise 0.
#[inline]
fn differ(buf: &mut Vec<u8>, flag: u8, value: u64, expected: u64) -> u8 {
    if value == expected {
        return 0;
    }
    put_delta(buf, value, expected);
    flag
}

/// Fills in the second byte of the record that begins at `start`. Without differences, the byte is
/// dropped: it is the last one so far.
fn seal(buf: &mut Vec<u8>, start: usize, mask: u8) {
    if mask == 0 {
        buf.pop();
    } else {
        buf[start] |= DIFFERS;
        buf[start + 1] = mask;
    }
}

fn put_change(buf: &mut Vec<u8>, context: &mut Context, change: &Change<'_>) {
    match *change {
        Change::Create { ref inode, target } => {
            put_inode(buf, context, CREATE, Role::Created, inode, target.is_some());
            if let Some(target) = target {
                put_bytes(buf, target);
            }
        }
        Change::Attributes { ref inode } => {
            let role = Role::of_attributes(inode.kind);
            let operation = if role == Role::Directory {
                DIRECTORY
            } else {
                ATTRIBUTES
            };
            put_inode(buf, context, operation, role, inode, false);
        }
        Change::Enter {
            dir,
            name,
            cookie,
            ino,
            kind,
        } => put_enter(buf, context, dir, cookie, (ino, kind), name),
        Change::Leave { dir, name, cookie } => put_leave(buf, context, dir, cookie, name),
        Change::Write { ino, offset, data } => {
            put_place(buf, context, WRITE, ino, offset);
            put_bytes(buf, data);
            context.offset = offset.wrapping_add(data.len() as u64);
        }
        Change::Truncate { ino, size } => put_place(buf, context, TRUNCATE, ino, size),
        Change::Zero {
            ino,
            offset,
            len,
            keep,
        } => {
            let operation = if keep { ZERO | CHOICE } else { ZERO };
            put_range(buf, context, operation, (ino, offset, len));
        }
        Change::Allocate { ino, offset, len } => {
            put_range(buf, context, ALLOCATE, (ino, offset, len));
        }
        Change::Collapse { ino, offset, len } => {
            put_range(buf, context, COLLAPSE, (ino, offset, len));
        }
        Change::Insert { ino, offset, len } => {
            put_range(buf, context, INSERT, (ino, offset, len));
        }
        Change::Xattr { ino, name, value } => put_xattr(buf, context, ino, name, value),
        Change::Free { ino } => {
            let start = buf.len();
            buf.push(FREE);
            buf[start] |= differ(buf, DIFFERS, ino.0, context.freed.wrapping_add(1));
            context.freed = ino.0;
        }
    }
}

fn put_inode(
    buf: &mut Vec<u8>,
    context: &mut Context,
    operation: u8,
    role: Role,
    inode: &InodeRecord,
    choice: bool,
) {
    let differences = context.differences(role, inode);
    let differs = if differences.none() { 0 } else { DIFFERS };
    buf.push(operation | differs | if choice { CHOICE } else { 0 });
    context.put_inode(buf, role, inode, differences);
}

fn put_enter(
    buf: &mut Vec<u8>,
    context: &mut Context,
    dir: Ino,
    cookie: u64,
    (ino, kind): (Ino, FileType),
    name: &[u8],
) {
    let start = buf.len();
    buf.extend_from_slice(&[ENTER, 0]);
    let mut mask = differ(buf, NAME_DIR, dir.0, context.dir);
    mask |= differ(buf, NAME_COOKIE, cookie, context.entered.wrapping_add(1));
    mask |= differ(buf, NAME_INO, ino.0, context.created.ino.0);
    if kind != context.created.kind {
        mask |= NAME_KIND;
        buf.push(kind.dirent_type());
    }
    (context.dir, context.entered) = (dir.0, cookie);
    seal(buf, start, mask);
    put_bytes(buf, name);
}

fn put_leave(buf: &mut Vec<u8>, context: &mut Context, dir: Ino, cookie: u64, name: &[u8]) {
    let start = buf.len();
    buf.extend_from_slice(&[LEAVE, 0]);
    let mut mask = differ(buf, NAME_DIR, dir.0, context.dir);
    mask |= differ(buf, NAME_COOKIE, cookie, context.left.wrapping_add(1));
    (context.dir, context.left) = (dir.0, cookie);
    seal(buf, start, mask);
    put_bytes(buf, name);
}

/// A file and a byte of it; a change is expected to begin where the last one ended.
fn put_place(buf: &mut Vec<u8>, context: &mut Context, operation: u8, ino: Ino, offset: u64) {
    let start = buf.len();
    let mut mask = 0;
    buf.extend_from_slice(&[operation, 0]);
    if ino.0 != context.file {
        mask |= RANGE_FILE;
        put_delta(buf, ino.0, context.file);
        context.file = ino.0;
        context.offset = 0;
    }
    mask |= differ(buf, RANGE_OFFSET, offset, context.offset);
    context.offset = offset;
    seal(buf, start, mask);
}

fn put_range(
    buf: &mut Vec<u8>,
    context: &mut Context,
    operation: u8,
    (ino, offset, len): (Ino, u64, u64),
) {
    put_place(buf, context, operation, ino, offset);
    put(buf, len);
    context.offset = offset.wrapping_add(len);
}

fn put_xattr(
    buf: &mut Vec<u8>,
    context: &mut Context,
    ino: Ino,
    name: &[u8],
    value: Option<&[u8]>,
) {
    let start = buf.len();
    buf.push(XATTR);
    if value.is_none() {
        buf[start] |= CHOICE;
    }
    buf[start] |= differ(buf, DIFFERS, ino.0, context.created.ino.0);
    put_bytes(buf, name);
    if let Some(value) = value {
        put_bytes(buf, value);
    }
}

fn put_map(buf: &mut Vec<u8>, context: &mut Context, map: &Map) {
    let start = buf.len();
    let mut mask = 0;
    buf.extend_from_slice(&[if map.unwritten { MAP | CHOICE } else { MAP }, 0]);
    if map.ino.0 != context.mapped {
        mask |= MAP_FILE;
        put_delta(buf, map.ino.0, context.mapped);
        context.mapped = map.ino.0;
        context.block = 0;
    }
    mask |= differ(buf, MAP_OFFSET, map.offset, context.block);
    mask |= differ(buf, MAP_PLACE, map.start, context.place);
    mask |= differ(buf, MAP_GENERATION, map.generation, context.generation);
    context.block = map.offset.wrapping_add(map.blocks);
    context.place = map.start.wrapping_add(map.blocks);
    context.generation = map.generation;
    seal(buf, start, mask);
    put(buf, map.blocks);
}
