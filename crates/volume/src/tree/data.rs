//! The data tree: the content of inodes, by inode number, kind and offset.
//!
//! Small content is stored here, other content as extents; extended attributes beside it.

use super::pointer::ADDRESS_BITS;
use super::record::{Key, Kind, Record};
use crate::space;
use crate::varint::{Reader, put, put_delta};
use holdfast_types::{Ino, NAME_MAX};

/// Records of the data tree.
#[derive(Debug)]
pub struct Contents;

/// The kind of a record of the data tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum DataKind {
    /// Bytes of a small file, or the target of a symbolic link.
    Inline = 0,
    /// A run of blocks.
    Extent = 1,
    /// An extended attribute.
    Xattr = 2,
}

/// The key of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataKey {
    /// The inode.
    pub ino: Ino,
    /// The kind.
    pub kind: DataKind,
    /// Inline: 0. Extent: offset in the file, in blocks. Extended attribute: [`DataKey::xattr`].
    pub offset: u64,
}

impl DataKey {
    /// The first key of a kind.
    #[must_use]
    pub fn first(ino: Ino, kind: DataKind) -> Self {
        Self {
            ino,
            kind,
            offset: 0,
        }
    }

    /// The key of an extended attribute: the hash of its name, then a number that distinguishes
    /// names with equal hashes.
    #[must_use]
    pub fn xattr(ino: Ino, hash: u32, ordinal: u32) -> Self {
        let offset = u64::from(hash) << 32 | u64::from(ordinal);
        Self {
            ino,
            kind: DataKind::Xattr,
            offset,
        }
    }
}

/// A run of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First block on the device; the whole run lies below 2^48.
    pub block: u64,
    /// Length in blocks; not 0.
    pub blocks: u32,
    /// The generation that allocated it.
    pub generation: u64,
    /// Reads as zeros: allocated, never written.
    pub unwritten: bool,
    /// May have other owners (never in version 1).
    pub shared: bool,
}

/// The value of an extended attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XattrValue<'a> {
    /// The bytes: at most [`INLINE_MAX`].
    Inline(&'a [u8]),
    /// In blocks of its own.
    External {
        /// The place of the value.
        extent: Extent,
        /// Length in bytes.
        len: u32,
    },
}

/// Content, or its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data<'a> {
    /// The bytes: 1 to [`INLINE_MAX`].
    Inline(&'a [u8]),
    /// A run of blocks.
    Extent(Extent),
    /// An extended attribute.
    Xattr {
        /// Its full name: 1 to 255 bytes.
        name: &'a [u8],
        /// Its value.
        value: XattrValue<'a>,
    },
}

/// The most inline bytes of one record.
pub const INLINE_MAX: usize = 4096;
/// Files end below this, in blocks: byte offsets have 63 bits.
const FILE_BLOCKS_END: u64 = 1 << 51;

/// The low bits of the flag byte: the kind.
const KIND: u8 = 0b11;
/// Inode and kind are those of the previous record.
const SAME: u8 = 1 << 2;
/// Extent, external value: allocated and never written.
const UNWRITTEN: u8 = 1 << 3;
/// Extent, external value: may have other owners.
const SHARED: u8 = 1 << 4;
/// Extent: begins in the file where the previous one ends (or, as the first, at 0).
const FOLLOWS: u8 = 1 << 5;
/// Extent, external value: of the previous one's generation.
const SAME_GENERATION: u8 = 1 << 6;
/// Extent, external value: begins on the device where the previous one ends.
const ADJACENT: u8 = 1 << 7;
/// Extended attribute: the value lies in blocks of its own.
const EXTERNAL: u8 = 1 << 5;

/// The fields that the next record is coded against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataContext {
    ino: u64,
    kind: u8,
    offset: u64,
    /// The end of the previous extent in the file.
    end: u64,
    /// Its end on the device.
    block_end: u64,
    generation: u64,
}

impl Key for DataKey {
    const LEN: usize = 17;

    fn write(self, out: &mut Vec<u8>) {
        self.ino.write(out);
        out.push(self.kind as u8);
        out.extend_from_slice(&self.offset.to_le_bytes());
    }

