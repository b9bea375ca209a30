use super::error::Result;
use super::frame::{FRAME_BLOCKS, Frame, Place};
use super::region::{Area, BLOCK};

/// Blocks written between two flushes, at most: so far behind a torn frame may whole ones lie.
pub(super) const ROUND_BLOCKS: u64 = 2048;
/// Bytes gathered for one write.
const STAGING: usize = 1 << 20;

/// The ring of frames on the device.
///
/// *Invariant.* Blocks from `tail` to `head` are durable and hold whole groups; `head` never
/// passes `tail` by more than the ring's length, since [`Room`](super::room::Room) was asked.
#[derive(Debug)]
pub(super) struct Ring {
    area: Area,
    pub(super) life: u64,
    pub(super) tail: u64,
    pub(super) head: u64,
    staging: Vec<u8>,
}

impl Ring {
    pub(super) const fn new(area: Area, life: u64, tail: u64, head: u64) -> Self {
        Self {
            area,
            life,
            tail,
            head,
            staging: Vec::new(),
        }
    }

    /// Writes a group of frames and makes it durable.
    ///
    /// # Errors
    /// The device's. What lies behind `head` is then unknown, and must not be written again in
    /// this life.
    pub(super) fn write(&mut self, group: &mut [Frame]) -> Result<()> {
        let Some(last) = group.len().checked_sub(1) else {
            return Ok(());
        };
        let (mut at, mut written, mut flushed) = (self.head, self.head, self.head);
        for (index, frame) in group.iter_mut().enumerate() {
            if at + FRAME_BLOCKS as u64 - flushed > ROUND_BLOCKS {
                written = self.write_staging(written)?;
                self.area.flush()?;
                flushed = written;
            }
            let blocks = frame.blocks();
            frame.seal(Place {
                volume: self.area.region.volume,
                life: self.life,
                position: at,
                group: self.head,
                last_of_group: index == last,
            });
            self.staging.extend_from_slice(&frame.bytes);
            at += blocks;
            if self.staging.len() >= STAGING {
                written = self.write_staging(written)?;
            }
        }
        debug_assert!(at - self.tail <= self.area.region.blocks);
        self.write_staging(written)?;
        self.area.flush()?;
        self.head = at;
        Ok(())
    }

    /// Writes what has been gathered; answers where it ends.
    fn write_staging(&mut self, at: u64) -> Result<u64> {
        if self.staging.is_empty() {
            return Ok(at);
        }
        let result = self.area.write(at, &self.staging);
        let blocks = (self.staging.len() / BLOCK) as u64;
        self.staging.clear();
        result.map(|()| at + blocks)
    }
}
