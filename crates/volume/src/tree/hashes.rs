//! The hash tree: the positions of names in directories, by the hash of the name.
//!
//! Names with equal hashes are neighbouring keys; the entry tree has the names themselves.

use super::record::{Key, Kind, Record};
use crate::varint::{Reader, put};
use holdfast_types::Ino;

/// Records of the hash tree: keys without values.
#[derive(Debug)]
pub struct Hashes;

/// A name's hash and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HashKey {
    /// The directory.
    pub dir: Ino,
    /// The hash of the name, with the subvolume's seed.
    pub hash: u32,
    /// The cookie of its entry.
    pub cookie: u64,
}

/// The low bit beside a hash: set if the directory is not the previous record's.
const NEW_DIR: u64 = 1;

/// The fields that the next record is coded against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HashContext {
    dir: u64,
    hash: u32,
}

impl Key for HashKey {
    const LEN: usize = 20;

    fn write(self, out: &mut Vec<u8>) {
        self.dir.write(out);
        out.extend_from_slice(&self.hash.to_le_bytes());
        out.extend_from_slice(&self.cookie.to_le_bytes());
    }

    #[inline]
    fn read(bytes: &mut Reader<'_>) -> Option<Self> {
        let dir = Ino::read(bytes)?;
        let hash = bytes.word()?;
        let cookie = bytes.long()?;
        Some(Self { dir, hash, cookie })
    }
}

impl Record for Hashes {
    const KIND: Kind = Kind::Hashes;
    const PER_BLOCK: u8 = 64;
    const LEN_MAX: usize = 5 + 10 + 10;
    type Key = HashKey;
    type Value<'a> = ();
    type Context = HashContext;

    fn is_storable(_: HashKey, (): &()) -> bool {
        true
    }

    #[inline]
    fn encode(context: &mut HashContext, key: HashKey, (): &(), out: &mut Vec<u8>) {
        let HashKey {
            dir: Ino(dir),
            hash,
            cookie,
        } = key;
        if dir == context.dir {
            put(out, u64::from(hash.wrapping_sub(context.hash)) << 1);
        } else {
            put(out, u64::from(hash) << 1 | NEW_DIR);
            put(out, dir.wrapping_sub(context.dir));
        }
        put(out, cookie);
        *context = HashContext { dir, hash };
    }

    #[inline]
    fn decode<'a>(context: &mut HashContext, input: &mut Reader<'a>) -> Option<(HashKey, ())> {
        let coded = input.number()?;
        let step = u32::try_from(coded >> 1).ok()?;
        if coded & NEW_DIR == 0 {
            context.hash = context.hash.checked_add(step)?;
        } else {
            context.hash = step;
            context.dir = context.dir.checked_add(input.number()?)?;
        }
        let cookie = input.number()?;
        let key = HashKey {
            dir: Ino(context.dir),
            hash: context.hash,
            cookie,
        };
        Some((key, ()))
    }
}
