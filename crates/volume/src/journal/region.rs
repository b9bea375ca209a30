use super::error::{Error, Result};
use holdfast_core::store::Lsn;
use holdfast_device::BlockDevice;
use std::sync::Arc;

/// Bytes of a block.
pub(super) const BLOCK: usize = 4096;

/// The fewest blocks of a journal.
pub const BLOCKS_MIN: u64 = 64;

/// The place of a journal on its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First block on the device.
    pub start: u64,
    /// Length in blocks, at least [`BLOCKS_MIN`].
    pub blocks: u64,
    /// A secret random number of the volume, drawn by mkfs. Frames of an earlier volume in the
    /// region, and user data that looks like a journal, never carry it.
    pub volume: u64,
}

/// A place in a journal, kept in the superblock: a replay begins there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Blocks written since mkfs; the place in the ring is the remainder by its length.
    pub block: u64,
    /// Batches up to this LSN are in the trees: a replay skips them.
    pub lsn: Lsn,
    /// The incarnation that reached this place: older blocks found there are stale.
    pub incarnation: u64,
}

impl Position {
    /// Bytes of [`to_bytes`](Self::to_bytes).
    pub const BYTES: usize = 24;

    /// The bytes in a superblock: three little-endian numbers, in the order of the fields.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let fields = [self.block, self.lsn.0, self.incarnation];
        for (field, value) in bytes.chunks_exact_mut(8).zip(fields) {
            field.copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    /// What [`to_bytes`](Self::to_bytes) wrote.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let (fields, _) = bytes.as_chunks::<8>();
        let field = |index: usize| fields.get(index).map_or(0, |le| u64::from_le_bytes(*le));
        Self {
            block: field(0),
            lsn: Lsn(field(1)),
            incarnation: field(2),
        }
    }
}

/// The identity of the cache that holds frames written without a flush: the
/// [device's](holdfast_device::BlockDevice::cache_identity), reduced to the 48 bits of a frame's
/// field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cache(pub(super) [u8; 6]);

impl Cache {
    fn of(identity: u64) -> Self {
        let [a, b, c, d, e, f, g, h] = identity.to_le_bytes();
        // Zeros in the field mean that there is none.
        Self([a ^ g, b ^ h, c, d, e, f].map(|byte| if byte == 0 { 1 } else { byte }))
    }

    pub(super) fn from_bytes(bytes: [u8; 6]) -> Option<Self> {
        (bytes != [0; 6]).then_some(Self(bytes))
    }
}

/// The ring on its device, addressed by [`Position::block`].
#[derive(Clone, Debug)]
pub(super) struct Area {
    device: Arc<dyn BlockDevice>,
    pub(super) region: Region,
}

impl Area {
    pub(super) fn new(device: Arc<dyn BlockDevice>, region: Region) -> Result<Self> {
        let blocks = device.size() / BLOCK as u64;
        let reason = if region.blocks < BLOCKS_MIN {
            "too short"
        } else if region
            .start
            .checked_add(region.blocks)
            .is_none_or(|end| end > blocks)
        {
            "it reaches past the device"
        } else if device.alignment() > BLOCK as u64 {
            "the device writes larger blocks only"
        } else {
            return Ok(Self { device, region });
        };
        Err(Error::Region {
            start: region.start,
            blocks: region.blocks,
            reason,
        })
    }

    /// The block on the device.
    pub(super) const fn block_at(&self, position: u64) -> u64 {
        self.region.start + position % self.region.blocks
    }

    /// Bytes from there to the end of the ring.
    fn before_end(&self, position: u64) -> usize {
        let blocks = self.region.blocks - position % self.region.blocks;
        usize::try_from(blocks).map_or(usize::MAX, |blocks| blocks.saturating_mul(BLOCK))
    }

    /// Reads whole blocks, wrapping at the end of the ring.
    pub(super) fn read(&self, position: u64, buf: &mut [u8]) -> Result<()> {
        let first = self.before_end(position).min(buf.len());
        let (first, rest) = buf.split_at_mut(first);
        self.device
            .read(self.block_at(position) * BLOCK as u64, first)?;
        if !rest.is_empty() {
            self.device.read(self.region.start * BLOCK as u64, rest)?;
        }
        Ok(())
    }

    /// Writes whole blocks, wrapping at the end of the ring.
    pub(super) fn write(&self, position: u64, bytes: &[u8]) -> Result<()> {
        let first = self.before_end(position).min(bytes.len());
        let (first, rest) = bytes.split_at(first);
        self.device
            .write(self.block_at(position) * BLOCK as u64, first)?;
        if !rest.is_empty() {
            self.device.write(self.region.start * BLOCK as u64, rest)?;
        }
        Ok(())
    }

    /// The identity of the cache that holds unflushed writes.
    pub(super) fn cache(&self) -> Option<Cache> {
        self.device.cache_identity().map(Cache::of)
    }

    pub(super) fn flush(&self) -> Result<()> {
        Ok(self.device.flush()?)
    }

    /// Writes zeros everywhere: a sparse file gets its blocks now, so that commits only overwrite.
    pub(super) fn clear(&self) -> Result<()> {
        let zeros = vec![0; BLOCK * 256];
        let mut position = 0;
        while position < self.region.blocks {
            let blocks = (self.region.blocks - position).min(256);
            self.write(position, &zeros[..blocks as usize * BLOCK])?;
            position += blocks;
        }
        self.flush()
    }
}
