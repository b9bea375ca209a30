use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use holdfast_device::{Access, BlockDevice, FileDevice};
use holdfast_volume::superblock::Superblock;
use holdfast_volume::{BLOCK, Info};

use super::error::VolumeError;

/// The state of a volume: see [`Volume::info`](super::Volume::info) and
/// [`Volume::inspect`](super::Volume::inspect).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeInfo {
    /// Its identity, as the text of a UUID.
    pub uuid: String,
    /// Its name; empty if it has none.
    pub label: String,
    /// Bytes of the volume.
    pub size: u64,
    /// Bytes available to files and trees.
    pub capacity: u64,
    /// Free bytes of `capacity`.
    pub free: u64,
    /// Groups of blocks.
    pub groups: u64,
    /// Bytes of a group; the last one may have fewer.
    pub group_size: u64,
    /// Bytes of the journal.
    pub journal_size: u64,
    /// The number of checkpoints.
    pub generation: u64,
    /// Inodes.
    pub inodes: u64,
    /// Was it closed cleanly, so that there is no journal to replay? False for an open volume.
    pub clean: bool,
    /// Features in use: incompatible, read-only compatible, compatible ones.
    pub features: [u64; 3],
    /// When it was made.
    pub created: SystemTime,
    /// When its superblock was last written.
    pub written: SystemTime,
}

impl VolumeInfo {
    pub(super) fn read(path: &Path) -> Result<Self, VolumeError> {
        let device = FileDevice::open(path, Access::ReadOnly)?;
        let device: Arc<dyn BlockDevice> = Arc::new(device);
        let superblock = holdfast_volume::read_superblock(&device)?;
        Ok(Self::of_superblock(&superblock))
    }

    fn of_superblock(superblock: &Superblock) -> Self {
        let layout = superblock.layout();
        let bytes = |blocks: u64| blocks.saturating_mul(BLOCK as u64);
        Self {
            uuid: superblock.uuid.to_string(),
            label: superblock.label.to_string(),
            size: bytes(superblock.blocks),
            capacity: bytes(layout.capacity()),
            free: bytes(superblock.seal.free),
            groups: layout.groups(),
            group_size: bytes(u64::from(superblock.group_blocks)),
            journal_size: bytes(superblock.journal_blocks),
            generation: superblock.generation,
            inodes: superblock.inodes,
            clean: superblock.clean,
            features: [
                superblock.features.incompatible,
                superblock.features.read_only_compatible,
                superblock.features.compatible,
            ],
            created: superblock.created.into(),
            written: superblock.written.into(),
        }
    }

    pub(super) fn of(info: &Info) -> Self {
        Self {
            free: info.space.available() * BLOCK as u64,
            inodes: info.inodes,
            ..Self::of_superblock(&info.superblock)
        }
    }
}
