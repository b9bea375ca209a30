use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use holdfast_device::{Access, BlockDevice, FileDevice, FileOptions};
use holdfast_volume::superblock::Superblock;
use holdfast_volume::{BLOCK, Info};

use super::VolumeError;

/// What a volume says of itself: [`Volume::info`](super::Volume::info),
/// [`Volume::inspect`](super::Volume::inspect).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeInfo {
    /// Its identity, as a UUID is written.
    pub uuid: String,
    /// Its name; empty if it has none.
    pub label: String,
    /// Bytes of the whole.
    pub size: u64,
    /// Bytes of those that files and trees can have.
    pub capacity: u64,
    /// Bytes of those that are free.
    pub free: u64,
    /// Groups of blocks.
    pub groups: u64,
    /// Bytes of a group; the last one may have fewer.
    pub group_size: u64,
    /// Bytes of the journal.
    pub journal_size: u64,
    /// How many checkpoints there were.
    pub generation: u64,
    /// Inodes.
    pub inodes: u64,
    /// Was it closed, so that there is no journal to replay? Never true of an open one.
    pub clean: bool,
    /// Features in use: incompatible, read-only compatible, compatible ones.
    pub features: [u64; 3],
    /// When it was made.
    pub created: SystemTime,
    /// When its superblock was written last.
    pub written: SystemTime,
}

impl VolumeInfo {
    pub(super) fn read(path: &Path) -> Result<Self, VolumeError> {
        let options = FileOptions {
            access: Access::ReadOnly,
            ..FileOptions::default()
        };
        let device = FileDevice::open(path, options)?;
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
