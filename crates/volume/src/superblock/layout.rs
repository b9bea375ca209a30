//! The superblock's bytes. `docs/format.md` has the same as a table.

use holdfast_types::Time;
use thiserror::Error;
use uuid::Uuid;
use zerocopy::little_endian::{I64, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::fields::{Features, LABEL_MAX, Label, Roots, Superblock, VERSION};
use crate::block::BLOCK;
use crate::checksum::checksum;
use crate::journal::Position;
use crate::space::{BUNDLE_MAX, Seal};
use crate::tree::Root;

/// The slots: the first blocks of the device.
pub const SLOTS: [u64; 2] = [0, 1];
/// Blocks of a slot.
pub const SLOT_BLOCKS: u64 = 1;

const MAGIC: [u8; 8] = *b"HOLDFAST";
const CHECKSUM: std::ops::Range<usize> = 8..16;
const BLOCK_LOG: u32 = BLOCK.ilog2();
const CLEAN: u32 = 1;

/// Counters stay below this: no addition to them overflows in a lifetime.
const NUMBERS_END: u64 = 1 << 62;

/// Incompatible features of volumes before version 1; no later version has these bits.
const UNRELEASED: u64 = 1 | 2 | 32 | 64 | 128;

/// Damage of a slot.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SlotError {
    /// There is no superblock.
    #[error("no Holdfast volume: the magic number is missing")]
    Magic,
    /// The slot was torn or damaged.
    #[error("the checksum is {found:#x} instead of {expected:#x}")]
    Checksum {
        /// The checksum in the slot.
        found: u64,
        /// The checksum of its bytes.
        expected: u64,
    },
    /// The volume is older than version 1 of the format.
    #[error(
        "its format is older than version {VERSION} and was never released: make a new volume with `holdfast mkfs`, and \
         copy the files to it with the Holdfast that made this one"
    )]
    Unreleased,
    /// A later Holdfast wrote the volume.
    #[error("format version {0}, and this Holdfast knows {VERSION}: use a newer one")]
    Version(u32),
    /// It has features that this Holdfast does not know.
    #[error("incompatible features {0:#x}{names} that this Holdfast does not know: use a newer one", names = names_of(*.0))]
    Incompatible(u64),
    /// An impossible field.
    #[error("{0} is impossible")]
    Field(&'static str),
}

impl SlotError {
    /// Is it a volume of another version of the format?
    #[must_use]
    pub fn is_other_version(&self) -> bool {
        matches!(
            self,
            Self::Unreleased | Self::Version(_) | Self::Incompatible(_)
        )
    }
}

/// The names of features reserved for a later Holdfast, for messages.
fn names_of(incompatible: u64) -> String {
    let kept = [(4, "realms"), (8, "runs"), (16, "extended kinds")];
    let names = kept.iter().filter(|(bit, _)| incompatible & bit != 0);
    let names: Vec<&str> = names.map(|(_, name)| *name).collect();
    match names[..] {
        [] => String::new(),
        _ => format!(" ({})", names.join(", ")),
    }
}

type RawRoot = [u8; Root::LEN];

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Raw {
    magic: [u8; 8],
    checksum: U64,
    own_block: U64,
    version: U32,
    block_log: U32,
    incompatible: U64,
    read_only_compatible: U64,
    compatible: U64,
    uuid: [u8; 16],
    label: [u8; LABEL_MAX + 1],
    blocks: U64,
    group_blocks: U32,
    flags: U32,
    journal_start: U64,
    journal_blocks: U64,
    groups_start: U64,
    generation: U64,
    created: I64,
    written: I64,
    journal_position: [u8; Position::BYTES],
    journal_secret: U64,
    seal_fingerprint: U64,
    seal_free: U64,
    shared: RawRoot,
    // The subvolume table of version 1: one subvolume, with the external numbers.
    subvolumes: U32,
    subvolume: U32,
    subvolume_base: U64,
    subvolume_last_ino: U64,
    subvolume_hash_seed: U64,
    subvolume_inodes: U64,
    subvolume_created: U64,
    subvolume_last_fork: U64,
    roots: [[RawRoot; 4]; 4],
    orphans: RawRoot,
    bundle: U32,
}

const _: () = assert!(size_of::<Raw>() <= BLOCK);

