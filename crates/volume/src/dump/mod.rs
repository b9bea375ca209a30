//! Dumps: what single parts of a volume hold, for those who want to see the bytes' meaning.
//!
//! Everything is shown as the trees and bitmaps of the newest superblock have it. What only the journal
//! knows is shown by `dump journal` alone. Nothing is written.

mod records;
mod shown;
mod volume;

pub use shown::Shown;

use std::ops::ControlFlow;
use std::sync::Arc;

use holdfast_device::BlockDevice;
use holdfast_types::{FileType, Ino};

use crate::check::Branch;
use crate::journal::Journal;
use crate::nodes::Nodes;
use crate::store::newest_superblock;
use crate::superblock::Superblock;
use crate::tree::{
    Claim, Contents, Entries, EntryKey, Hashes, Inodes, Key, Kind, NodeCache, Pointer, Record, Tree,
};
use crate::{BLOCK, Error, Result};

const CACHE: usize = 1 << 20;

/// A volume that is looked at.
#[derive(Debug)]
pub struct Dump {
    device: Arc<dyn BlockDevice>,
    superblock: Superblock,
    cache: NodeCache<Nodes>,
}

impl Dump {
    /// Reads the newest superblock.
    ///
    /// # Errors
    /// [`Error::NoVolume`], [`Error::Superblock`] if there is none; those of the device.
    pub fn open(device: Arc<dyn BlockDevice>) -> Result<Self> {
        let superblock = newest_superblock(&device)?;
        let nodes = Nodes {
            device: Arc::clone(&device),
            volume: superblock.identity(),
        };
        let cache = NodeCache::new(nodes, CACHE);
        Ok(Self {
            device,
            superblock,
            cache,
        })
    }

    /// Both slots, and all that the newest superblock says.
    ///
    /// # Errors
    /// Those of the device.
    pub fn superblock(&self) -> Result<Shown> {
        volume::superblock(&self.device, &self.superblock)
    }

    /// A group's bitmaps, and the runs of free blocks.
    ///
    /// # Errors
    /// [`Error::Geometry`] if there is no such group; those of the device.
    pub fn group(&self, group: u64) -> Result<Shown> {
        volume::group(&self.device, &self.superblock, group)
    }

