//! One round of a repair: survey, plan, write.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdfast_device::BlockDevice;
use holdfast_types::{FileType, Ino, Time};

use super::census::Census;
use super::contents::{self, Ownerless};
use super::names::{self, LostAndFound, Name};
use super::paths::{Paths, mend_root};
use super::repair_action::{Action, Actions};
use super::room::Room;
use super::write::{self, Writer};
use crate::check::{BlockSet, Branch, Finding, Report, walk};
use crate::error::{Error, Result};
use crate::journal::{self, Journal, Record};
use crate::nodes::Nodes;
use crate::space::Extent;
use crate::store::Held;
use crate::superblock::Superblock;
use crate::tree;
use crate::tree::{
    Contents, Data, DataKey, Entries, Entry, Hashes, Inode, Inodes, NodeCache, Tree,
};

/// Bytes of nodes that are kept: each is read once.
const CACHE: usize = 1 << 20;

/// Inode numbers skipped where a journal that may have given them out waits, or was lost.
pub(super) const NUMBERS_LEFT: u64 = 1 << 32;

/// The depth of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// Builds damaged trees anew, so that a journal can be replayed over them.
    Trees,
    /// Everything.
    All,
}

/// The damaged trees.
#[derive(Clone, Copy, Debug, Default)]
struct Damaged {
    inodes: bool,
    entries: bool,
    hashes: bool,
    data: bool,
    orphans: bool,
}

/// The changes to write.
#[derive(Default)]
struct Plan {
    inodes: BTreeMap<Ino, Option<Inode>>,
    names: names::Changes,
    data: contents::Changes,
    /// The orphans, if their tree is to be written again.
    orphans: Option<BTreeMap<Ino, Option<Inode>>>,
    last_ino: u64,
}

/// The plan, extents with blocks of other extents, and the blocks in use.
type Surveyed = (Plan, Vec<(DataKey, crate::tree::Extent)>, BlockSet);

