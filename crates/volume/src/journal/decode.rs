//! Decodes batches. For any bytes the decoder returns records that lie inside them, or
//! [`Undecodable`]. It allocates nothing.

use super::context::{Context, Role, read_kind};
use super::opcode::{
    ALLOCATE, ATTRIBUTES, CHOICE, COLLAPSE, CREATE, CREATE_NAMED, DIFFERS, DIRECTORY, ENTER, FREE,
    INSERT, LAST, LEAVE, MAP, MAP_FILE, MAP_GENERATION, MAP_OFFSET, MAP_PLACE, NAME_COOKIE,
    NAME_DIR, NAME_INO, NAME_KIND, NAMED_COOKIE, NAMED_DIRECTORY, NAMED_INODE, NUMBERS, OPERATION,
    OVERWRITE, RANGE_FILE, RANGE_OFFSET, TRUNCATE, WRITE, XATTR, ZERO,
};
use super::record::{BatchHead, Map, Overwrite, Record};
use super::region::BLOCK;
use crate::varint::Reader;
use holdfast_core::store::{Change, Lsn};
use holdfast_types::Ino;

/// Why bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Undecodable {
    /// The bytes contradict themselves.
    Malformed,
    /// An operation of a later Holdfast.
    Unknown(u8),
}

/// Reads the head of a batch.
#[inline]
pub(super) fn head(reader: &mut Reader<'_>, context: &mut Context) -> Option<BatchHead> {
    let first = reader.number()?;
    context.lsn = Lsn(context.lsn.0.checked_add(first >> 1)?);
    if first & 1 != 0 {
        context.subvolume = reader.number()?;
    }
    Some(BatchHead {
        lsn: context.lsn,
        subvolume: context.subvolume,
    })
}

/// Reads the records of one batch.
#[derive(Debug)]
pub(super) struct Decoder<'a> {
    reader: Reader<'a>,
    // Further records of one compact record, in this order.
    queued: [Option<Record<'a>>; 2],
    last: bool,
}

impl<'a> Decoder<'a> {
    pub(super) const fn new(reader: Reader<'a>) -> Self {
        Self {
            reader,
            queued: [None, None],
            last: false,
        }
    }

    /// The bytes behind the batch, once it has ended.
    pub(super) const fn rest(&self) -> Reader<'a> {
        self.reader
    }

    /// The next record; `None` after the last.
    #[inline]
    pub(super) fn next(
        &mut self,
        context: &mut Context,
    ) -> Result<Option<Record<'a>>, Undecodable> {
        if let Some(record) = self.queued[0].take() {
            self.queued.swap(0, 1);
            return Ok(Some(record));
        }
        if self.last {
            return Ok(None);
        }
        let first = self.reader.byte().ok_or(Undecodable::Malformed)?;
        self.last = first & LAST != 0;
        let sign = Sign(first);
        let reader = &mut self.reader;
        let record = match sign.operation() {
            CREATE_NAMED => self.named(context, sign),
            CREATE..=FREE => change(reader, context, sign).map(Record::Change),
            MAP => map(reader, context, sign).map(Record::Map),
            NUMBERS => reader.number().map(|upto| Record::Numbers(Ino(upto))),
            OVERWRITE => overwrite(reader).map(Record::Overwrite),
            0 => None,
            unknown => return Err(Undecodable::Unknown(unknown)),
        };
        record.map(Some).ok_or(Undecodable::Malformed)
    }

    fn named(&mut self, context: &mut Context, sign: Sign) -> Option<Record<'a>> {
        let reader = &mut self.reader;
        let mask = sign.mask(reader)?;
        let directory = context.inode(reader, Role::Directory, mask & NAMED_DIRECTORY != 0)?;
        context.dir = directory.ino.0;
        let inode = context.inode(reader, Role::Created, mask & NAMED_INODE != 0)?;
        context.entered = delta(reader, mask & NAMED_COOKIE, context.entered.wrapping_add(1))?;
        let enter = Change::Enter {
            dir: directory.ino,
            name: reader.bytes()?,
            cookie: context.entered,
            ino: inode.ino,
            kind: inode.kind,
        };
        let after = Change::Attributes { inode: directory };
        self.queued = [Some(Record::Change(enter)), Some(Record::Change(after))];
        Some(Record::Change(Change::Create {
            inode,
            target: None,
        }))
    }
}

/// A number, which is `expected` unless the flag is set.
#[inline]
fn delta(reader: &mut Reader<'_>, flag: u8, expected: u64) -> Option<u64> {
    match flag {
        0 => Some(expected),
        _ => reader.delta(expected),
    }
}

/// A record's first byte.
#[derive(Clone, Copy)]
struct Sign(u8);

impl Sign {
    const fn operation(self) -> u8 {
        self.0 & OPERATION
    }

    const fn differs(self) -> bool {
        self.0 & DIFFERS != 0
    }

    const fn choice(self) -> bool {
        self.0 & CHOICE != 0
    }