impl Superblock {
    /// The block to write to a slot.
    #[must_use]
    pub fn encode(&self, slot: u64) -> Vec<u8> {
        let raw = Raw {
            magic: MAGIC,
            checksum: 0.into(),
            own_block: slot.into(),
            version: VERSION.into(),
            block_log: BLOCK_LOG.into(),
            incompatible: self.features.incompatible.into(),
            read_only_compatible: self.features.read_only_compatible.into(),
            compatible: self.features.compatible.into(),
            uuid: *self.uuid.as_bytes(),
            label: self.label.0,
            blocks: self.blocks.into(),
            group_blocks: self.group_blocks.into(),
            flags: u32::from(self.clean).into(),
            journal_start: self.journal_start.into(),
            journal_blocks: self.journal_blocks.into(),
            groups_start: self.groups_start.into(),
            generation: self.generation.into(),
            created: self.created.0.into(),
            written: self.written.0.into(),
            journal_position: self.journal_position.to_bytes(),
            journal_secret: self.journal_secret.into(),
            seal_fingerprint: self.seal.fingerprint.into(),
            seal_free: self.seal.free.into(),
            shared: Root::to_bytes(self.shared),
            subvolumes: 1.into(),
            subvolume: 1.into(),
            subvolume_base: 0.into(),
            subvolume_last_ino: self.last_ino.into(),
            subvolume_hash_seed: self.hash_seed.into(),
            subvolume_inodes: self.inodes.into(),
            subvolume_created: 0.into(),
            subvolume_last_fork: 0.into(),
            roots: self.roots.map(|tree| tree.map(Root::to_bytes)),
            orphans: Root::to_bytes(self.orphans),
            bundle: self.bundle.into(),
        };
        let mut bytes = vec![0; BLOCK];
        bytes[..size_of::<Raw>()].copy_from_slice(raw.as_bytes());
        let sum = checksum(&bytes, CHECKSUM);
        bytes[CHECKSUM].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads a slot's block.
    ///
    /// # Errors
    /// See [`SlotError`].
    pub fn decode(bytes: &[u8], slot: u64) -> Result<Self, SlotError> {
        let (raw, _) = Raw::ref_from_prefix(bytes).map_err(|_| SlotError::Field("the length"))?;
        if raw.magic != MAGIC {
            return Err(SlotError::Magic);
        }
        let (found, expected) = (raw.checksum.get(), checksum(bytes, CHECKSUM));
        if found != expected {
            return Err(SlotError::Checksum { found, expected });
        }
        if raw.version.get() != VERSION {
            return Err(SlotError::Version(raw.version.get()));
        }
        let incompatible = raw.incompatible.get();
        if incompatible & UNRELEASED != 0 || raw.bundle.get() == 0 {
            return Err(SlotError::Unreleased);
        }
        if incompatible != 0 {
            return Err(SlotError::Incompatible(incompatible));
        }
        let root = |bytes: &RawRoot| Root::from_bytes(bytes).ok_or(SlotError::Field("a root"));
        let mut roots = Roots::default();
        for (tree, raw) in roots.iter_mut().zip(&raw.roots) {
            for (layer, raw) in tree.iter_mut().zip(raw) {
                *layer = root(raw)?;
            }
        }
        let superblock = Self {
            uuid: Uuid::from_bytes(raw.uuid),
            label: Label(raw.label),
            features: Features {
                incompatible,
                read_only_compatible: raw.read_only_compatible.get(),
                compatible: raw.compatible.get(),
            },
            blocks: raw.blocks.get(),
            group_blocks: raw.group_blocks.get(),
            bundle: raw.bundle.get(),
            journal_start: raw.journal_start.get(),
            journal_blocks: raw.journal_blocks.get(),
            groups_start: raw.groups_start.get(),
            generation: raw.generation.get(),
            created: Time(raw.created.get()),
            written: Time(raw.written.get()),
            clean: raw.flags.get() & CLEAN != 0,
            journal_position: Position::from_bytes(raw.journal_position),
            journal_secret: raw.journal_secret.get(),
            seal: Seal {
                fingerprint: raw.seal_fingerprint.get(),
                free: raw.seal_free.get(),
            },
            last_ino: raw.subvolume_last_ino.get(),
            hash_seed: raw.subvolume_hash_seed.get(),
            inodes: raw.subvolume_inodes.get(),
            roots,
            orphans: root(&raw.orphans)?,
            shared: root(&raw.shared)?,
        };
        superblock.check(raw, slot)?;
        Ok(superblock)
    }

    /// Checks what a checksum cannot: fields that contradict each other.
    fn check(&self, raw: &Raw, slot: u64) -> Result<(), SlotError> {
        let position = self.journal_position;
        let mut trees = self.roots.iter().flatten().chain([&self.orphans]).flatten();
        let journal_end = self.journal_start.checked_add(self.journal_blocks);
        let claims = [
            (raw.own_block.get() == slot, "the place of the superblock"),
            (raw.block_log.get() == BLOCK_LOG, "the block size"),
            (self.blocks < 1 << 48, "the number of blocks"),
            (self.group_blocks > 0, "the size of a group"),
            (
                (1..=BUNDLE_MAX).contains(&u64::from(self.bundle)),
                "the number of groups of a bundle",
            ),
            (
                self.journal_start >= SLOTS.len() as u64 * SLOT_BLOCKS && self.journal_blocks > 0,
                "the place of the journal",
            ),
            (
                journal_end.is_some_and(|end| end <= self.groups_start)
                    && self.groups_start <= self.blocks,
                "the place of the groups",
            ),
            (raw.subvolumes.get() == 1, "the number of realms"),
            (
                raw.subvolume.get() == 1 && raw.subvolume_base.get() == 0,
                "the first realm",
            ),
            (self.last_ino < NUMBERS_END, "the last inode number"),
            (self.inodes < NUMBERS_END, "the number of inodes"),
            (self.generation < NUMBERS_END, "the generation"),
            (
                position.block < NUMBERS_END
                    && position.lsn.0 < NUMBERS_END
                    && position.incarnation < NUMBERS_END,
                "the place in the journal",
            ),
            (
                trees.all(|root| root.records < NUMBERS_END),
                "the number of records of a tree",
            ),
        ];
        claims
            .iter()
            .find(|(holds, _)| !holds)
            .map_or(Ok(()), |(_, what)| Err(SlotError::Field(what)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Pointer;
    use holdfast_core::store::Lsn;

    fn sample(generation: u64) -> Superblock {
        let mut roots = Roots::default();
        roots[0][0] = Some(Root {
            node: Pointer {
                block: 0xabcd_ef01_2345,
                blocks: 4,
                generation: 3,
            },
            level: 2,
            records: 1 << 33,
        });
        Superblock {
            uuid: Uuid::from_u128(7),
            label: Label::new("a").unwrap(),
            features: Features::default(),
            blocks: 1 << 20,
            group_blocks: 32256,
            bundle: 1,
            journal_start: 16,
            journal_blocks: 1024,
            groups_start: 1040,
            generation,
            created: Time(-5),
            written: Time(6),
            clean: generation == 4,
            journal_position: Position {
                block: 5,
                lsn: Lsn(6),
                incarnation: 7,
            },
            journal_secret: 8,
            seal: Seal {
                fingerprint: 9,
                free: 10,
            },
            last_ino: 77,
            hash_seed: 78,
            inodes: 79,
            roots,
            orphans: None,
            shared: None,
        }
    }

    #[test]
    fn what_is_written_is_read_back_from_its_own_slot_alone() {
        for slot in SLOTS {
            let written = sample(3 + slot);
            let bytes = written.encode(slot);
            assert_eq!(bytes.len(), BLOCK);
            assert_eq!(Superblock::decode(&bytes, slot), Ok(written));
            let other = SLOTS[0] + SLOTS[1] - slot;
            assert_eq!(
                Superblock::decode(&bytes, other),
                Err(SlotError::Field("the place of the superblock"))
            );
        }
    }

    #[test]
    fn every_damaged_byte_is_noticed() {
        let bytes = sample(4).encode(0);
        for at in 0..BLOCK {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x10;
            assert!(Superblock::decode(&bytes, 0).is_err(), "byte {at}");
        }
        assert!(Superblock::decode(&bytes[..100], 0).is_err());
    }

    #[test]
    fn a_bundle_has_64_groups_at_most() {
        let mut superblock = sample(4);
        for bundle in [1, 2, 64, 65] {
            superblock.bundle = bundle;
            let read = Superblock::decode(&superblock.encode(0), 0);
            let expected = match bundle <= 64 {
                true => Ok(superblock.clone()),
                false => Err(SlotError::Field("the number of groups of a bundle")),
            };
            assert_eq!(read, expected, "{bundle}");
        }
    }

    #[test]
    fn a_superblock_of_before_version_1_is_told_from_others() {
        for (bundle, incompatible) in [(0, 0), (0, 2), (8, 1), (8, 1 | 2 | 32), (0, 128)] {
            let mut old = sample(4);
            (old.bundle, old.features.incompatible) = (bundle, incompatible);
            let refused = Superblock::decode(&old.encode(0), 0);
            assert_eq!(
                refused,
                Err(SlotError::Unreleased),
                "{bundle}, {incompatible}"
            );
        }
    }

    #[test]
    fn unknown_features_are_refused_as_far_as_they_say() {
        let mut superblock = sample(4);
        superblock.features.compatible = 1 << 40;
        superblock.features.read_only_compatible = 2;
        let read = Superblock::decode(&superblock.encode(0), 0).unwrap();
        assert_eq!(read.features, superblock.features);
        superblock.features.incompatible = 4;
        let refused = Superblock::decode(&superblock.encode(0), 0);
        assert_eq!(refused, Err(SlotError::Incompatible(4)));
    }
}
