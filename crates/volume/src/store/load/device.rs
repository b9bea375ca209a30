//! The device, by blocks, with in-flight writes on top.

use std::sync::Arc;

use holdfast_device::{BlockDevice, Room, WriteRequest};
use holdfast_types::Errno;

use super::in_flight::{InFlight, Ticket};
use crate::block::BLOCK;
use crate::error::{Error, Result};
use crate::nodes::Nodes;
use crate::store::file::Source;
use crate::tree::NodeSource;

const BLOCK_LEN: u64 = BLOCK as u64;

/// A device, and the writes in flight to it.
#[derive(Debug)]
pub(in crate::store) struct Blocks {
    /// The device, with the volume's identity.
    nodes: Nodes,
    pub(in crate::store) in_flight: InFlight,
}

impl Blocks {
    pub(in crate::store) fn new(device: Arc<dyn BlockDevice>, volume: u32) -> Self {
        Self {
            nodes: Nodes { device, volume },
            in_flight: InFlight::default(),
        }
    }

    /// Writes all published blocks up to the ticket: see [`InFlight::write_out`].
    ///
    /// # Errors
    /// If the device fails; the blocks stay published.
    pub(in crate::store) fn write_out(&self, upto: Ticket) -> Result<Ticket> {
        self.in_flight.write_out(&*self.nodes.device, upto)
    }

    /// Reads whole blocks, without in-flight writes.
    ///
    /// # Errors
    /// If the device fails.
    pub(in crate::store) fn read_at(&self, block: u64, bytes: &mut [u8]) -> Result<()> {
        Ok(self.nodes.device.read(block * BLOCK_LEN, bytes)?)
    }

    pub(in crate::store) fn write(&self, block: u64, bytes: &[u8]) -> Result<()> {
        Ok(self.nodes.device.write(block * BLOCK_LEN, bytes)?)
    }

    /// Free space below the device: see [`BlockDevice::room`].
    pub(in crate::store) fn room(&self) -> Option<Room> {
        self.nodes.device.room()
    }

    pub(in crate::store) fn write_batch(&self, pieces: &[(u64, &[u8])]) -> Result<()> {
        let requests: Vec<WriteRequest<'_>> = pieces
            .iter()
            .map(|(block, bytes)| WriteRequest::new(block * BLOCK_LEN, bytes))
            .collect();
        Ok(self.nodes.device.write_batch(&requests)?)
    }

    /// No writes follow: others may open the device.
    pub(in crate::store) fn unlock_device(&self) {
        self.nodes.device.unlock();
    }

    /// Discards blocks. They are written before they are read again.
    ///
    /// # Errors
    /// [`Error::NoDiscard`]; if the device fails.
    pub(in crate::store) fn discard(&self, block: u64, blocks: u64) -> Result<()> {
        if self
            .nodes
            .device
            .discard(block * BLOCK_LEN, blocks * BLOCK_LEN)?
        {
            return Ok(());
        }
        Err(Error::NoDiscard {
            device: self.nodes.device.describe(),
        })
    }

    /// Grows the device to so many blocks, durably.
    ///
    /// # Errors
    /// If it cannot.
    pub(in crate::store) fn make_room(&self, blocks: u64) -> Result<()> {
        if self.nodes.device.size() / BLOCK_LEN < blocks {
            self.nodes.device.resize(blocks * BLOCK_LEN)?;
            self.nodes.device.flush()?;
        }
        Ok(())
    }

    pub(in crate::store) fn flush(&self) -> Result<()> {
        Ok(self.nodes.device.flush()?)
    }
}

impl Source for Blocks {
    fn read(&self, block: u64, page: &mut [u8; BLOCK]) -> Result<()> {
        let read = |page: &mut [u8; BLOCK]| Ok(self.nodes.device.read(block * BLOCK_LEN, page)?);
        self.in_flight.show(block, page, read)
    }

    fn read_row(&self, block: u64, row: &mut [u8]) -> Result<()> {
        if self.in_flight.is_empty() {
            return self.read_at(block, row);
        }
        let (pages, _) = row.as_chunks_mut();
        for (block, page) in (block..).zip(pages) {
            Source::read(self, block, page)?;
        }
        Ok(())
    }
}

impl NodeSource for Blocks {
    fn volume(&self) -> u32 {
        self.nodes.volume()
    }

    fn blocks(&self) -> u64 {
        self.nodes.blocks()
    }

    fn read(&self, block: u64, bytes: &mut [u8]) -> Result<(), Errno> {
        self.nodes.read(block, bytes)
    }

    fn read_batch(&self, reads: &mut [(u64, Box<[u8]>)]) -> Result<(), Errno> {
        self.nodes.read_batch(reads)
    }
}