    #[inline]
    fn read(bytes: &mut Reader<'_>) -> Option<Self> {
        let ino = Ino::read(bytes)?;
        let kind = kind_of(bytes.byte()?)?;
        let offset = bytes.long()?;
        Some(Self { ino, kind, offset })
    }
}

fn kind_of(kind: u8) -> Option<DataKind> {
    match kind {
        0 => Some(DataKind::Inline),
        1 => Some(DataKind::Extent),
        2 => Some(DataKind::Xattr),
        _ => None,
    }
}

fn flag(set: bool, flag: u8) -> u8 {
    if set { flag } else { 0 }
}

impl Extent {
    /// Its blocks.
    pub(crate) fn span(&self) -> space::Extent {
        space::Extent::new(self.block, u64::from(self.blocks))
    }

    fn is_storable(&self) -> bool {
        self.blocks > 0
            && self.block < 1 << ADDRESS_BITS
            && self.block + u64::from(self.blocks) <= 1 << ADDRESS_BITS
    }

    fn flags(&self, context: &DataContext) -> u8 {
        flag(self.unwritten, UNWRITTEN)
            | flag(self.shared, SHARED)
            | flag(self.generation == context.generation, SAME_GENERATION)
            | flag(self.block == context.block_end, ADJACENT)
    }

    fn encode(&self, context: &mut DataContext, out: &mut Vec<u8>) {
        put(out, u64::from(self.blocks));
        if self.block != context.block_end {
            put_delta(out, self.block, context.block_end);
        }
        if self.generation != context.generation {
            put_delta(out, self.generation, context.generation);
        }
        context.block_end = self.block + u64::from(self.blocks);
        context.generation = self.generation;
    }

    fn decode(context: &mut DataContext, tag: u8, input: &mut Reader<'_>) -> Option<Self> {
        let blocks = input.narrow()?;
        let block = match tag & ADJACENT {
            0 => input.delta(context.block_end)?,
            _ => context.block_end,
        };
        if tag & SAME_GENERATION == 0 {
            context.generation = input.delta(context.generation)?;
        }
        let extent = Self {
            block,
            blocks,
            generation: context.generation,
            unwritten: tag & UNWRITTEN != 0,
            shared: tag & SHARED != 0,
        };
        context.block_end = block.checked_add(u64::from(blocks))?;
        extent.is_storable().then_some(extent)
    }
}

/// The flag byte of a record.
fn tag_of(context: &DataContext, key: DataKey, value: &Data<'_>) -> u8 {
    let same = (key.ino.0, key.kind as u8) == (context.ino, context.kind);
    let end = if same { context.end } else { 0 };
    let own = match value {
        Data::Inline(_)
        | Data::Xattr {
            value: XattrValue::Inline(_),
            ..
        } => 0,
        Data::Extent(extent) => extent.flags(context) | flag(key.offset == end, FOLLOWS),
        Data::Xattr {
            value: XattrValue::External { extent, .. },
            ..
        } => extent.flags(context) | EXTERNAL,
    };
    key.kind as u8 | flag(same, SAME) | own
}

/// The key of a record with flag byte `tag`; the context holds it afterwards.
#[inline]
fn read_key(context: &mut DataContext, tag: u8, input: &mut Reader<'_>) -> Option<DataKey> {
    let kind = kind_of(tag & KIND)?;
    if tag & SAME == 0 {
        context.ino = context.ino.checked_add(input.number()?)?;
        context.kind = kind as u8;
        (context.offset, context.end) = (0, 0);
    } else if context.kind != kind as u8 {
        return None;
    }
    context.offset = match kind {
        DataKind::Xattr => input.number()?.rotate_right(32),
        DataKind::Extent if tag & FOLLOWS != 0 => context.end,
        _ => context.offset.checked_add(input.number()?)?,
    };
    Some(DataKey {
        ino: Ino(context.ino),
        kind,
        offset: context.offset,
    })
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn read_bytes<'a>(input: &mut Reader<'a>) -> Option<&'a [u8]> {
    let len = input
        .narrow::<u32>()
        .filter(|&len| len as usize <= INLINE_MAX)?;
    input.take(len as usize)
}

