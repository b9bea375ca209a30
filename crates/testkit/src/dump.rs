//! A dump of one part of a volume as text, for a developer and for tests.
//!
//! Every part is shown as the trees and bitmaps of the newest superblock have it: changes that only
//! the journal holds appear in [`Dump::journal`] alone. Nothing is written.

pub mod command;

use holdfast_device::BlockDevice;
use holdfast_types::{Errno, FileType, Ino};
use holdfast_volume::journal::Journal;
use holdfast_volume::superblock::{SLOTS, Superblock};
use holdfast_volume::tree::{
    Contents, DataKey, DataKind, Entries, EntryKey, Hashes, Inodes, Kind, NodeCache, NodeSource,
    Pointer, Record, Tree, UncheckedHeader,
};
use holdfast_volume::{BLOCK, Error, Result, read_superblock, space};
use std::fmt::{Debug, Write};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Bytes of nodes that stay in memory.
const CACHE: usize = 1 << 20;

#[derive(Debug)]
struct Nodes {
    device: Arc<dyn BlockDevice>,
    volume: u32,
}

impl NodeSource for Nodes {
    fn blocks(&self) -> u64 {
        self.device.size() / BLOCK as u64
    }

    fn volume(&self) -> u32 {
        self.volume
    }

    fn read(&self, block: u64, bytes: &mut [u8]) -> Result<(), Errno> {
        let read = self.device.read(block * BLOCK as u64, bytes);
        read.map_err(|error| Error::from(error).errno())
    }
}