    fn tree<R: Record>(&self, branch: Branch) -> Tree<'_, R, Nodes> {
        Tree::new(&self.cache, self.superblock.roots[branch as usize][0])
    }

    /// An inode's attributes, what it contains, and the names in it.
    ///
    /// # Errors
    /// [`Error::Geometry`] if there is none; damage.
    pub fn inode(&self, number: u64) -> Result<Shown> {
        let ino = Ino(number);
        let found = self
            .tree::<Inodes>(Branch::Inodes)
            .get(&ino, |inode| inode)?;
        let inode =
            found.ok_or_else(|| Error::Geometry(format!("the trees have no inode {number}")))?;
        let kind = inode.record.kind;
        let mut fields = records::inode(&inode);
        let mut content = Vec::new();
        let tree = self.tree::<Contents>(Branch::Data);
        let first = crate::tree::DataKey::first(ino, crate::tree::DataKind::Inline);
        tree.range(Some(&first))?.each(|key, value| {
            if key.ino != ino {
                return ControlFlow::Break(());
            }
            content.push(records::data(&key, &value));
            ControlFlow::Continue(())
        })?;
        fields.push(("content", Shown::List(content)));
        if kind == FileType::Directory {
            let mut names = Vec::new();
            let first = EntryKey {
                dir: ino,
                cookie: 0,
            };
            let tree = self.tree::<Entries>(Branch::Entries);
            tree.range(Some(&first))?.each(|key, entry| {
                if key.dir != ino {
                    return ControlFlow::Break(());
                }
                names.push(records::entry(&key, &entry));
                ControlFlow::Continue(())
            })?;
            fields.push(("names", Shown::List(names)));
        }
        Ok(Shown::Fields(fields))
    }

    /// A node that begins at this block: what its header claims, whether that is so, and what it holds.
    ///
    /// # Errors
    /// [`Error::Geometry`] if no node begins there; those of the device.
    pub fn node(&self, block: u64) -> Result<Shown> {
        let nothing = || Error::Geometry(format!("at block {block} no node begins"));
        if block >= self.device.size() / BLOCK as u64 {
            return Err(nothing());
        }
        let mut bytes = vec![0; BLOCK];
        self.device.read(block * BLOCK as u64, &mut bytes)?;
        let claim = Claim::read(&bytes).ok_or_else(nothing)?;
        let mut fields = vec![
            ("tree", Shown::Text(format!("{:?}", claim.kind))),
            ("level", Shown::Number(claim.level.into())),
            ("address", Shown::Number(claim.node.block)),
            ("blocks", Shown::Number(claim.node.blocks.into())),
            ("generation", Shown::Number(claim.node.birth)),
            ("realm", Shown::Number(claim.subvolume.into())),
            ("used bytes", Shown::Number(claim.used.into())),
            ("count", Shown::Number(claim.count.into())),
        ];
        // It is looked for where it lies, whatever it says.
        let node = Pointer {
            block,
            ..claim.node
        };
        let inside = match claim.kind {
            Kind::Inodes => self.inside::<Inodes>(node, claim.level, |_, inode| {
                Shown::Fields(records::inode(&inode))
            }),
            Kind::Entries => {
                self.inside::<Entries>(node, claim.level, |key, entry| records::entry(&key, &entry))
            }
            Kind::Hashes => self.inside::<Hashes>(node, claim.level, |key, ()| records::hash(&key)),
            Kind::Data => {
                self.inside::<Contents>(node, claim.level, |key, data| records::data(&key, &data))
            }
        };
        fields.extend(inside);
        Ok(Shown::Fields(fields))
    }

    fn inside<R: Record>(
        &self,
        node: Pointer,
        level: u8,
        show: impl Fn(R::Key, R::Value<'_>) -> Shown,
    ) -> Vec<(&'static str, Shown)> {
        let node = match self.cache.read_node::<R>(node, level) {
            Ok(node) => node,
            Err(error) => return vec![("damage", Shown::of(error))],
        };
        let (mut children, mut records) = (Vec::new(), Vec::new());
        let children_read = node.each_child::<R>(|key, pointer| {
            children.push(Shown::Fields(vec![
                ("key", Shown::Text(format!("{key:?}"))),
                ("block", Shown::Number(pointer.block)),
                ("generation", Shown::Number(pointer.birth)),
            ]));
        });
        let records_read = match level {
            0 => node.each_record::<R>(|key, value| records.push(show(key, value))),
            _ => Ok(()),
        };
        let mut fields = match level {
            0 => vec![("records", Shown::List(records))],
            _ => vec![("children", Shown::List(children))],
        };
        if let Err(error) = children_read.and(records_read) {
            fields.push(("damage", Shown::of(error)));
        }
        debug_assert!(R::Key::LEN > 0);
        fields
    }

    /// Shows every batch that the journal holds beyond the trees, in order.
    ///
    /// # Errors
    /// Damage, behind what could be read; those of the device.
    pub fn journal(&self, mut each: impl FnMut(Shown)) -> Result<()> {
        let superblock = &self.superblock;
        let device = Arc::clone(&self.device);
        let mut replay = Journal::open(device, superblock.region(), superblock.journal_position)?;
        while let Some(mut batch) = replay.next_batch()? {
            let (lsn, subvolume) = (batch.lsn().0, batch.subvolume());
            let mut changes = Vec::new();
            while let Some(record) = batch.next()? {
                changes.push(records::change(&record));
            }
            each(Shown::Fields(vec![
                ("stamp", Shown::Number(lsn)),
                ("realm", Shown::Number(subvolume)),
                ("changes", Shown::List(changes)),
            ]));
        }
        Ok(())
    }
}
