//! Writes the changes: trees into free blocks, then bitmaps, then the superblocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_device::BlockDevice;
use holdfast_types::Ino;

use super::names::Name;
use super::room::{Room, bitmap};
use crate::block::BLOCK;
use crate::check::{BlockSet, visit, walk};
use crate::error::Result;
use crate::nodes::Nodes;
use crate::space::{Extent, Layout, Seal, recorded, slot_image};
use crate::store::Held;
use crate::store::NameHasher;
use crate::superblock::{SLOTS, Superblock};
use crate::tree;
use crate::tree::{
    Contents, Data, Entries, Entry, EntryKey, HashKey, Hashes, Inode, Inodes, NodeCache, NodeSize,
    Origin, Pointer, Record, Root, Tree, XattrValue,
};

/// The number of the only subvolume.
const SUBVOLUME: u32 = 1;

/// An owned value.
pub(super) trait Value<R: Record> {
    /// The borrowed form.
    fn value(&self) -> R::Value<'_>;
}

impl Value<Inodes> for Inode {
    fn value(&self) -> Inode {
        self.clone()
    }
}

impl Value<Entries> for Name {
    fn value(&self) -> Entry<'_> {
        self.borrowed()
    }
}

impl Value<Contents> for Held {
    fn value(&self) -> Data<'_> {
        self.borrowed()
    }
}

/// Writes the trees of a new generation.
pub(super) struct Writer<'w> {
    pub(super) cache: &'w NodeCache<Nodes>,
    pub(super) room: Room,
    /// The generation of the new superblock.
    pub(super) generation: u64,
}

impl<'w> Writer<'w> {
    fn origin(&self) -> Origin {
        Origin {
            generation: self.generation,
            subvolume: SUBVOLUME,
        }
    }

    /// Applies changes to a tree; `None` deletes. A damaged tree is built anew of its readable
    /// records.
    pub(super) fn tree<R: Record, V: Value<R> + Send + Sync>(
        &mut self,
        root: Option<Root>,
        is_damaged: bool,
        changes: &BTreeMap<R::Key, Option<V>>,
    ) -> Result<Option<Root>> {
        let (origin, old) = (self.origin(), Tree::<R, Nodes>::new(self.cache, root));
        if !is_damaged {
            if changes.is_empty() {
                return Ok(root);
            }
            let mut merge = old.merge(origin, NodeSize::STANDARD, &mut self.room);
            for (key, change) in changes {
                match change {
                    Some(value) => merge.put(*key, &value.value())?,
                    None => merge.delete(*key)?,
                }
            }
            return Ok(merge.finish()?.root);
        }
        let empty = Tree::<R, Nodes>::new(self.cache, None);
        let mut merge = empty.merge(origin, NodeSize::STANDARD, &mut self.room);
        let mut changes = changes.iter().peekable();
        let mut outcome = Ok(());
        walk(&old, self.generation, |key: R::Key, value: R::Value<'_>| {
            while outcome.is_ok()
                && let Some((at, change)) = changes.next_if(|(at, _)| **at < key)
                && let Some(change) = change
            {
                outcome = merge.put(*at, &change.value());
            }
            let change = changes.next_if(|(at, _)| **at == key);
            if outcome.is_err() || !R::is_storable(key, &value) {
                return;
            }
            outcome = match change {
                None => merge.put(key, &value),
                Some((_, Some(change))) => merge.put(key, &change.value()),
                Some((_, None)) => Ok(()),
            };
        });
        outcome?;
        for (key, change) in changes {
            if let Some(change) = change {
                merge.put(*key, &change.value())?;
            }
        }
        Ok(merge.finish()?.root)
    }

    /// Builds the hash tree of these names.
    pub(super) fn hashes(&mut self, entries: Option<Root>, seed: u64) -> Result<Option<Root>> {
        let (origin, hasher) = (self.origin(), NameHasher::new(seed));
        let names = Tree::<Entries, Nodes>::new(self.cache, entries);
        let empty = Tree::<Hashes, Nodes>::new(self.cache, None);
        let mut merge = empty.merge(origin, NodeSize::STANDARD, &mut self.room);
        let mut outcome = Ok(());
        let mut dir = Ino(0);
        let mut keys: Vec<HashKey> = Vec::new();
        let mut put = |keys: &mut Vec<HashKey>| -> tree::Result<()> {
            keys.sort_unstable();
            keys.drain(..).try_for_each(|key| merge.put(key, &()))
        };
        walk(
            &names,
            self.generation,
            |key: EntryKey, entry: Entry<'_>| {
                if key.dir != dir && outcome.is_ok() {
                    outcome = put(&mut keys);
                    dir = key.dir;
                }
                keys.push(HashKey {
                    dir: key.dir,
                    hash: hasher.hash(entry.name),
                    cookie: key.cookie,
                });
            },
        );
        outcome?;
        put(&mut keys)?;
        Ok(merge.finish()?.root)
    }
}