/// A volume, opened to show its parts.
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
    /// [`Error::NoVolume`] or [`Error::Superblock`] if there is none; those of the device.
    pub fn open(device: Arc<dyn BlockDevice>) -> Result<Self> {
        let superblock = read_superblock(&device)?;
        let nodes = Nodes {
            device: Arc::clone(&device),
            volume: superblock.identity(),
        };
        Ok(Self {
            device,
            superblock,
            cache: NodeCache::new(nodes, CACHE),
        })
    }

    fn block(&self, block: u64) -> Result<[u8; BLOCK]> {
        let mut bytes = [0; BLOCK];
        self.device.read(block * BLOCK as u64, &mut bytes)?;
        Ok(bytes)
    }

    fn tree<R: Record>(&self, kind: Kind) -> Tree<'_, R, Nodes> {
        Tree::new(&self.cache, self.superblock.roots[kind as usize - 1][0])
    }

    /// Both slots of the superblock.
    ///
    /// # Errors
    /// Those of the device.
    pub fn superblock(&self) -> Result<String> {
        let mut text = String::new();
        for slot in SLOTS {
            let found = Superblock::decode(&self.block(slot)?, slot);
            let _ = writeln!(text, "slot {slot}: {found:#?}");
        }
        Ok(text)
    }

    /// The runs of free blocks of a group.
    ///
    /// # Errors
    /// [`Error::Geometry`] if there is no such group; those of the device.
    pub fn group(&self, group: u64) -> Result<String> {
        let layout = self.superblock.layout();
        layout.check()?;
        if group >= layout.groups() {
            return Err(missing("group", group));
        }
        let extent = layout.group(group);
        let one = self.block(layout.slot(group, 0))?;
        let other = self.block(layout.slot(group, 1))?;
        let generation = self.superblock.generation;
        let mut text = format!("{extent:?}\n");
        let found = match space::recorded(&layout, group, generation, [&one, &other]) {
            Ok(found) => found,
            Err(damage) => return Ok(format!("{text}damage: {damage:?}\n")),
        };
        let (slot, other) = (found.slot, &found.other);
        let _ = writeln!(text, "slot: {slot:?}, the other one: {other:?}");
        let is_free = |index: &u64| {
            let words = found.words.as_ref();
            words.is_none_or(|words| words[(index / 64) as usize] >> (index % 64) & 1 == 0)
        };
        let mut runs: Vec<space::Extent> = Vec::new();
        for index in (layout.reserved(group)..extent.length).filter(is_free) {
            let block = extent.start + index;
            match runs.last_mut() {
                Some(run) if run.start + run.length == block => run.length += 1,
                _ => runs.push(space::Extent::new(block, 1)),
            }
        }
        for run in runs {
            line(&mut text, "free", &run);
        }
        Ok(text)
    }

    /// An inode's record, content and names.
    ///
    /// # Errors
    /// [`Error::Geometry`] if there is no such inode; damage.
    pub fn inode(&self, number: u64) -> Result<String> {
        let (mut text, ino) = (String::new(), Ino(number));
        let inode = self.tree::<Inodes>(Kind::Inodes).get(&ino, |inode| inode)?;
        let inode = inode.ok_or_else(|| missing("inode", number))?;
        line(&mut text, "inode", &inode);
        let first = DataKey::first(ino, DataKind::Inline);
        let contents = self.tree::<Contents>(Kind::Data);
        contents.range(Some(&first))?.each(|key, value| {
            if key.ino != ino {
                return ControlFlow::Break(());
            }
            line(&mut text, "content", &(key, value));
            ControlFlow::Continue(())
        })?;
        if inode.record.kind == FileType::Directory {
            let (dir, cookie) = (ino, 0);
            let entries = self.tree::<Entries>(Kind::Entries);
            let mut range = entries.range(Some(&EntryKey { dir, cookie }))?;
            range.each(|key, entry| {
                if key.dir != ino {
                    return ControlFlow::Break(());
                }
                line(&mut text, "name", &(key, entry));
                ControlFlow::Continue(())
            })?;
        }
        Ok(text)
    }

    /// The node that begins at this block: the unchecked claim of its header, then its content or
    /// what is wrong with it.
    ///
    /// # Errors
    /// [`Error::Geometry`] if no node begins there; those of the device.
    pub fn node(&self, block: u64) -> Result<String> {
        let nothing = || missing("node at block", block);
        if block >= self.cache.source().blocks() {
            return Err(nothing());
        }
        let header = UncheckedHeader::read(&self.block(block)?).ok_or_else(nothing)?;
        let node = Pointer {
            block,
            ..header.node
        };
        let inside = match header.kind {
            Kind::Inodes => self.inside::<Inodes>(node, header.level),
            Kind::Entries => self.inside::<Entries>(node, header.level),
            Kind::Hashes => self.inside::<Hashes>(node, header.level),
            Kind::Data => self.inside::<Contents>(node, header.level),
        };
        Ok(format!("{header:?}\n{inside}"))
    }

    fn inside<R: Record>(&self, node: Pointer, level: u8) -> String {
        let mut text = String::new();
        let read = self.cache.read_node::<R>(node, level).and_then(|node| {
            node.each_child::<R>(|key, pointer| line(&mut text, "child", &(key, pointer)))?;
            match level {
                0 => node.each_record::<R>(|key, value| line(&mut text, "record", &(key, value))),
                _ => Ok(()),
            }
        });
        if let Err(error) = read {
            let _ = writeln!(text, "damage: {error}");
        }
        text
    }

    /// Every batch that the journal holds beyond the trees, in order.
    ///
    /// # Errors
    /// Damage, after `each` got the batches before it; those of the device.
    pub fn journal(&self, mut each: impl FnMut(&str)) -> Result<()> {
        let superblock = &self.superblock;
        let device = Arc::clone(&self.device);
        let mut replay = Journal::open(device, superblock.region(), superblock.journal_position)?;
        while let Some(mut batch) = replay.next_batch()? {
            let mut text = format!("{:?}, subvolume {}\n", batch.lsn(), batch.subvolume());
            while let Some(record) = batch.next()? {
                line(&mut text, "  change", &record);
            }
            each(&text);
        }
        Ok(())
    }
}

fn missing(what: &str, number: u64) -> Error {
    Error::Geometry(format!("the volume has no {what} {number}"))
}

/// Adds `name: value`, with byte strings as text.
fn line(text: &mut String, name: &str, value: &dyn Debug) {
    let _ = writeln!(text, "{name}: {}", with_strings(&format!("{value:?}")));
}

/// Replaces lists of bytes, as `Debug` prints them, by escaped strings.
fn with_strings(debug: &str) -> String {
    let mut parts = debug.split('[');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let bytes = part.split_once(']').and_then(|(list, behind)| {
            let bytes: Result<Vec<u8>, _> = list.split(", ").map(str::parse).collect();
            Some((bytes.ok()?, behind))
        });
        let _ = match bytes {
            Some((bytes, behind)) => write!(text, "\"{}\"{behind}", bytes.escape_ascii()),
            None => write!(text, "[{part}"),
        };
    }
    text
}
