//! One round of a repair: reading, deciding, writing.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_device::BlockDevice;
use holdfast_types::{FileType, Ino, Time};

use super::NUMBERS_LEFT;
use super::census::Census;
use super::contents::{self, Stranger};
use super::names::{self, Name};
use super::paths::{Paths, mend_root};
use super::repair_action::{Deed, Deeds};
use super::room::{Room, Used};
use super::walk::walk;
use super::write::{self, Writer};
use crate::check::{Branch, Finding, Report};
use crate::journal::{self, Journal, Record};
use crate::nodes::Nodes;
use crate::space::Extent;
use crate::store::records::Held;
use crate::superblock::Superblock;
use crate::tree::{
    Contents, Data, DataKey, Entries, Entry, Hashes, Inode, Inodes, NodeCache, Root, Tree,
};
use crate::{Error, Result, tree};

/// Bytes of nodes that are kept: each is read once.
const CACHE: usize = 1 << 20;

/// How far a round goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// Damaged trees are made anew, so that a journal can be replayed over them.
    Trees,
    /// All.
    All,
}

/// Which trees are damaged.
#[derive(Clone, Copy, Debug, Default)]
struct Damaged {
    inodes: bool,
    entries: bool,
    hashes: bool,
    data: bool,
    orphans: bool,
}

/// What is to be written.
#[derive(Default)]
struct Plan {
    inodes: BTreeMap<Ino, Option<Inode>>,
    names: names::Changes,
    data: contents::Changes,
    /// The orphans, if they are to be written anew.
    orphans: Option<BTreeMap<Ino, Option<Inode>>>,
    last_ino: u64,
}

/// What is to be done, the extents of blocks that two files have, and the blocks in use.
type Surveyed = (Plan, Vec<(DataKey, crate::tree::Extent)>, Used);

/// A round on one superblock.
pub(super) struct Round<'r> {
    device: &'r Arc<dyn BlockDevice>,
    superblock: Superblock,
    cache: NodeCache<Nodes>,
    now: Time,
}

fn cache(device: &Arc<dyn BlockDevice>, superblock: &Superblock) -> NodeCache<Nodes> {
    let nodes = Nodes {
        device: Arc::clone(device),
        volume: superblock.identity(),
    };
    NodeCache::new(nodes, CACHE)
}

impl<'r> Round<'r> {
    pub(super) fn new(device: &'r Arc<dyn BlockDevice>, superblock: Superblock, now: Time) -> Self {
        let cache = cache(device, &superblock);
        Self {
            device,
            superblock,
            cache,
            now,
        }
    }

    /// Writes bitmaps and superblocks of a new generation over these trees.
    pub(super) fn publish(device: &Arc<dyn BlockDevice>, superblock: Superblock) -> Result<()> {
        let cache = cache(device, &superblock);
        let generation = superblock.generation + 1;
        write::publish(
            device,
            &cache,
            Superblock {
                generation,
                ..superblock
            },
        )
    }

    fn root(&self, branch: Branch) -> Option<Root> {
        match branch {
            Branch::Orphans => self.superblock.orphans,
            _ => self.superblock.roots[branch as usize][0],
        }
    }

