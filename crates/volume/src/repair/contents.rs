//! Content: the records that stay, and the lengths that they imply.
//!
//! Records come in the order of their keys: of each inode its inline bytes, its extents, its
//! attributes.

use std::collections::BTreeMap;

use holdfast_types::{FileType, Ino};

use super::census::Census;
use super::repair_action::{Action, Actions};
use crate::block::BLOCK;
use crate::check::BlockSet;
use crate::store::Held;
use crate::store::NameHasher;
use crate::tree::{Data, DataKey, DataKind, Extent, XattrValue};

/// The longest value of an extended attribute: Linux's limit.
const XATTR_MAX: u32 = 64 << 10;

/// The target of symbolic links that lost theirs.
pub const LOST_TARGET: &[u8] = b"lost-target";

/// Changes of records; `None` deletes.
pub(super) type Changes = BTreeMap<DataKey, Option<Held>>;

/// The survey of the data tree.
pub(super) struct Survey<'s> {
    census: &'s mut Census,
    /// Blocks of nodes, and blocks of the records so far.
    nodes: &'s BlockSet,
    used: BlockSet,
    /// The same with the blocks of removed records: the repair writes to none of them.
    pub(super) taken: BlockSet,
    hasher: NameHasher,
    pub(super) changes: Changes,
    actions: &'s mut Actions,
    /// Extents with blocks that another record has.
    pub(super) contested: Vec<(DataKey, Extent)>,
    /// Attributes with keys that do not match their names.
    pub(super) misplaced: Vec<(Ino, Held)>,
    /// Content of missing inodes.
    pub(super) ownerless: BTreeMap<Ino, Ownerless>,
    now: Now,
}

/// The content of a missing inode.
#[derive(Debug, Default)]
pub(super) struct Ownerless {
    /// The length of its inline bytes.
    pub(super) inline: Option<u64>,
    /// The end of its last extent in bytes.
    pub(super) extents: Option<u64>,
    /// Blocks of its extents.
    pub(super) blocks: u64,
    /// All its keys.
    pub(super) keys: Vec<DataKey>,
}

/// The inode of the current records.
#[derive(Default)]
struct Now {
    ino: Option<Ino>,
    inline: Option<u64>,
    /// The end of its last extent, in blocks.
    end: u64,
    /// Blocks of its kept extents.
    blocks: u64,
    /// Its inline bytes stay, so its extents are removed.
    is_inline: bool,
    names: Vec<(u32, Box<[u8]>)>,
}

impl<'s> Survey<'s> {
    pub(super) fn new(
        census: &'s mut Census,
        actions: &'s mut Actions,
        nodes: &'s BlockSet,
        seed: u64,
    ) -> Self {
        Self {
            census,
            nodes,
            used: nodes.clone(),
            taken: nodes.clone(),
            hasher: NameHasher::new(seed),
            changes: Changes::new(),
            actions,
            contested: Vec::new(),
            misplaced: Vec::new(),
            ownerless: BTreeMap::new(),
            now: Now::default(),
        }
    }

    /// Examines the next record.
    pub(super) fn record(&mut self, key: DataKey, value: &Data<'_>) {
        if self.now.ino != Some(key.ino) {
            self.finish_inode();
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
            self.ownerless.entry(key.ino).or_default().keys.push(key);
        }
    }

    /// Ends the records of an inode.
    fn finish_inode(&mut self) {
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
                self.actions.add(Action::InodeChanged { ino });
            }
        }
    }

    /// Gives symbolic links without a target a new one.
    pub(super) fn finish(&mut self) {
        self.finish_inode();
        let links = self.census.iter_mut();
        for known in links.filter(|known| known.kind() == FileType::Symlink) {
            if known.length.is_none() {
                let ino = known.ino();
                let key = DataKey::first(ino, DataKind::Inline);
                let target = Held::Inline(LOST_TARGET.to_vec());
                self.changes.insert(key, Some(target));
                known.change(|record| record.size = LOST_TARGET.len() as u64);
                known.length = Some(LOST_TARGET.len() as u64);
                self.actions.add(Action::TargetMade { ino });
            }
        }
    }

    fn remove(&mut self, key: DataKey) {
        self.changes.insert(key, None);
        let (ino, offset) = (key.ino, key.offset);
        self.actions.add(Action::ContentRemoved { ino, offset });
    }

    fn inline(&mut self, key: DataKey, len: u64) {
        match self
            .census
            .get(key.ino)
            .map(|known| (known.kind(), known.inode.record.size))
        {
            None => {
                self.ownerless.entry(key.ino).or_default().inline = Some(len);
                self.now.is_inline = true;
            }
            Some((FileType::Regular | FileType::Symlink, size)) => {
                self.now.inline = Some(len);
                // If there are extents as well, the recorded length decides.
                self.now.is_inline = size == len;
            }
            Some(_) => self.remove(key),
        }
    }

    fn extent(&mut self, key: DataKey, extent: &Extent) {
        self.taken.insert(extent.span());
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
        let blocks = kept.span();
        if !self.used.layout().holds(blocks) || self.nodes.overlaps(blocks) {
            self.remove(key);
            return;
        }
        let kept_key = DataKey { offset: at, ..key };
        if (at, kept) != (key.offset, *extent) {
            self.remove(key);
            self.changes.insert(kept_key, Some(Held::Extent(kept)));
        }
        if self.used.overlaps(blocks) {
            self.contested.push((kept_key, kept));
        } else {
            self.used.insert(blocks);
        }
        self.now.end = at + u64::from(kept.blocks);
        self.now.blocks += u64::from(kept.blocks);
        if kind.is_none() {
            let bytes = self.now.end.saturating_mul(BLOCK as u64);
            let stranger = self.ownerless.entry(key.ino).or_default();
            stranger.extents = Some(bytes);
            stranger.blocks = self.now.blocks;
        }
    }

    fn attribute(&mut self, key: DataKey, name: &[u8], value: &XattrValue<'_>) {
        if let XattrValue::External { extent, len } = value {
            let room = u64::from(extent.blocks) * BLOCK as u64;
            let blocks = extent.span();
            self.taken.insert(blocks);
            let fits = u64::from(*len) <= room && *len <= XATTR_MAX;
            if !fits || !self.used.layout().holds(blocks) || self.used.overlaps(blocks) {
                self.remove(key);
                return;
            }
            self.used.insert(blocks);
        }
        if let Some(known) = self.census.get_mut(key.ino)
            && !known.inode.record.xattrs
        {
            known.change(|record| record.xattrs = true);
            let ino = key.ino;
            self.actions.add(Action::InodeChanged { ino });
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
            self.misplaced.push((key.ino, held));
        }
    }
}

/// The part of an extent behind the one before it, and for a written one before the file's end.
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
        // At most `extent.blocks`.
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
            generation: 1,
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
