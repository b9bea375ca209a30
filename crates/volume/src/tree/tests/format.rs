//! The bytes of `docs/format.md`: a change here is a change of the format.

use super::super::{
    Contents, Data, DataKey, DataKind, Error, Extent, HashKey, Hashes, Inodes, NodeCache, NodeSize,
    Origin, Record, Tree, XattrValue,
};
use super::memory::{Change, Memory};
use super::sizes::fresh;
use holdfast_types::Ino;

/// The one leaf of a tree of `records`.
fn leaf<'v, R: Record>(records: Vec<(R::Key, R::Value<'v>)>) -> Vec<u8> {
    let memory = Memory::default();
    let cache = NodeCache::new(&memory, 0);
    let origin = Origin {
        generation: 0x0102_0304_0506_0708,
        subvolume: 0x0a0b_0c0d,
    };
    let changes = records
        .into_iter()
        .map(|(key, value)| Ok::<_, Error>((key, Change::Put(value))));
    let tree = Tree::<R, _>::new(&cache, None);
    let merged = tree
        .merge_all(origin, NodeSize::STANDARD, &mut &memory, changes)
        .expect("sound");
    let root = merged.root.expect("not empty");
    assert_eq!(root.level, 0);
    memory.state().nodes[&root.node.block].clone()
}

/// Used bytes behind the header of a leaf; its other bytes must be zero.
fn body(leaf: &[u8]) -> &[u8] {
    let used = u32::from_le_bytes(*leaf[36..].first_chunk().expect("a header")) as usize;
    assert!(leaf[used..].iter().all(|&byte| byte == 0));
    &leaf[48..used]
}

#[test]
fn a_leaf_of_hashes_is_as_described() {
    let key = |dir, hash, cookie| {
        (
            HashKey {
                dir: Ino(dir),
                hash,
                cookie,
            },
            (),
        )
    };
    let leaf = leaf::<Hashes>(vec![
        key(1, 100, 3),
        key(1, 100, 4),
        key(1, 200, 2),
        key(3, 5, 3),
    ]);
    let records: Vec<u8> = [
        &[4][..],
        &[0xc9, 1, 1, 3],
        &[0, 4],
        &[0xc8, 1, 2],
        &[11, 2, 3],
        &[48, 0],
    ]
    .concat();
    assert_eq!(leaf[4], 3);
    assert_eq!(body(&leaf), records);
}

#[test]
fn a_leaf_of_contents_is_as_described() {
    let extent = |block, blocks, generation| Extent {
        block,
        blocks,
        generation,
        unwritten: false,
        shared: false,
    };
    let at = |ino, kind, offset| DataKey {
        ino: Ino(ino),
        kind,
        offset,
    };
    let first = extent(100, 8, 7);
    let second = Extent {
        unwritten: true,
        ..extent(108, 2, 7)
    };
    let external = XattrValue::External {
        extent: extent(200, 1, 8),
        len: 3000,
    };
    let value = XattrValue::Inline(b"v");
    let leaf = leaf::<Contents>(vec![
        (at(5, DataKind::Inline, 0), Data::Inline(b"hi")),
        (at(6, DataKind::Extent, 0), Data::Extent(first)),
        (at(6, DataKind::Extent, 8), Data::Extent(second)),
        (at(6, DataKind::Extent, 20), Data::Extent(extent(50, 1, 9))),
        (
            DataKey::xattr(Ino(6), 3, 0),
            Data::Xattr { name: b"n", value },
        ),
        (
            DataKey::xattr(Ino(6), 3, 1),
            Data::Xattr {
                name: b"m",
                value: external,
            },
        ),
    ]);
    let records: Vec<u8> = [
        &[6][..],
        &[0, 5, 0, 2, b'h', b'i'],
        // Follows.
        &[0x21, 1, 8, 0xc8, 1, 14],
        // Same, unwritten, follows, same generation, adjacent.
        &[0xed, 2],
        &[0x05, 12, 1, 0x77, 4],
        &[0x02, 0, 3, 1, b'n', 1, b'v'],
        // The offset's halves are exchanged: 3 + (1 << 32).
        &[
            0x26, 0x83, 0x80, 0x80, 0x80, 0x10, 1, b'm', 1, 0xaa, 2, 1, 0xb8, 0x17,
        ],
        &[48, 0],
    ]
    .concat();
    assert_eq!(leaf[4], 4);
    assert_eq!(body(&leaf), records);
}

#[test]
fn interior_nodes_are_as_described() {
    let memory = Memory::default();
    let cache = NodeCache::new(&memory, 0);
    let origin = Origin {
        generation: 3,
        subvolume: 1,
    };
    let changes = [1_u64, 2].map(|ino| Ok::<_, Error>((Ino(ino), Change::Put(fresh(ino, 0, 1)))));
    let tree = Tree::<Inodes, _>::new(&cache, None);
    let merged = tree
        .merge_all(origin, NodeSize::tiny(64, 1), &mut &memory, changes)
        .expect("sound");
    let root = merged.root.expect("not empty");
    assert_eq!((root.level, root.node.blocks), (1, 2));
    let node = memory.state().nodes[&root.node.block].clone();
    assert_eq!(
        (node[4], node[5], node[36], node[40], node[44]),
        (1, 1, 48 + 2 * 24, 2, 0)
    );
    let pairs: Vec<u8> = [
        &[1, 0, 0, 0, 0, 0, 0, 0][..],
        &[2, 0, 0, 0, 0, 0, 2, 0],
        &[3, 0, 0, 0, 0, 0, 0, 0],
        &[2, 0, 0, 0, 0, 0, 0, 0],
        &[4, 0, 0, 0, 0, 0, 2, 0],
        &[3, 0, 0, 0, 0, 0, 0, 0],
    ]
    .concat();
    assert_eq!(node[48..96], pairs);
}
