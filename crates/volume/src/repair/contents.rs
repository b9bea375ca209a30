//! Content: what of it can stay, and what it says of lengths.
//!
//! Records come in the order of their keys: of an inode its inline bytes, its extents, its attributes.

use std::collections::BTreeMap;

use holdfast_types::{FileType, Ino};

use super::LOST_TARGET;
use super::census::Census;
use super::repair_action::{Deed, Deeds};
use super::room::Used;
use crate::BLOCK;
use crate::space;
use crate::store::hash::NameHasher;
use crate::store::records::Held;
use crate::tree::{Data, DataKey, DataKind, Extent, XattrValue};

/// Longest value of an extended attribute: Linux's.
const XATTR_MAX: u32 = 64 << 10;

/// What becomes of records; `None`: they go.
pub(super) type Changes = BTreeMap<DataKey, Option<Held>>;

/// What is learnt of the data tree.
pub(super) struct Survey<'s> {
    census: &'s mut Census,
    /// What nodes have, and the records so far.
    nodes: &'s Used,
    used: Used,
    /// These, and what is removed: nothing is written there before all is done.
    pub(super) taken: Used,
    hasher: NameHasher,
    pub(super) changes: Changes,
    pub(super) deeds: Deeds,
    /// Extents whose blocks somebody else has.
    pub(super) doubles: Vec<(DataKey, Extent)>,
    /// Attributes that are not where their names lead.
    pub(super) astray: Vec<(Ino, Held)>,
    /// What belongs to inodes that are not there.
    pub(super) strangers: BTreeMap<Ino, Stranger>,
    now: Now,
}

/// What an inode that is lost had.
#[derive(Debug, Default)]
pub(super) struct Stranger {
    /// Bytes in the tree.
    pub(super) inline: Option<u64>,
    /// Bytes up to the end of the last extent.
    pub(super) extents: Option<u64>,
    /// Blocks of its extents.
    pub(super) blocks: u64,
    /// All its keys.
    pub(super) keys: Vec<DataKey>,
}

/// The inode whose records come just now.
#[derive(Default)]
struct Now {
    ino: Option<Ino>,
    inline: Option<u64>,
    /// Where its last extent ends, in blocks.
    end: u64,
    /// Blocks of its extents that stay.
    blocks: u64,
    /// Its inline bytes stay, so no extent does.
    is_inline: bool,
    names: Vec<(u32, Box<[u8]>)>,
}

impl<'s> Survey<'s> {
    pub(super) fn new(census: &'s mut Census, nodes: &'s Used, seed: u64, most: usize) -> Self {
        Self {
            census,
            nodes,
            used: nodes.clone(),
            taken: nodes.clone(),
            hasher: NameHasher::new(seed),
            changes: Changes::new(),
            deeds: Deeds {
                most,
                ..Deeds::default()
            },
            doubles: Vec::new(),
            astray: Vec::new(),
            strangers: BTreeMap::new(),
            now: Now::default(),
        }
    }

    /// The next record.
    pub(super) fn record(&mut self, key: DataKey, value: &Data<'_>) {
        if self.now.ino != Some(key.ino) {
            self.settle();
            self.now = Now {
                ino: Some(key.ino),
                ..Now::default()
            };
        }
        match value {
            Data::Inline(bytes) => self.inline(key, bytes.len() as u64),
            Data::Extent(extent) => self.extent(key, extent),
            Data::Xattr { name, value } => self.attribute(key, name, value),
        }
        if self.census.get(key.ino).is_none() {
            self.strangers.entry(key.ino).or_default().keys.push(key);
        }
    }

    /// All records of an inode were seen.
    pub(super) fn settle(&mut self) {
        let blocks = std::mem::take(&mut self.now.blocks);
        if let Some(known) = self.now.ino.and_then(|ino| self.census.get_mut(ino)) {
            known.blocks = blocks;
        }
        let Some(found) = self.now.inline.take() else {
            return;
        };
        if let Some(known) = self.now.ino.and_then(|ino| self.census.get_mut(ino)) {
            known.length = Some(found);
            if known.inode.record.size != found {
                known.change(|record| record.size = found);
                let ino = known.ino();
                self.deeds.add(Deed::InodeChanged { ino });
            }
        }
    }

    /// Symbolic links that have no target get one.
    pub(super) fn finish(&mut self) {
        self.settle();
        let links = self.census.iter_mut();
        for known in links.filter(|known| known.kind() == FileType::Symlink) {
            if known.length.is_none() {
                let ino = known.ino();
                let key = DataKey::first(ino, DataKind::Inline);
                let target = Held::Inline(LOST_TARGET.to_vec());
                self.changes.insert(key, Some(target));
                known.change(|record| record.size = LOST_TARGET.len() as u64);
                known.length = Some(LOST_TARGET.len() as u64);
                self.deeds.add(Deed::TargetMade { ino });
            }
        }
    }

    fn remove(&mut self, key: DataKey) {
        self.changes.insert(key, None);
        let (ino, offset) = (key.ino, key.offset);
        self.deeds.add(Deed::ContentRemoved { ino, offset });
    }

