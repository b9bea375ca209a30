//! A device in memory over a read-only one.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_device::{BlockDevice, Cause, DeviceError, Operation, Result, check_range};
use parking_lot::RwLock;

use crate::block::BLOCK;

const BLOCK_LEN: u64 = BLOCK as u64;

/// Writes stay in memory, by whole blocks; other reads go to the device below.
#[derive(Debug)]
pub(crate) struct CowDevice {
    below: Arc<dyn BlockDevice>,
    written: RwLock<BTreeMap<u64, Box<[u8]>>>,
}

impl CowDevice {
    pub(crate) fn new(below: Arc<dyn BlockDevice>) -> Self {
        Self {
            below,
            written: RwLock::default(),
        }
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

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.below.read(offset, buf)?;
        let written = self.written.read();
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
        Ok(())
    }

    fn discard(&self, _offset: u64, _len: u64) -> Result<bool> {
        Ok(false)
    }

    fn resize(&self, size: u64) -> Result<()> {
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
    }
}