    fn tree<R: crate::tree::Record>(&self, branch: Branch) -> Tree<'_, R, Nodes> {
        Tree::new(&self.cache, self.root(branch))
    }

    /// Does it all. `found`: what a check said before.
    pub(super) fn run(self, depth: Depth, found: &Report, deeds: &mut Deeds) -> Result<()> {
        let mut nodes = Used::new(self.superblock.layout());
        write::nodes(&self.cache, &self.superblock, &mut nodes);
        let mut damaged = Damaged::default();
        let (plan, doubles, mut taken) = match depth {
            Depth::All => self.survey(&nodes, &mut damaged, deeds)?,
            Depth::Trees => {
                let mut taken = nodes;
                write::data(&self.cache, &self.superblock, &mut taken);
                damaged = self.look_for_damage();
                (Plan::default(), Vec::new(), taken)
            }
        };
        self.mark_journalled(&mut taken)?;
        let generation = self.superblock.generation + 1;
        let mut writer = Writer {
            cache: &self.cache,
            room: Room::new(Arc::clone(self.device), taken),
            generation,
        };
        let mut plan = plan;
        for (key, extent) in doubles {
            let from = Extent::new(extent.block, u64::from(extent.blocks));
            let block = writer.room.copy(from)?;
            let copy = crate::tree::Extent {
                block,
                birth: generation,
                ..extent
            };
            plan.data.insert(key, Some(Held::Extent(copy)));
            let (ino, offset) = (key.ino, key.offset);
            deeds.add(Deed::ContentCopied { ino, offset });
        }
        let wrong_hashes = found.more > 0
            || found
                .findings
                .iter()
                .any(|finding| matches!(finding, Finding::NoHash { .. } | Finding::NoEntry { .. }));
        let superblock = self.write(writer, &plan, damaged, depth, wrong_hashes, deeds)?;
        write::publish(self.device, &self.cache, superblock)?;
        deeds.add(Deed::Counted);
        Ok(())
    }

    fn look_for_damage(&self) -> Damaged {
        let newest = self.superblock.generation;
        let inodes = |branch| {
            let tree = self.tree::<Inodes>(branch);
            !walk(&tree, newest, |_| {}, |_, _| {}).is_empty()
        };
        let entries = self.tree::<Entries>(Branch::Entries);
        let data = self.tree::<Contents>(Branch::Data);
        Damaged {
            inodes: inodes(Branch::Inodes),
            orphans: inodes(Branch::Orphans),
            entries: !walk(&entries, newest, |_| {}, |_, _| {}).is_empty(),
            hashes: self.hashes_are_damaged(),
            data: !walk(&data, newest, |_| {}, |_, _| {}).is_empty(),
        }
    }

    fn hashes_are_damaged(&self) -> bool {
        let hashes = self.tree::<Hashes>(Branch::Hashes);
        !walk(&hashes, self.superblock.generation, |_| {}, |_, ()| {}).is_empty()
    }

    /// What waits in the journal has blocks, too.
    ///
    /// # Errors
    /// Those of the device: what cannot be read now may be replayed later, and its blocks are not known.
    fn mark_journalled(&self, taken: &mut Used) -> Result<()> {
        if self.superblock.clean {
            return Ok(());
        }
        let superblock = &self.superblock;
        let device = Arc::clone(self.device);
        let opened = Journal::open(device, superblock.region(), superblock.journal_position);
        let mark = || -> journal::Result<()> {
            let mut replay = opened?;
            while let Some(mut batch) = replay.next_batch()? {
                while let Some(record) = batch.next()? {
                    if let Record::Map(map) = record {
                        taken.mark(Extent::new(map.start, map.blocks));
                    }
                }
            }
            Ok(())
        };
        match mark() {
            Err(error @ journal::Error::Device(_)) => Err(error.into()),
            // Up to what is damaged: the rest will not be replayed either.
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Reads everything and decides what is to be changed.
    fn survey(&self, nodes: &Used, damaged: &mut Damaged, deeds: &mut Deeds) -> Result<Surveyed> {
        let (newest, seed) = (self.superblock.generation, self.superblock.hash_seed);
        let most = deeds.most;
        let mut census = Census::default();
        let tree = self.tree::<Inodes>(Branch::Inodes);
        let found = walk(&tree, newest, |_| {}, |_, inode: Inode| census.push(inode));
        damaged.inodes = !found.is_empty();
        let tree = self.tree::<Inodes>(Branch::Orphans);
        let mut orphans = std::mem::take(&mut census.orphans);
        let found = walk(
            &tree,
            newest,
            |_| {},
            |ino, _| {
                orphans.insert(ino);
            },
        );
        damaged.orphans = !found.is_empty();
        census.orphans = orphans;
        damaged.hashes = self.hashes_are_damaged();
        mend_root(&mut census, deeds, self.now);

        let mut names = names::Survey::new(&mut census, seed, self.now, most);
        let tree = self.tree::<Entries>(Branch::Entries);
        let found = walk(
            &tree,
            newest,
            |_| {},
            |key, entry: Entry<'_>| {
                names.record(key, entry);
            },
        );
        damaged.entries = !found.is_empty();
        let mut plan = Plan::default();
        let nowhere = std::mem::take(&mut names.nowhere);
        let lost_and_found = (names.found, std::mem::take(&mut names.found_names));
        let taken_names = std::mem::take(&mut names.taken);
        plan.names = std::mem::take(&mut names.changes);
        collect(deeds, std::mem::take(&mut names.deeds));

        let mut content = contents::Survey::new(&mut census, nodes, seed, most);
        let tree = self.tree::<Contents>(Branch::Data);
        let found = walk(
            &tree,
            newest,
            |_| {},
            |key, data: Data<'_>| {
                content.record(key, &data);
            },
        );
        damaged.data = !found.is_empty();
        content.finish();
        plan.data = std::mem::take(&mut content.changes);
        let (doubles, astray) = (
            std::mem::take(&mut content.doubles),
            std::mem::take(&mut content.astray),
        );
        let strangers = std::mem::take(&mut content.strangers);
        collect(deeds, std::mem::take(&mut content.deeds));
        let taken = content.taken;
        self.bring_home(astray, damaged.data, &mut plan, deeds)?;

        let mut names = names::Survey::new(&mut census, seed, self.now, most);
        names.nowhere = nowhere;
        names.lead_nowhere(|ino, kind| can_be(strangers.get(&ino), kind));
        plan.names.append(&mut names.changes);
        collect(deeds, std::mem::take(&mut names.deeds));
        self.adopt(strangers, &mut census, &mut plan, deeds);
        for ino in census.settle() {
            deeds.add(Deed::InodeChanged { ino });
        }
        self.mend_paths(&mut census, lost_and_found, taken_names, &mut plan, deeds);
        Ok((plan, doubles, taken))
    }

    fn mend_paths(
        &self,
        census: &mut Census,
        (found, found_names): (Option<Ino>, Vec<Box<[u8]>>),
        taken: Vec<Box<[u8]>>,
        plan: &mut Plan,
        deeds: &mut Deeds,
    ) {
        let waiting = if self.superblock.clean {
            0
        } else {
            NUMBERS_LEFT
        };
        let mut paths = Paths {
            last_ino: self.superblock.last_ino.max(census.last()) + waiting,
            census: &mut *census,
            names: &mut plan.names,
            deeds,
            found,
            found_names,
            taken,
            now: self.now,
        };
        paths.mend();
        plan.last_ino = paths.last_ino;
        let changed = census.iter().filter(|known| known.is_changed);
        plan.inodes = changed
            .map(|known| (known.ino(), Some(known.inode.clone())))
            .collect();
        let orphans: BTreeMap<Ino, Option<Inode>> = census
            .iter()
            .filter(|known| known.inode.record.nlink == 0)
            .map(|known| (known.ino(), Some(known.inode.clone())))
            .collect();
        let differ = !orphans.keys().eq(census.orphans.iter());
        plan.orphans = differ.then_some(orphans);
    }

    /// Puts attributes to where their names lead. `damaged`: could a part of the tree not be read before? What lay there
    /// is lost.
    ///
    /// # Errors
    /// If a part of it cannot be read now: an attribute that lies there would be overwritten.
    fn bring_home(
        &self,
        astray: Vec<(Ino, Held)>,
        damaged: bool,
        plan: &mut Plan,
        deeds: &mut Deeds,
    ) -> Result<()> {
        let tree = self.tree::<Contents>(Branch::Data);
        let hasher = crate::store::hash::NameHasher::new(self.superblock.hash_seed);
        for (ino, held) in astray {
            let Held::Xattr { name, .. } = &held else {
                continue;
            };
            let hash = hasher.hash(name);
            let is_free = |key: &DataKey| match plan.data.get(key) {
                Some(change) => Ok(change.is_none()),
                None => is_free(tree.get(key, |_| ()), damaged),
            };
            let mut keys = (0..u32::MAX).map(|ordinal| DataKey::xattr(ino, hash, ordinal));
            let free = keys.find_map(|key| match is_free(&key) {
                Ok(free) => free.then_some(Ok(key)),
                Err(error) => Some(Err(error)),
            });
            let Some(key) = free.transpose()? else {
                continue;
            };
            let name = name.clone();
            plan.data.insert(key, Some(held));
            deeds.add(Deed::XattrMoved { ino, name });
        }
        Ok(())
    }

    /// Content whose inodes are not there: those that got one have a length now, others get one if there
    /// is anything but attributes.
    fn adopt(
        &self,
        strangers: BTreeMap<Ino, Stranger>,
        census: &mut Census,
        plan: &mut Plan,
        deeds: &mut Deeds,
    ) {
        for (ino, stranger) in strangers {
            let length = stranger.inline.or(stranger.extents);
            if census.get(ino).is_none() && length.is_some() {
                let kind = FileType::Regular;
                census.make(ino, kind, 0o600, self.now);
                deeds.add(Deed::InodeMade { ino, kind });
            }
            let Some(known) = census.get_mut(ino) else {
                for key in stranger.keys {
                    plan.data.insert(key, None);
                }
                deeds.add(Deed::ContentRemoved { ino, offset: 0 });
                continue;
            };
            if known.kind() != FileType::Directory {
                known.inode.record.size = length.unwrap_or(0);
                known.length = stranger.inline;
                known.blocks = stranger.blocks;
            }
        }
    }

    fn write(
        &self,
        mut writer: Writer<'_>,
        plan: &Plan,
        damaged: Damaged,
        depth: Depth,
        wrong_hashes: bool,
        deeds: &mut Deeds,
    ) -> Result<Superblock> {
        let root = |branch| self.root(branch);
        let inodes =
            writer.tree::<Inodes, Inode>(root(Branch::Inodes), damaged.inodes, &plan.inodes)?;
        let entries =
            writer.tree::<Entries, Name>(root(Branch::Entries), damaged.entries, &plan.names)?;
        let data = writer.tree::<Contents, Held>(root(Branch::Data), damaged.data, &plan.data)?;
        let hashes = if damaged.entries || damaged.hashes || wrong_hashes || !plan.names.is_empty()
        {
            let seed = self.superblock.hash_seed;
            writer.hashes(entries, seed)?
        } else {
            root(Branch::Hashes)
        };
        let none = BTreeMap::new();
        let orphans = match &plan.orphans {
            Some(orphans) => writer.tree::<Inodes, Inode>(None, false, orphans)?,
            None => writer.tree::<Inodes, Inode>(root(Branch::Orphans), damaged.orphans, &none)?,
        };
        let rebuilt = [
            (damaged.inodes, Branch::Inodes, inodes),
            (damaged.entries, Branch::Entries, entries),
            (damaged.hashes, Branch::Hashes, hashes),
            (damaged.data, Branch::Data, data),
            (damaged.orphans, Branch::Orphans, orphans),
        ];
        for (_, branch, root) in rebuilt.iter().filter(|(damaged, ..)| *damaged) {
            let (branch, records) = (*branch, root.map_or(0, |root| root.records));
            deeds.add(Deed::TreeRebuilt { branch, records });
        }
        let last = match depth {
            Depth::All => plan.last_ino,
            Depth::Trees => self.superblock.last_ino,
        };
        if last >= 1 << 62 {
            return Err(Error::Damaged(format!("an inode has the number {last}")));
        }
        Ok(Superblock {
            generation: writer.generation,
            written: self.now,
            roots: [inodes, entries, hashes, data].map(|root| [root, None, None, None]),
            orphans,
            inodes: inodes.map_or(0, |root| root.records),
            last_ino: last,
            ..self.superblock.clone()
        })
    }
}