    fn inline(&mut self, key: DataKey, len: u64) {
        match self
            .census
            .get(key.ino)
            .map(|known| (known.kind(), known.inode.record.size))
        {
            None => {
                self.strangers.entry(key.ino).or_default().inline = Some(len);
                self.now.is_inline = true;
            }
            Some((FileType::Regular | FileType::Symlink, size)) => {
                self.now.inline = Some(len);
                // Should there be extents, too, the length tells which are right.
                self.now.is_inline = size == len;
            }
            Some(_) => self.remove(key),
        }
    }

    fn extent(&mut self, key: DataKey, extent: &Extent) {
        self.taken
            .mark(space::Extent::new(extent.block, u64::from(extent.blocks)));
        let known = self.census.get(key.ino);
        let kind = known.map(super::census::Known::kind);
        if self.now.is_inline || !matches!(kind, None | Some(FileType::Regular)) {
            self.remove(key);
            return;
        }
        let size = known.map_or(u64::MAX, |known| known.inode.record.size);
        if self.now.inline.take().is_some() {
            self.remove(DataKey::first(key.ino, DataKind::Inline));
        }
        let Some((at, kept)) = clipped(key.offset, extent, self.now.end, size) else {
            self.remove(key);
            return;
        };
        let blocks = space::Extent::new(kept.block, u64::from(kept.blocks));
        if !self.used.is_possible(blocks) || self.nodes.overlaps(blocks) {
            self.remove(key);
            return;
        }
        let kept_key = DataKey { offset: at, ..key };
        if (at, kept) != (key.offset, *extent) {
            self.remove(key);
            self.changes.insert(kept_key, Some(Held::Extent(kept)));
        }
        if self.used.overlaps(blocks) {
            self.doubles.push((kept_key, kept));
        } else {
            self.used.mark(blocks);
        }
        self.now.end = at + u64::from(kept.blocks);
        self.now.blocks += u64::from(kept.blocks);
        if kind.is_none() {
            let bytes = self.now.end.saturating_mul(BLOCK as u64);
            let stranger = self.strangers.entry(key.ino).or_default();
            stranger.extents = Some(bytes);
            stranger.blocks = self.now.blocks;
        }
    }

    fn attribute(&mut self, key: DataKey, name: &[u8], value: &XattrValue<'_>) {
        if let XattrValue::External { extent, len } = value {
            let room = u64::from(extent.blocks) * BLOCK as u64;
            let blocks = space::Extent::new(extent.block, u64::from(extent.blocks));
            self.taken.mark(blocks);
            let fits = u64::from(*len) <= room && *len <= XATTR_MAX;
            if !fits || !self.used.is_possible(blocks) || self.used.overlaps(blocks) {
                self.remove(key);
                return;
            }
            self.used.mark(blocks);
        }
        if let Some(known) = self.census.get_mut(key.ino)
            && !known.inode.record.xattrs
        {
            known.change(|record| record.xattrs = true);
            let ino = key.ino;
            self.deeds.add(Deed::InodeChanged { ino });
        }
        let hash = self.hasher.hash(name);
        let is_known = self
            .now
            .names
            .iter()
            .any(|(known, before)| (*known, &**before) == (hash, name));
        if is_known {
            self.remove(key);
            return;
        }
        self.now.names.push((hash, name.into()));
        if (key.offset >> 32) as u32 != hash {
            self.changes.insert(key, None);
            let held = Held::of(Data::Xattr {
                name,
                value: *value,
            });
            self.astray.push((key.ino, held));
        }
    }
}

/// The part of an extent that lies behind the one before it, and before the file's end if it was
/// written.
fn clipped(offset: u64, extent: &Extent, begin: u64, size: u64) -> Option<(u64, Extent)> {
    let end = offset.saturating_add(u64::from(extent.blocks));
    let last = match extent.unwritten {
        true => u64::MAX,
        false => size.div_ceil(BLOCK as u64),
    };
    let (from, to) = (offset.max(begin), end.min(last));
    if from >= to {
        return None;
    }
    let kept = Extent {
        block: extent.block + (from - offset),
        // No longer than it was.
        blocks: (to - from) as u32,
        ..*extent
    };
    Some((from, kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extent_keeps_what_lies_between_its_neighbour_and_the_end() {
        let extent = |block, blocks, unwritten| Extent {
            block,
            blocks,
            birth: 1,
            unwritten,
            shared: false,
        };
        let written = extent(100, 10, false);
        let size = 12 * BLOCK as u64;
        assert_eq!(clipped(0, &written, 0, size), Some((0, written)));
        assert_eq!(
            clipped(5, &written, 7, size - 1),
            Some((7, extent(102, 5, false)))
        );
        assert_eq!(clipped(12, &written, 0, size), None);
        assert_eq!(clipped(0, &written, 10, size), None);
        let unwritten = extent(100, 10, true);
        assert_eq!(clipped(12, &unwritten, 0, size), Some((12, unwritten)));
    }
}
