//! Random records of every kind, in a form that owns its bytes.

use super::super::{
    Contents, Data, DataKey, DataKind, Entries, Entry, EntryKey, Extent, HashKey, Hashes,
    INLINE_MAX, Inode, Inodes, Record, XattrValue,
};
use holdfast_core::store::{InodeRecord, StoredSpace};
use holdfast_types::{FileFlags, FileType, Ino, Time};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use std::fmt::Debug;

/// A kind of record with random instances.
pub(super) trait Sample: Record {
    type Owned: Clone + PartialEq + Debug + Send;

    /// A key among about `space` ones.
    fn key(rng: &mut ChaCha8Rng, space: u64) -> Self::Key;
    fn owned(rng: &mut ChaCha8Rng, key: Self::Key) -> Self::Owned;
    fn value(owned: &Self::Owned) -> Self::Value<'_>;
    fn own(value: Self::Value<'_>) -> Self::Owned;
}

/// Mostly small, sometimes as large as it gets.
pub(super) fn number(rng: &mut ChaCha8Rng) -> u64 {
    let bits = rng.random_range(0..=64_u32);
    rng.random::<u64>().checked_shr(64 - bits).unwrap_or(0)
}

fn word(rng: &mut ChaCha8Rng) -> u32 {
    number(rng) as u32
}

pub(super) fn kind(rng: &mut ChaCha8Rng) -> FileType {
    const KINDS: [FileType; 7] = [
        FileType::Fifo,
        FileType::CharDevice,
        FileType::Directory,
        FileType::BlockDevice,
        FileType::Regular,
        FileType::Symlink,
        FileType::Socket,
    ];
    KINDS[rng.random_range(0..KINDS.len())]
}

pub(super) fn bytes(rng: &mut ChaCha8Rng, most: usize) -> Vec<u8> {
    let most = if rng.random_ratio(1, 8) {
        most
    } else {
        most.min(24)
    };
    (0..rng.random_range(1..=most))
        .map(|_| rng.random())
        .collect()
}

/// The key itself, or now and then one at the far end of all numbers.
pub(super) fn spread(rng: &mut ChaCha8Rng, key: u64) -> u64 {
    if rng.random_ratio(1, 50) {
        u64::MAX - key
    } else {
        key
    }
}

impl Sample for Inodes {
    type Owned = Inode;

    fn key(rng: &mut ChaCha8Rng, space: u64) -> Ino {
        let key = rng.random_range(0..space);
        Ino(spread(rng, key))
    }

    fn owned(rng: &mut ChaCha8Rng, key: Ino) -> Inode {
        let base = Time(1_700_000_000_000_000_000 + rng.random_range(0..10_000));
        let plain = rng.random_ratio(1, 2);
        let time = |rng: &mut ChaCha8Rng| match rng.random_range(0..4) {
            0 => Time(number(rng) as i64),
            _ => base,
        };
        let kind = if plain { FileType::Regular } else { kind(rng) };
        let size = if plain { 0 } else { number(rng) };
        let record = InodeRecord {
            ino: key,
            kind,
            perm: if plain {
                0o644
            } else {
                rng.random_range(0..=0o7777)
            },
            nlink: if plain { 1 } else { word(rng) },
            uid: if plain { 1000 } else { word(rng) },
            gid: if plain { 1000 } else { word(rng) },
            rdev: if plain { 0 } else { number(rng) },
            size,
            atime: time(rng),
            mtime: time(rng),
            ctime: time(rng),
            btime: time(rng),
            parent: Ino(if plain { 1 } else { number(rng) }),
            xattrs: !plain && rng.random(),
            space: match kind {
                FileType::Regular if plain => StoredSpace::AS_SIZE,
                FileType::Regular => StoredSpace::of(number(rng) >> 13, size),
                _ => StoredSpace::UNKNOWN,
            },
            flags: FileFlags::from_bits_retain(if plain { 0 } else { word(rng) }),
            project: if plain { 0 } else { word(rng) },
        };
        let next_cookie = if plain { 0 } else { number(rng) };
        Inode {
            record,
            next_cookie,
            flags: if plain { 0 } else { word(rng) },
        }
    }

    fn value(owned: &Inode) -> Inode {
        owned.clone()
    }

    fn own(value: Inode) -> Inode {
        value
    }
}

impl Sample for Entries {
    type Owned = (Ino, FileType, Vec<u8>);

