//! A device in memory over a read-only one.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_device::{
    BlockDevice, Cause, DeviceError, Operation, ReadRequest, Result, Room, WriteRequest,
    check_range,
};
use parking_lot::RwLock;

use crate::block::BLOCK;

const BLOCK_LEN: u64 = BLOCK as u64;

/// Writes stay in memory, by whole blocks, until they are [merged](Self::merge) into the device
/// below. Other reads go there.
#[derive(Debug)]
pub struct CowDevice {
    below: Arc<dyn BlockDevice>,
    /// `None` once merged.
    written: RwLock<Option<BTreeMap<u64, Box<[u8]>>>>,
}

impl CowDevice {
    /// A device over this one.
    pub fn new(below: Arc<dyn BlockDevice>) -> Self {
        Self {
            below,
            written: RwLock::new(Some(BTreeMap::new())),
        }
    }

    /// Writes what is in memory to the device below, and all later writes as well. These blocks,
    /// the first of the device, come last.
    ///
    /// # Errors
    /// Those of the device; what is in memory stays there.
    pub fn merge(&self, last: &[u64]) -> Result<()> {
        let mut written = self.written.write();
        for (block, bytes) in written.iter().flatten().rev() {
            if last.contains(block) {
                self.below.flush()?;
            }
            let offset = block * BLOCK_LEN;
            let room = (self.size() - offset).min(BLOCK_LEN) as usize;
            self.below.write(offset, &bytes[..room])?;
        }
        self.below.flush()?;
        *written = None;
        Ok(())
    }

    /// Do writes go to the device below?
    pub fn is_merged(&self) -> bool {
        self.written.read().is_none()
    }

    /// The blocks of a range, each with its part of the transfer.
    fn pieces(
        offset: u64,
        len: usize,
    ) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            if at == len {
                return None;
            }
            let place = offset + at as u64;
            let within = (place % BLOCK_LEN) as usize;
            let end = len.min(at + BLOCK - within);
            let piece = (place / BLOCK_LEN, within, at..end);
            at = end;
            Some(piece)
        })
    }
}

impl BlockDevice for CowDevice {
    // Written bytes in the cache below are visible here as well.
    holdfast_device::pass_on!(below: describe, size, alignment, cache_identity);

    fn unlock(&self) {
        self.below.unlock();
    }

    fn room(&self) -> Option<Room> {
        self.is_merged().then(|| self.below.room()).flatten()
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) -> Result<()> {
        if self.is_merged() {
            return self.below.read_batch(requests);
        }
        requests
            .iter_mut()
            .try_for_each(|request| self.read(request.offset, request.buf))
    }

    fn writes_side_by_side(&self) -> bool {
        self.below.writes_side_by_side()
    }

    fn write_batch(&self, requests: &[WriteRequest<'_>]) -> Result<()> {
        if self.is_merged() {
            return self.below.write_batch(requests);
        }
        requests
            .iter()
            .try_for_each(|request| self.write(request.offset, request.bytes))
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.below.read(offset, buf)?;
        let written = self.written.read();
        let Some(written) = &*written else {
            return Ok(());
        };
        let first = offset / BLOCK_LEN;
        let end = (offset + buf.len() as u64).div_ceil(BLOCK_LEN);
        if written.range(first..end).next().is_none() {
            return Ok(());
        }
        for (block, within, range) in Self::pieces(offset, buf.len()) {
            if let Some(bytes) = written.get(&block) {
                let len = range.len();
                buf[range].copy_from_slice(&bytes[within..within + len]);
            }
        }
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        check_range(self, Operation::Write, offset, bytes.len() as u64)?;
        let mut written = self.written.write();
        let Some(written) = &mut *written else {
            return self.below.write(offset, bytes);
        };
        for (block, within, range) in Self::pieces(offset, bytes.len()) {
            let piece = &bytes[range];
            if let Some(held) = written.get_mut(&block) {
                held[within..within + piece.len()].copy_from_slice(piece);
                continue;
            }
            let mut held = vec![0; BLOCK].into_boxed_slice();
            if piece.len() < BLOCK {
                // The last block of a device may be partial.
                let room = (self.size() - block * BLOCK_LEN).min(BLOCK_LEN) as usize;
                self.below.read(block * BLOCK_LEN, &mut held[..room])?;
            }
            held[within..within + piece.len()].copy_from_slice(piece);
            written.insert(block, held);
        }
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        match self.is_merged() {
            true => self.below.flush(),
            false => Ok(()),
        }
    }

    fn discard(&self, offset: u64, len: u64) -> Result<bool> {
        Ok(self.is_merged() && self.below.discard(offset, len)?)
    }

    fn resize(&self, size: u64) -> Result<()> {
        if self.is_merged() {
            return self.below.resize(size);
        }
        let (name, cause) = (self.describe(), Cause::ReadOnly);
        Err(DeviceError::new(name, Operation::Resize, 0, size, cause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_device::MemoryDevice;

    #[test]
    fn what_is_written_shows_and_stays_above() {
        let below: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(16 * 1024));
        below.write(0, &[7; 16 * 1024]).unwrap();
        let cow_device = CowDevice::new(Arc::clone(&below));
        cow_device.write(3584, &[1; 5120]).unwrap();
        cow_device.write(4096, &[2; 512]).unwrap();
        let mut seen = vec![0; 16 * 1024];
        cow_device.read(0, &mut seen).unwrap();
        let mut expected = vec![7; 16 * 1024];
        expected[3584..8704].fill(1);
        expected[4096..4608].fill(2);
        assert!(seen == expected);
        below.read(0, &mut seen).unwrap();
        assert!(seen.iter().all(|byte| *byte == 7));
        assert!(cow_device.write(16 * 1024, &[0; 512]).is_err());
        assert!(!cow_device.discard(0, 4096).unwrap() && cow_device.resize(32 * 1024).is_err());

        cow_device.merge(&[0]).unwrap();
        below.read(0, &mut seen).unwrap();
        assert!(seen == expected);
        cow_device.write(8192, &[3; 512]).unwrap();
        expected[8192..8704].fill(3);
        for device in [&below, &(Arc::new(cow_device) as _)] {
            device.read(0, &mut seen).unwrap();
            assert!(seen == expected);
        }
    }
}
