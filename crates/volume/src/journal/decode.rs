//! Bytes to batches: whatever the bytes are, a decoder answers records that lie inside them, or
//! [`Undecodable`]; it allocates nothing.

use super::context::{Context, Role, read_kind};
use super::opcode::{
    ALLOCATE, ATTRIBUTES, CHOICE, COLLAPSE, CREATE, CREATE_NAMED, DIFFERS, DIRECTORY, ENTER, FREE,
    INSERT, LAST, LEAVE, MAP, MAP_BIRTH, MAP_FILE, MAP_OFFSET, MAP_PLACE, NAME_COOKIE, NAME_DIR,
    NAME_INO, NAME_KIND, NAMED_COOKIE, NAMED_DIRECTORY, NAMED_INODE, NUMBERS, OPERATION, OVERWRITE,
    RANGE_FILE, RANGE_OFFSET, TRUNCATE, WRITE, XATTR, ZERO,
};
use super::record::{BatchHead, Map, Overwrite, Record};
use super::region::BLOCK;
use super::varint::{Malformed, Reader};
use holdfast_core::store::{Change, Lsn};
use holdfast_types::Ino;

/// Why bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Undecodable {
    /// They contradict themselves.
    Malformed,
    /// This operation is not known here: a later Holdfast has it.
    Unknown(u8),
}

impl From<Malformed> for Undecodable {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

/// Reads what stands before a batch.
#[inline]
pub(super) fn head(reader: &mut Reader<'_>, context: &mut Context) -> Result<BatchHead, Malformed> {
    let first = reader.varint()?;
    let lsn = context.lsn.0.checked_add(first >> 1).ok_or(Malformed)?;
    context.lsn = Lsn(lsn);
    if first & 1 != 0 {
        context.subvolume = reader.varint()?;
    }
    Ok(BatchHead {
        lsn: context.lsn,
        subvolume: context.subvolume,
    })
}

/// Reads the records of one batch.
#[derive(Debug)]
pub(super) struct Decoder<'a> {
    reader: Reader<'a>,
    // What one compact record still has to say, in this order.
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

    /// What follows the batch, once it has ended.
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
        let first = self.reader.byte()?;
        self.last = first & LAST != 0;
        let sign = Sign(first);
        Ok(Some(match sign.operation() {
            CREATE_NAMED => self.named(context, sign)?,
            MAP => Record::Map(map(&mut self.reader, context, sign)?),
            NUMBERS => Record::Numbers(Ino(self.reader.varint()?)),
            OVERWRITE => Record::Overwrite(overwrite(&mut self.reader)?),
            _ => Record::Change(change(&mut self.reader, context, sign)?),
        }))
    }

    fn named(&mut self, context: &mut Context, sign: Sign) -> Result<Record<'a>, Malformed> {
        let reader = &mut self.reader;
        let mask = sign.mask(reader)?;
        let directory = context.inode(reader, Role::Directory, mask & NAMED_DIRECTORY != 0)?;
        context.dir = directory.ino.0;
        let inode = context.inode(reader, Role::Created, mask & NAMED_INODE != 0)?;
        let mut cookie = context.entered.wrapping_add(1);
        if mask & NAMED_COOKIE != 0 {
            cookie = reader.delta(cookie)?;
        }
        context.entered = cookie;
        let enter = Change::Enter {
            dir: directory.ino,
            name: reader.bytes()?,
            cookie,
            ino: inode.ino,
            kind: inode.kind,
        };
        let after = Change::Attributes { inode: directory };
        self.queued = [Some(Record::Change(enter)), Some(Record::Change(after))];
        Ok(Record::Change(Change::Create {
            inode,
            target: None,
        }))
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
    fn mask(self, reader: &mut Reader<'_>) -> Result<u8, Malformed> {
        if self.differs() { reader.byte() } else { Ok(0) }
    }
}