    /// The byte of differences, if there is one.
    #[inline]
    fn mask(self, reader: &mut Reader<'_>) -> Option<u8> {
        if self.differs() {
            reader.byte()
        } else {
            Some(0)
        }
    }
}

/// A change of the core; the operation is one of them.
fn change<'a>(reader: &mut Reader<'a>, context: &mut Context, sign: Sign) -> Option<Change<'a>> {
    let (operation, flag) = (sign.operation(), u8::from(sign.differs()));
    Some(match operation {
        CREATE => Change::Create {
            inode: context.inode(reader, Role::Created, sign.differs())?,
            target: match sign.choice() {
                true => Some(reader.bytes()?),
                false => None,
            },
        },
        ATTRIBUTES => Change::Attributes {
            inode: context.inode(reader, Role::Changed, sign.differs())?,
        },
        DIRECTORY => Change::Attributes {
            inode: context.inode(reader, Role::Directory, sign.differs())?,
        },
        ENTER => enter(reader, context, sign)?,
        LEAVE => {
            let mask = sign.mask(reader)?;
            context.dir = delta(reader, mask & NAME_DIR, context.dir)?;
            context.left = delta(reader, mask & NAME_COOKIE, context.left.wrapping_add(1))?;
            Change::Leave {
                dir: Ino(context.dir),
                name: reader.bytes()?,
                cookie: context.left,
            }
        }
        WRITE => {
            let (ino, offset) = place(reader, context, sign)?;
            let data = reader.bytes()?;
            context.offset = offset.wrapping_add(data.len() as u64);
            Change::Write { ino, offset, data }
        }
        TRUNCATE => {
            let (ino, size) = place(reader, context, sign)?;
            Change::Truncate { ino, size }
        }
        XATTR => Change::Xattr {
            ino: Ino(delta(reader, flag, context.created.ino.0)?),
            name: reader.bytes()?,
            value: match sign.choice() {
                true => None,
                false => Some(reader.bytes()?),
            },
        },
        FREE => {
            context.freed = delta(reader, flag, context.freed.wrapping_add(1))?;
            let ino = Ino(context.freed);
            Change::Free { ino }
        }
        _ => {
            let (ino, offset) = place(reader, context, sign)?;
            let len = reader.number()?;
            context.offset = offset.wrapping_add(len);
            match operation {
                ALLOCATE => Change::Allocate { ino, offset, len },
                COLLAPSE => Change::Collapse { ino, offset, len },
                INSERT => Change::Insert { ino, offset, len },
                ZERO => Change::Zero {
                    ino,
                    offset,
                    len,
                    keep: sign.choice(),
                },
                _ => return None,
            }
        }
    })
}

fn enter<'a>(reader: &mut Reader<'a>, context: &mut Context, sign: Sign) -> Option<Change<'a>> {
    let mask = sign.mask(reader)?;
    context.dir = delta(reader, mask & NAME_DIR, context.dir)?;
    context.entered = delta(reader, mask & NAME_COOKIE, context.entered.wrapping_add(1))?;
    let ino = Ino(delta(reader, mask & NAME_INO, context.created.ino.0)?);
    let kind = match mask & NAME_KIND {
        0 => context.created.kind,
        _ => read_kind(reader)?,
    };
    Some(Change::Enter {
        dir: Ino(context.dir),
        name: reader.bytes()?,
        cookie: context.entered,
        ino,
        kind,
    })
}

fn place(reader: &mut Reader<'_>, context: &mut Context, sign: Sign) -> Option<(Ino, u64)> {
    let mask = sign.mask(reader)?;
    if mask & RANGE_FILE != 0 {
        context.file = reader.delta(context.file)?;
        context.offset = 0;
    }
    context.offset = delta(reader, mask & RANGE_OFFSET, context.offset)?;
    Some((Ino(context.file), context.offset))
}

fn overwrite<'a>(reader: &mut Reader<'a>) -> Option<Overwrite<'a>> {
    let (block, from, data) = (reader.number()?, reader.narrow()?, reader.bytes()?);
    let end = data.len().checked_add(from)?;
    (end <= BLOCK).then_some(Overwrite { block, from, data })
}

fn map(reader: &mut Reader<'_>, context: &mut Context, sign: Sign) -> Option<Map> {
    let mask = sign.mask(reader)?;
    if mask & MAP_FILE != 0 {
        context.mapped = reader.delta(context.mapped)?;
        context.block = 0;
    }
    let offset = delta(reader, mask & MAP_OFFSET, context.block)?;
    let start = delta(reader, mask & MAP_PLACE, context.place)?;
    context.generation = delta(reader, mask & MAP_GENERATION, context.generation)?;
    let blocks = reader.number()?;
    context.block = offset.wrapping_add(blocks);
    context.place = start.wrapping_add(blocks);
    Some(Map {
        ino: Ino(context.mapped),
        offset,
        start,
        blocks,
        generation: context.generation,
        unwritten: sign.choice(),
    })
}
