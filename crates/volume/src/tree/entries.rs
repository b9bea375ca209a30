//! The entry tree: names by directory and cookie.

use super::record::{Key, Kind, Record};
use crate::varint::{Reader, put, put_delta};
use holdfast_types::{FileType, Ino, NAME_MAX};

/// Records of the entry tree.
#[derive(Debug)]
pub struct Entries;

/// The key of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryKey {
    /// The directory.
    pub dir: Ino,
    /// The position in it.
    pub cookie: u64,
}

/// A name and its inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The inode.
    pub ino: Ino,
    /// That inode's type.
    pub kind: FileType,
    /// The name: 1 to 255 bytes.
    pub name: &'a [u8],
}

/// The low bits: the type, as readdir(3) numbers types.
const KIND: u8 = 0x0f;
/// The directory is that of the previous record.
const SAME_DIR: u8 = 1 << 4;
/// The cookie is the previous one plus 1.
const NEXT_COOKIE: u8 = 1 << 5;
/// The inode is the previous one plus 1.
const NEXT_INO: u8 = 1 << 6;
/// Set in no record.
const UNUSED: u8 = 1 << 7;

/// The fields that the next record is coded against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryContext {
    dir: u64,
    cookie: u64,
    ino: u64,
}

impl Key for EntryKey {
    const LEN: usize = 16;

    fn write(self, out: &mut Vec<u8>) {
        self.dir.write(out);
        out.extend_from_slice(&self.cookie.to_le_bytes());
    }

    #[inline]
    fn read(bytes: &mut Reader<'_>) -> Option<Self> {
        let dir = Ino::read(bytes)?;
        let cookie = bytes.long()?;
        Some(Self { dir, cookie })
    }
}

/// The directory and the cookie of a record with flag byte `tag`.
#[inline]
fn read_key(context: &mut EntryContext, tag: u8, input: &mut Reader<'_>) -> Option<EntryKey> {
    let base = if tag & SAME_DIR == 0 {
        context.dir = context.dir.checked_add(input.number()?)?;
        0
    } else {
        context.cookie
    };
    let step = if tag & NEXT_COOKIE == 0 {
        input.number()?
    } else {
        1
    };
    context.cookie = base.checked_add(step)?;
    Some(EntryKey {
        dir: Ino(context.dir),
        cookie: context.cookie,
    })
}

impl Record for Entries {
    const KIND: Kind = Kind::Entries;
    const PER_BLOCK: u8 = 32;
    const LEN_MAX: usize = 2 + 3 * 10 + NAME_MAX;
    type Key = EntryKey;
    type Value<'a> = Entry<'a>;
    type Context = EntryContext;

    fn is_storable(_: EntryKey, entry: &Entry<'_>) -> bool {
        (1..=NAME_MAX).contains(&entry.name.len())
    }

    #[inline]
    fn encode(context: &mut EntryContext, key: EntryKey, entry: &Entry<'_>, out: &mut Vec<u8>) {
        let EntryKey {
            dir: Ino(dir),
            cookie,
        } = key;
        let same_dir = dir == context.dir;
        let base = if same_dir { context.cookie } else { 0 };
        let next_cookie = base.checked_add(1) == Some(cookie);
        let next_ino = context.ino.checked_add(1) == Some(entry.ino.0);
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        out.push(
            entry.kind.dirent_type()
                | flag(same_dir, SAME_DIR)
                | flag(next_cookie, NEXT_COOKIE)
                | flag(next_ino, NEXT_INO),
        );
        if !same_dir {
            put(out, dir.wrapping_sub(context.dir));
        }
        if !next_cookie {
            put(out, cookie.wrapping_sub(base));
        }
        if !next_ino {
            put_delta(out, entry.ino.0, context.ino);
        }
        out.push(entry.name.len() as u8);
        out.extend_from_slice(entry.name);
        *context = EntryContext {
            dir,
            cookie,
            ino: entry.ino.0,
        };
    }

    #[inline]
    fn decode<'a>(
        context: &mut EntryContext,
        input: &mut Reader<'a>,
    ) -> Option<(EntryKey, Entry<'a>)> {
        let tag = input.byte()?;
        let kind = FileType::from_mode(u32::from(tag & KIND) << 12)
            .filter(|kind| kind.dirent_type() == tag & KIND && tag & UNUSED == 0)?;
        let key = read_key(context, tag, input)?;
        context.ino = if tag & NEXT_INO == 0 {
            input.delta(context.ino)?
        } else {
            context.ino.checked_add(1)?
        };
        let len = input.byte().filter(|&len| len > 0)?;
        let name = input.take(usize::from(len))?;
        Some((
            key,
            Entry {
                ino: Ino(context.ino),
                kind,
                name,
            },
        ))
    }

    #[inline]
    fn first_key(input: &mut Reader<'_>) -> Option<EntryKey> {
        let tag = input.byte()?;
        read_key(&mut EntryContext::default(), tag, input)
    }
}