/// A round, based on one superblock.
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

    /// Writes bitmaps and superblocks of a new generation for these trees.
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

    fn tree<R: crate::tree::Record>(&self, branch: Branch) -> Tree<'_, R, Nodes> {
        Tree::new(&self.cache, branch.root(&self.superblock))
    }

    /// Runs the round. `found`: the result of the check before it.
    pub(super) fn run(self, depth: Depth, found: &Report, actions: &mut Actions) -> Result<()> {
        let nodes = BlockSet::new(self.superblock.layout());
        write::nodes(&self.cache, &self.superblock, &nodes);
        let mut damaged = Damaged::default();
        let (mut plan, contested, taken) = match depth {
            Depth::All => self.survey(&nodes, &mut damaged, actions)?,
            Depth::Trees => {
                write::data(&self.cache, &self.superblock, &nodes);
                damaged = self.look_for_damage();
                (Plan::default(), Vec::new(), nodes)
            }
        };
        self.mark_journalled(&taken)?;
        let generation = self.superblock.generation + 1;
        let mut writer = Writer {
            cache: &self.cache,
            room: Room::new(Arc::clone(self.device), taken),
            generation,
        };
        for (key, extent) in contested {
            let block = writer.room.copy(extent.span())?;
            let copy = crate::tree::Extent {
                block,
                generation,
                ..extent
            };
            plan.data.insert(key, Some(Held::Extent(copy)));
            let (ino, offset) = (key.ino, key.offset);
            actions.add(Action::ContentCopied { ino, offset });
        }
        let wrong_hashes = found.more > 0
            || found
                .findings
                .iter()
                .any(|finding| matches!(finding, Finding::NoHash { .. } | Finding::NoEntry { .. }));
        let superblock = self.write(writer, &plan, damaged, depth, wrong_hashes, actions)?;
        write::publish(self.device, &self.cache, superblock)?;
        actions.add(Action::Counted);
        Ok(())
    }

    fn look_for_damage(&self) -> Damaged {
        Damaged {
            inodes: self.is_damaged::<Inodes>(Branch::Inodes),
            orphans: self.is_damaged::<Inodes>(Branch::Orphans),
            entries: self.is_damaged::<Entries>(Branch::Entries),
            hashes: self.is_damaged::<Hashes>(Branch::Hashes),
            data: self.is_damaged::<Contents>(Branch::Data),
        }
    }

    fn is_damaged<R: crate::tree::Record>(&self, branch: Branch) -> bool {
        self.walk::<R>(branch, |_, _| {})
    }

    /// Calls `record` with the records of a tree. Returns whether the tree is damaged.
    fn walk<R: crate::tree::Record>(
        &self,
        branch: Branch,
        record: impl for<'v> FnMut(R::Key, R::Value<'v>) + Send,
    ) -> bool {
        walk(&self.tree::<R>(branch), self.superblock.generation, record)
    }

    /// Marks the blocks to which the journal refers.
    ///
    /// # Errors
    /// Those of the device: records that cannot be read now may be replayed later, and their blocks
    /// are unknown.
    fn mark_journalled(&self, taken: &BlockSet) -> Result<()> {
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
                        taken.insert(Extent::new(map.start, map.blocks));
                    }
                }
            }
            Ok(())
        };
        match mark() {
            Err(error @ journal::Error::Device(_)) => Err(error.into()),
            // Up to the damage: a replay ends there as well.
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Reads all trees and plans the changes.
    fn survey(
        &self,
        nodes: &BlockSet,
        damaged: &mut Damaged,
        actions: &mut Actions,
    ) -> Result<Surveyed> {
        let seed = self.superblock.hash_seed;
        let mut census = Census::default();
        damaged.inodes = self.walk::<Inodes>(Branch::Inodes, |_, inode| census.push(inode));
        let mut orphans = BTreeSet::new();
        damaged.orphans = self.walk::<Inodes>(Branch::Orphans, |ino, _| {
            orphans.insert(ino);
        });
        damaged.hashes = self.is_damaged::<Hashes>(Branch::Hashes);
        mend_root(&mut census, actions, self.now);

        let mut names = names::Survey::new(&mut census, actions, seed, self.now);
        damaged.entries = self.walk::<Entries>(Branch::Entries, |key, entry: Entry<'_>| {
            names.record(key, entry);
        });
        let names::Survey {
            dangling,
            lost,
            changes: names,
            ..
        } = names;

        let mut content = contents::Survey::new(&mut census, actions, nodes, seed);
        damaged.data = self.walk::<Contents>(Branch::Data, |key, data: Data<'_>| {
            content.record(key, &data);
        });
        content.finish();
        let contents::Survey {
            changes: data,
            contested,
            misplaced,
            ownerless,
            taken,
            ..
        } = content;
        let mut plan = Plan {
            names,
            data,
            ..Plan::default()
        };
        self.move_misplaced(misplaced, damaged.data, &mut plan, actions)?;

        let mut names = names::Survey::new(&mut census, actions, seed, self.now);
        names.count_dangling(dangling, |ino, kind| can_be(ownerless.get(&ino), kind));
        plan.names.append(&mut names.changes);
        self.adopt(ownerless, &mut census, &mut plan, actions);
        for ino in census.finish() {
            actions.add(Action::InodeChanged { ino });
        }
        self.mend_paths(&mut census, lost, &orphans, &mut plan, actions);
        Ok((plan, contested, taken))
    }

    fn mend_paths(
        &self,
        census: &mut Census,
        lost: LostAndFound,
        old_orphans: &BTreeSet<Ino>,
        plan: &mut Plan,
        actions: &mut Actions,
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
            actions,
            lost,
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
        let differ = !orphans.keys().eq(old_orphans);
        plan.orphans = differ.then_some(orphans);
    }

    /// Moves attributes to the keys of their names. `damaged`: was a part of the tree unreadable
    /// before? Its records are lost.
    ///
    /// # Errors
    /// If a part of the tree cannot be read only now: an attribute in it would be overwritten.
    fn move_misplaced(
        &self,
        misplaced: Vec<(Ino, Held)>,
        damaged: bool,
        plan: &mut Plan,
        actions: &mut Actions,
    ) -> Result<()> {
        let tree = self.tree::<Contents>(Branch::Data);
        let hasher = crate::store::NameHasher::new(self.superblock.hash_seed);
        for (ino, held) in misplaced {
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
            actions.add(Action::XattrMoved { ino, name });
        }
        Ok(())
    }

    /// Assigns the content of missing inodes. Inodes made anew for their names get its length. For
    /// the others an inode is made, if there is more than attributes.
    fn adopt(
        &self,
        ownerless: BTreeMap<Ino, Ownerless>,
        census: &mut Census,
        plan: &mut Plan,
        actions: &mut Actions,
    ) {
        for (ino, content) in ownerless {
            let length = content.inline.or(content.extents);
            if census.get(ino).is_none() && length.is_some() {
                let kind = FileType::Regular;
                census.make(ino, kind, 0o600, self.now);
                actions.add(Action::InodeMade { ino, kind });
            }
            let Some(known) = census.get_mut(ino) else {
                for key in content.keys {
                    plan.data.insert(key, None);
                }
                actions.add(Action::ContentRemoved { ino, offset: 0 });
                continue;
            };
            if known.kind() != FileType::Directory {
                known.inode.record.size = length.unwrap_or(0);
                known.length = content.inline;
                known.blocks = content.blocks;
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
        actions: &mut Actions,
    ) -> Result<Superblock> {
        let root = |branch: Branch| branch.root(&self.superblock);
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
            actions.add(Action::TreeRebuilt { branch, records });
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

/// Is this key unused, by the result of its lookup? Records that were unreadable before are lost.
fn is_free(found: tree::Result<Option<()>>, damaged: bool) -> tree::Result<bool> {
    match found {
        Ok(found) => Ok(found.is_none()),
        Err(_) if damaged => Ok(true),
        Err(error) => Err(error),
    }
}

/// Can an inode with this content be of this type?
fn can_be(content: Option<&Ownerless>, kind: FileType) -> bool {
    match (kind, content) {
        (FileType::Symlink, Some(content)) => content.inline.is_some(),
        (FileType::Symlink, None) => false,
        _ => true,
    }
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