fn change<'a>(
    reader: &mut Reader<'a>,
    context: &mut Context,
    sign: Sign,
) -> Result<Change<'a>, Undecodable> {
    Ok(match sign.operation() {
        CREATE => Change::Create {
            inode: context.inode(reader, Role::Created, sign.differs())?,
            target: sign.choice().then(|| reader.bytes()).transpose()?,
        },
        ATTRIBUTES => Change::Attributes {
            inode: context.inode(reader, Role::Changed, sign.differs())?,
        },
        DIRECTORY => Change::Attributes {
            inode: context.inode(reader, Role::Directory, sign.differs())?,
        },
        ENTER => enter(reader, context, sign)?,
        LEAVE => leave(reader, context, sign)?,
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
        ZERO => {
            let (ino, offset, len) = range(reader, context, sign)?;
            Change::Zero {
                ino,
                offset,
                len,
                keep: sign.choice(),
            }
        }
        ALLOCATE => {
            let (ino, offset, len) = range(reader, context, sign)?;
            Change::Allocate { ino, offset, len }
        }
        COLLAPSE => {
            let (ino, offset, len) = range(reader, context, sign)?;
            Change::Collapse { ino, offset, len }
        }
        INSERT => {
            let (ino, offset, len) = range(reader, context, sign)?;
            Change::Insert { ino, offset, len }
        }
        XATTR => {
            let mut ino = context.created.ino;
            if sign.differs() {
                ino = Ino(reader.delta(ino.0)?);
            }
            Change::Xattr {
                ino,
                name: reader.bytes()?,
                value: (!sign.choice()).then(|| reader.bytes()).transpose()?,
            }
        }
        FREE => {
            let mut ino = context.freed.wrapping_add(1);
            if sign.differs() {
                ino = reader.delta(ino)?;
            }
            context.freed = ino;
            Change::Free { ino: Ino(ino) }
        }
        0 => return Err(Undecodable::Malformed),
        unknown => return Err(Undecodable::Unknown(unknown)),
    })
}

fn enter<'a>(
    reader: &mut Reader<'a>,
    context: &mut Context,
    sign: Sign,
) -> Result<Change<'a>, Malformed> {
    let mask = sign.mask(reader)?;
    if mask & NAME_DIR != 0 {
        context.dir = reader.delta(context.dir)?;
    }
    let mut cookie = context.entered.wrapping_add(1);
    if mask & NAME_COOKIE != 0 {
        cookie = reader.delta(cookie)?;
    }
    context.entered = cookie;
    let (mut ino, mut kind) = (context.created.ino, context.created.kind);
    if mask & NAME_INO != 0 {
        ino = Ino(reader.delta(ino.0)?);
    }
    if mask & NAME_KIND != 0 {
        kind = read_kind(reader)?;
    }
    Ok(Change::Enter {
        dir: Ino(context.dir),
        name: reader.bytes()?,
        cookie,
        ino,
        kind,
    })
}

fn leave<'a>(
    reader: &mut Reader<'a>,
    context: &mut Context,
    sign: Sign,
) -> Result<Change<'a>, Malformed> {
    let mask = sign.mask(reader)?;
    if mask & NAME_DIR != 0 {
        context.dir = reader.delta(context.dir)?;
    }
    let mut cookie = context.left.wrapping_add(1);
    if mask & NAME_COOKIE != 0 {
        cookie = reader.delta(cookie)?;
    }
    context.left = cookie;
    Ok(Change::Leave {
        dir: Ino(context.dir),
        name: reader.bytes()?,
        cookie,
    })
}

fn place(
    reader: &mut Reader<'_>,
    context: &mut Context,
    sign: Sign,
) -> Result<(Ino, u64), Malformed> {
    let mask = sign.mask(reader)?;
    if mask & RANGE_FILE != 0 {
        context.file = reader.delta(context.file)?;
        context.offset = 0;
    }
    if mask & RANGE_OFFSET != 0 {
        context.offset = reader.delta(context.offset)?;
    }
    Ok((Ino(context.file), context.offset))
}

fn range(
    reader: &mut Reader<'_>,
    context: &mut Context,
    sign: Sign,
) -> Result<(Ino, u64, u64), Malformed> {
    let (ino, offset) = place(reader, context, sign)?;
    let len = reader.varint()?;
    context.offset = offset.wrapping_add(len);
    Ok((ino, offset, len))
}

fn overwrite<'a>(reader: &mut Reader<'a>) -> Result<Overwrite<'a>, Malformed> {
    let (block, from, data) = (reader.varint()?, reader.narrow()?, reader.bytes()?);
    let end = data.len().checked_add(from).ok_or(Malformed)?;
    match end <= BLOCK {
        true => Ok(Overwrite { block, from, data }),
        false => Err(Malformed),
    }
}

fn map(reader: &mut Reader<'_>, context: &mut Context, sign: Sign) -> Result<Map, Malformed> {
    let mask = sign.mask(reader)?;
    if mask & MAP_FILE != 0 {
        context.mapped = reader.delta(context.mapped)?;
        context.block = 0;
    }
    let (mut offset, mut start) = (context.block, context.place);
    if mask & MAP_OFFSET != 0 {
        offset = reader.delta(offset)?;
    }
    if mask & MAP_PLACE != 0 {
        start = reader.delta(start)?;
    }
    if mask & MAP_BIRTH != 0 {
        context.birth = reader.delta(context.birth)?;
    }
    let blocks = reader.varint()?;
    context.block = offset.wrapping_add(blocks);
    context.place = start.wrapping_add(blocks);
    Ok(Map {
        ino: Ino(context.mapped),
        offset,
        start,
        blocks,
        birth: context.birth,
        unwritten: sign.choice(),
    })
}