/// Has nobody this key, as a look at its tree says? What could not be read before is lost.
fn is_free(found: tree::Result<Option<()>>, damaged: bool) -> tree::Result<bool> {
    match found {
        Ok(found) => Ok(found.is_none()),
        Err(_) if damaged => Ok(true),
        Err(error) => Err(error),
    }
}

/// Can an inode that had this be of this type?
fn can_be(stranger: Option<&Stranger>, kind: FileType) -> bool {
    match (kind, stranger) {
        (FileType::Symlink, Some(stranger)) => stranger.inline.is_some(),
        (FileType::Symlink, None) => false,
        _ => true,
    }
}

fn collect(deeds: &mut Deeds, some: Deeds) {
    for repair_action in some.kept {
        deeds.add(repair_action);
    }
    deeds.more += some.more;
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::Errno;

    #[test]
    fn a_key_that_cannot_be_read_is_free_only_if_its_node_was_lost_before() {
        let unreadable = || {
            Err(tree::Error::Device {
                block: 9,
                errno: Errno::EIO,
            })
        };
        assert_eq!(is_free(Ok(None), false), Ok(true));
        assert_eq!(is_free(Ok(Some(())), true), Ok(false));
        assert_eq!(is_free(unreadable(), true), Ok(true));
        assert!(is_free(unreadable(), false).is_err());
    }
}