    fn key(rng: &mut ChaCha8Rng, space: u64) -> EntryKey {
        let (dir, cookie) = (
            rng.random_range(0..4),
            rng.random_range(0..space.div_ceil(4)),
        );
        EntryKey {
            dir: Ino(spread(rng, dir)),
            cookie: spread(rng, cookie),
        }
    }

    fn owned(rng: &mut ChaCha8Rng, _: EntryKey) -> Self::Owned {
        (Ino(number(rng)), kind(rng), bytes(rng, 255))
    }

    fn value(owned: &Self::Owned) -> Entry<'_> {
        Entry {
            ino: owned.0,
            kind: owned.1,
            name: &owned.2,
        }
    }

    fn own(value: Entry<'_>) -> Self::Owned {
        (value.ino, value.kind, value.name.to_vec())
    }
}

impl Sample for Hashes {
    type Owned = ();

    fn key(rng: &mut ChaCha8Rng, space: u64) -> HashKey {
        let dir = rng.random_range(0..4);
        // Few hashes, so that some collide; some at the far end.
        let hash = rng.random_range(0..space.div_ceil(8));
        let hash = spread(rng, hash) as u32;
        let cookie = rng.random_range(0..2);
        HashKey {
            dir: Ino(spread(rng, dir)),
            hash,
            cookie: spread(rng, cookie),
        }
    }

    fn owned(_: &mut ChaCha8Rng, _: HashKey) {}

    fn value((): &()) {}

    fn own((): ()) {}
}

/// The bytes, the name, the extent, a length: as far as the kind has them.
type Owned = (DataKind, Vec<u8>, Option<Vec<u8>>, Option<Extent>, u32);

fn extent(rng: &mut ChaCha8Rng) -> Extent {
    let near = rng.random_ratio(1, 2);
    Extent {
        block: if near { 64 } else { number(rng) >> 17 },
        blocks: if near { 8 } else { word(rng).max(1) },
        generation: if near { 3 } else { number(rng) },
        unwritten: rng.random(),
        shared: rng.random(),
    }
}

impl Sample for Contents {
    type Owned = Owned;

    fn key(rng: &mut ChaCha8Rng, space: u64) -> DataKey {
        let ino = rng.random_range(0..8);
        let ino = Ino(spread(rng, ino));
        let offset = rng.random_range(0..space.div_ceil(24));
        match rng.random_range(0..3) {
            0 => DataKey {
                ino,
                kind: DataKind::Inline,
                offset: spread(rng, offset),
            },
            1 => DataKey {
                ino,
                kind: DataKind::Extent,
                offset: offset * 8,
            },
            _ => DataKey::xattr(ino, offset as u32, rng.random_range(0..2)),
        }
    }

    fn owned(rng: &mut ChaCha8Rng, key: DataKey) -> Owned {
        let most = if rng.random_ratio(1, 20) {
            INLINE_MAX
        } else {
            60
        };
        let content = bytes(rng, most);
        match key.kind {
            DataKind::Inline => (key.kind, content, None, None, 0),
            DataKind::Extent => (key.kind, Vec::new(), None, Some(extent(rng)), 0),
            DataKind::Xattr if rng.random() => {
                let extent = Some(extent(rng));
                (
                    key.kind,
                    Vec::new(),
                    Some(bytes(rng, 255)),
                    extent,
                    word(rng),
                )
            }
            DataKind::Xattr => (key.kind, content, Some(bytes(rng, 255)), None, 0),
        }
    }

    fn value((_, content, name, extent, len): &Owned) -> Data<'_> {
        match (name, *extent) {
            (None, None) => Data::Inline(content),
            (None, Some(extent)) => Data::Extent(extent),
            (Some(name), None) => Data::Xattr {
                name,
                value: XattrValue::Inline(content),
            },
            (Some(name), Some(extent)) => Data::Xattr {
                name,
                value: XattrValue::External { extent, len: *len },
            },
        }
    }

    fn own(value: Data<'_>) -> Owned {
        match value {
            Data::Inline(content) => (DataKind::Inline, content.to_vec(), None, None, 0),
            Data::Extent(extent) => (DataKind::Extent, Vec::new(), None, Some(extent), 0),
            Data::Xattr {
                name,
                value: XattrValue::Inline(content),
            } => (
                DataKind::Xattr,
                content.to_vec(),
                Some(name.to_vec()),
                None,
                0,
            ),
            Data::Xattr {
                name,
                value: XattrValue::External { extent, len },
            } => (
                DataKind::Xattr,
                Vec::new(),
                Some(name.to_vec()),
                Some(extent),
                len,
            ),
        }
    }
}
