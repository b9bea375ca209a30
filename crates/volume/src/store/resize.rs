//! Growing an open volume, and discarding its free blocks.

use std::ops::Range;

use holdfast_types::Time;
use std::time::SystemTime;

use super::checkpoint::write_superblock;
use super::commit::let_go;
use super::{Inner, VolumeStore};
use crate::block::BLOCK;
use crate::error::{Error, Result};
use crate::space::{Extent, Layout, Seal};
use crate::superblock::{SLOTS, Superblock};

const BLOCK_LEN: u64 = BLOCK as u64;

impl VolumeStore {
    /// Grows the volume to `bytes`, rounded down to whole blocks. An image file grows with it; a
    /// block device must have grown already. Works while the volume is in use. After a crash it has
    /// the old size or the new one. Returns its size.
    ///
    /// # Errors
    /// [`Error::Geometry`] if it would shrink, or become too large; [`Error::Space`] likewise;
    /// those of the device. Nothing has changed then, unless a superblock write failed: nothing is
    /// written after that.
    pub fn grow(&self, bytes: u64) -> Result<u64> {
        grow(&self.inner, bytes / BLOCK_LEN)?;
        Ok(self.inner.superblock.lock().blocks * BLOCK_LEN)
    }

    /// Discards free extents of at least `least` bytes within a range of the volume. Blocks that a
    /// crash could still need are not free. Returns the bytes discarded.
    ///
    /// # Errors
    /// [`Error::NoDiscard`]; those of the device.
    pub fn trim(&self, within: Range<u64>, least: u64) -> Result<u64> {
        let_go(&self.inner)?;
        let start = within.start.div_ceil(BLOCK_LEN);
        let end = within.end / BLOCK_LEN;
        let within = Extent::new(start, end.saturating_sub(start));
        let discard = |extent: Extent| {
            self.inner
                .reader
                .blocks()
                .discard(extent.start, extent.length)
        };
        let least = least.div_ceil(BLOCK_LEN);
        let blocks = self.inner.space.trim(within, least, discard)?;
        Ok(blocks * BLOCK_LEN)
    }
}

/// Excludes checkpoints: one that wrote its superblock meanwhile would restore the old size.
fn grow(store: &Inner, blocks: u64) -> Result<()> {
    let _one = store.checkpointing.lock();
    store.stop.running()?;
    let old = store.superblock.lock().clone();
    let (before, after) = (
        old.layout(),
        Layout {
            end: blocks,
            ..old.layout()
        },
    );
    if blocks < old.blocks {
        return Err(Error::Geometry(format!(
            "it has {} bytes and cannot shrink to {}",
            old.blocks * BLOCK_LEN,
            blocks.saturating_mul(BLOCK_LEN)
        )));
    }
    after.check()?;
    if blocks == old.blocks {
        return Ok(());
    }
    // In this order: the device, the superblock, the allocator. A journal that refers to blocks
    // beyond the superblock's size could not be replayed.
    store.reader.blocks().make_room(blocks)?;
    let superblock = Superblock {
        blocks,
        written: Time::from(SystemTime::now()),
        seal: Seal {
            free: old.seal.free + (after.capacity() - before.capacity()),
            ..old.seal
        },
        ..old
    };
    write_superblock(store.reader.blocks(), &superblock, &SLOTS)
        .map_err(|error| store.stop.fail(error))?;
    store.succeed(superblock);
    store
        .space
        .grow(blocks)
        .map_err(|error| store.stop.fail(error.into()))?;
    store.pool.set_reserve(store.reader.blocks());
    store.pool.reset_low_watermark();
    Ok(())
}