impl Record for Contents {
    const KIND: Kind = Kind::Data;
    const PER_BLOCK: u8 = 32;
    const LEN_MAX: usize = 1 + 3 * 10 + NAME_MAX + INLINE_MAX;
    type Key = DataKey;
    type Value<'a> = Data<'a>;
    type Context = DataContext;

    fn is_storable(key: DataKey, value: &Data<'_>) -> bool {
        match value {
            Data::Inline(bytes) => {
                key.kind == DataKind::Inline && (1..=INLINE_MAX).contains(&bytes.len())
            }
            Data::Extent(extent) => {
                let fits = key.offset < FILE_BLOCKS_END
                    && key.offset + u64::from(extent.blocks) <= FILE_BLOCKS_END;
                key.kind == DataKind::Extent && fits && extent.is_storable()
            }
            Data::Xattr { name, value } => {
                let fits = match value {
                    XattrValue::Inline(bytes) => bytes.len() <= INLINE_MAX,
                    XattrValue::External { extent, .. } => extent.is_storable(),
                };
                key.kind == DataKind::Xattr && (1..=NAME_MAX).contains(&name.len()) && fits
            }
        }
    }

    #[inline]
    fn encode(context: &mut DataContext, key: DataKey, value: &Data<'_>, out: &mut Vec<u8>) {
        let tag = tag_of(context, key, value);
        out.push(tag);
        if tag & SAME == 0 {
            put(out, key.ino.0.wrapping_sub(context.ino));
            (context.offset, context.end) = (0, 0);
        }
        match key.kind {
            DataKind::Xattr => put(out, key.offset.rotate_left(32)),
            DataKind::Extent if tag & FOLLOWS != 0 => {}
            _ => put(out, key.offset.wrapping_sub(context.offset)),
        }
        (context.ino, context.kind, context.offset) = (key.ino.0, key.kind as u8, key.offset);
        match value {
            Data::Inline(bytes) => put_bytes(out, bytes),
            Data::Extent(extent) => {
                extent.encode(context, out);
                context.end = key.offset + u64::from(extent.blocks);
            }
            Data::Xattr { name, value } => {
                out.push(name.len() as u8);
                out.extend_from_slice(name);
                match value {
                    XattrValue::Inline(bytes) => put_bytes(out, bytes),
                    XattrValue::External { extent, len } => {
                        extent.encode(context, out);
                        put(out, u64::from(*len));
                    }
                }
            }
        }
    }

    #[inline]
    fn decode<'a>(
        context: &mut DataContext,
        input: &mut Reader<'a>,
    ) -> Option<(DataKey, Data<'a>)> {
        let tag = input.byte()?;
        let key = read_key(context, tag, input)?;
        let beside = match key.kind {
            DataKind::Extent => u8::MAX,
            DataKind::Xattr if tag & EXTERNAL != 0 => u8::MAX,
            DataKind::Inline | DataKind::Xattr => KIND | SAME,
        };
        if tag & !beside != 0 {
            return None;
        }
        let value = match key.kind {
            DataKind::Inline => Data::Inline(read_bytes(input)?),
            DataKind::Extent => {
                let extent = Extent::decode(context, tag, input)?;
                context.end = key.offset.checked_add(u64::from(extent.blocks))?;
                Data::Extent(extent)
            }
            DataKind::Xattr => {
                let len = input.byte()?;
                let name = input.take(usize::from(len))?;
                let value = if tag & EXTERNAL == 0 {
                    XattrValue::Inline(read_bytes(input)?)
                } else {
                    let extent = Extent::decode(context, tag, input)?;
                    XattrValue::External {
                        extent,
                        len: input.narrow()?,
                    }
                };
                Data::Xattr { name, value }
            }
        };
        Self::is_storable(key, &value).then_some((key, value))
    }

    #[inline]
    fn first_key(input: &mut Reader<'_>) -> Option<DataKey> {
        let tag = input.byte()?;
        read_key(&mut DataContext::default(), tag, input)
    }
}