/// Marks the nodes of all trees of a superblock.
pub(super) fn nodes(cache: &NodeCache<Nodes>, superblock: &Superblock, used: &BlockSet) {
    let newest = superblock.generation;
    let [inodes, entries, hashes, _] = superblock.roots.map(|tree| tree[0]);
    let mut mark = |node: Pointer| {
        used.insert(node.span());
    };
    for root in [inodes, superblock.orphans] {
        visit::<Inodes>(&Tree::new(cache, root), newest, &mut mark, |_, _| {});
    }
    visit::<Entries>(&Tree::new(cache, entries), newest, &mut mark, |_, _| {});
    visit::<Hashes>(&Tree::new(cache, hashes), newest, &mut mark, |_, ()| {});
    let data = Tree::new(cache, superblock.roots[3][0]);
    visit::<Contents>(&data, newest, &mut mark, |_, _| {});
}

/// The blocks of a record of the data tree.
pub(super) fn blocks_of(data: &Data<'_>) -> Option<Extent> {
    match data {
        Data::Extent(extent)
        | Data::Xattr {
            value: XattrValue::External { extent, .. },
            ..
        } => Some(extent.span()),
        _ => None,
    }
}

/// Marks the blocks of all files and attributes.
pub(super) fn data(cache: &NodeCache<Nodes>, superblock: &Superblock, used: &BlockSet) {
    let data = Tree::new(cache, superblock.roots[3][0]);
    walk::<Contents>(&data, superblock.generation, |_, value: Data<'_>| {
        if let Some(extent) = blocks_of(&value) {
            used.insert(extent);
        }
    });
}

/// Writes the bitmaps for a new superblock, then both superblocks.
pub(super) fn publish(
    device: &Arc<dyn BlockDevice>,
    cache: &NodeCache<Nodes>,
    mut superblock: Superblock,
) -> Result<()> {
    let layout = superblock.layout();
    let used = BlockSet::new(layout);
    nodes(cache, &superblock, &used);
    data(cache, &superblock, &used);
    superblock.seal = bitmaps(device, &layout, superblock.generation, &used)?;
    device.flush()?;
    for slot in SLOTS {
        device.write(slot * BLOCK as u64, &superblock.encode(slot))?;
        device.flush()?;
    }
    Ok(())
}

/// Writes each group's bitmap to the slot that no earlier superblock means.
pub(super) fn bitmaps(
    device: &Arc<dyn BlockDevice>,
    layout: &Layout,
    generation: u64,
    used: &BlockSet,
) -> Result<Seal> {
    let mut seal = Seal::default();
    for group in 0..layout.groups() {
        let mut pair = [[0; BLOCK]; 2];
        let mut unreadable = None;
        for (slot, bytes) in pair.iter_mut().enumerate() {
            let place = layout.slot(group, slot) * BLOCK as u64;
            if device.read(place, bytes).is_err() {
                // No superblock can mean it, and a write may make it readable.
                unreadable = Some(slot);
                bytes.fill(0xff);
            }
        }
        let words = bitmap(used, group);
        let extent = layout.group(group);
        let free = (extent.start..extent.end()).filter(|block| !used.has(*block));
        let reserved = layout.reserved(group);
        let free = free.count() as u64 - reserved;
        seal.free += free;
        let before = recorded(layout, group, generation - 1, [&pair[0], &pair[1]]);
        let slot = match (unreadable, before.map(|recorded| recorded.slot)) {
            (Some(slot), _) => slot,
            (None, Ok(None)) if free + reserved == extent.length => continue,
            (None, Ok(Some(0))) => 1,
            _ => 0,
        };
        let (block, print) = slot_image(layout, group, slot, generation, &words);
        device.write(layout.slot(group, slot) * BLOCK as u64, &block[..])?;
        seal.fingerprint ^= print;
    }
    Ok(seal)
}
