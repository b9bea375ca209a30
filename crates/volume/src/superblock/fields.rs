//! What a superblock says.

use crate::journal::{Position, Region};
use crate::space::{Layout, Seal};
use crate::tree::Root;
use holdfast_types::Time;
use std::fmt;
use uuid::Uuid;

/// The version of the format that this code writes.
pub const VERSION: u32 = 1;
/// Longest label, in bytes.
pub const LABEL_MAX: usize = 63;

/// The trees of a subvolume, each with its base and up to three newer ones over it.
///
/// Version 1 writes bases only; the others are for sorted runs that are not merged yet.
pub type Roots = [[Option<Root>; 4]; 4];

/// The features of a volume. Version 1 of the format has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// A program that does not know one of these cannot open the volume.
    pub incompatible: u64,
    /// A program that does not know one of these may only read.
    pub read_only_compatible: u64,
    /// A program that does not know one of these may ignore it.
    pub compatible: u64,
}

/// The content of a superblock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// The volume's UUID.
    pub uuid: Uuid,
    /// Its name, if it has one.
    pub label: Label,
    /// Features in use.
    pub features: Features,
    /// Blocks of the device that belong to it.
    pub blocks: u64,
    /// Blocks of a group.
    pub group_blocks: u32,
    /// Groups of a flex group, at least one.
    pub bundle: u32,
    /// Where the journal begins.
    pub journal_start: u64,
    /// Blocks of the journal.
    pub journal_blocks: u64,
    /// Where the groups begin.
    pub groups_start: u64,
    /// The number of this version of the superblock.
    pub generation: u64,
    /// When the volume was made.
    pub created: Time,
    /// When this was written.
    pub written: Time,
    /// Was it unmounted, so that there is nothing to replay?
    pub clean: bool,
    /// From where the journal is replayed.
    pub journal_position: Position,
    /// The secret of this volume's journal: other frames never carry it.
    pub journal_secret: u64,
    /// The summary of this superblock's bitmaps.
    pub seal: Seal,
    /// No inode number up to this one is ever given out again. None above it was, unless the
    /// journal has a higher mark.
    pub last_ino: u64,
    /// The secret with which names are hashed.
    pub hash_seed: u64,
    /// The number of inodes, without those that are only in the journal.
    pub inodes: u64,
    /// The trees of the only subvolume.
    pub roots: Roots,
    /// Orphans, in a tree like that of all inodes.
    pub orphans: Option<Root>,
    /// Reference counts of blocks that several subvolumes share.
    pub shared: Option<Root>,
}

impl Superblock {
    /// The identity in this volume's nodes: the CRC-32C of its UUID.
    #[must_use]
    pub fn identity(&self) -> u32 {
        crc32c::crc32c(self.uuid.as_bytes())
    }

    /// The place of the groups.
    #[must_use]
    pub fn layout(&self) -> Layout {
        Layout {
            volume: *self.uuid.as_bytes(),
            start: self.groups_start,
            end: self.blocks,
            group_blocks: u64::from(self.group_blocks),
            bundle: u64::from(self.bundle),
        }
    }

    /// The place of the journal.
    #[must_use]
    pub fn region(&self) -> Region {
        Region {
            start: self.journal_start,
            blocks: self.journal_blocks,
            volume: self.journal_secret,
        }
    }
}

/// A volume's name: at most [`LABEL_MAX`] bytes without NUL.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Label(pub(super) [u8; LABEL_MAX + 1]);

impl Label {
    /// A label; `None` if it is too long or has a NUL.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let mut bytes = [0; LABEL_MAX + 1];
        if text.len() > LABEL_MAX || text.contains('\0') {
            return None;
        }
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Some(Self(bytes))
    }

    fn bytes(&self) -> &[u8] {
        self.0.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

impl Default for Label {
    fn default() -> Self {
        Self([0; LABEL_MAX + 1])
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.bytes()))
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(self.bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_short_and_without_nul() {
        assert_eq!(Label::new("mail").unwrap().to_string(), "mail");
        assert_eq!(Label::default().to_string(), "");
        assert!(Label::new(&"x".repeat(LABEL_MAX)).is_some());
        assert!(Label::new(&"x".repeat(LABEL_MAX + 1)).is_none());
        assert!(Label::new("a\0b").is_none());
    }
}
