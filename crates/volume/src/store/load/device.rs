//! The device as trees and files see it: by blocks, with what is being written on top.

use std::sync::Arc;

use holdfast_device::{BlockDevice, Room, WriteRequest};
use holdfast_types::Errno;

use super::in_flight::{Announced, Ticket, Written};
use crate::nodes::Nodes;
use crate::store::file::content::Source;
use crate::store::file::page::WriteInFlight;
use crate::tree::NodeSource;
use crate::{BLOCK, Error, Result};

const BLOCK_LEN: u64 = BLOCK as u64;

/// A device, and pages on their way to it.
#[derive(Debug)]
pub(in crate::store) struct Blocks {
    /// The device, with the volume's identity.
    nodes: Nodes,
    announced: Announced,
}

impl Blocks {
    pub(in crate::store) fn new(device: Arc<dyn BlockDevice>, volume: u32) -> Self {
        Self {
            nodes: Nodes { device, volume },
            announced: Announced::default(),
        }
    }

    /// How many blocks were announced and are not written yet.
    pub(in crate::store) fn on_their_way(&self) -> u64 {
        self.announced.blocks()
    }

    /// Shows blocks to readers from now on, as if they were written.
    pub(in crate::store) fn announce(&self, blocks: Vec<WriteInFlight>) -> Ticket {
        self.announced.announce(blocks)
    }

    /// See [`Announced::assert_durable`].
    pub(in crate::store) fn assert_durable(&self, upto: Ticket) {
        self.announced.assert_durable(upto);
    }

    /// See [`Announced::assert_written`].
    pub(in crate::store) fn assert_written(&self, upto: Ticket) {
        self.announced.assert_written(upto);
    }

    /// Writes all blocks that were announced up to the ticket: see [`Announced::write_out`].
    ///
    /// # Errors
    /// If the device fails; the blocks stay announced.
    pub(in crate::store) fn write_out(&self, upto: Ticket) -> Result<Written> {
        self.announced.write_out(&*self.nodes.device, upto)
    }

    /// See [`Announced::each`].
    pub(in crate::store) fn each_announced(
        &self,
        ticket: Ticket,
        show: &mut dyn FnMut(&WriteInFlight),
    ) {
        self.announced.each(ticket, show);
    }

    /// See [`Announced::is_unflushed`].
    pub(in crate::store) fn is_unflushed(&self) -> bool {
        self.announced.is_unflushed()
    }

    /// See [`Announced::flushed`].
    pub(in crate::store) fn flushed(&self, written: Written) {
        self.announced.flushed(written);
    }

    /// Reads whole blocks that no file has.
    ///
    /// # Errors
    /// If the device fails.
    pub(in crate::store) fn read_at(&self, block: u64, bytes: &mut [u8]) -> Result<()> {
        Ok(self.nodes.device.read(block * BLOCK_LEN, bytes)?)
    }

    /// Writes whole blocks.
    ///
    /// # Errors
    /// If the device fails.
    pub(in crate::store) fn write(&self, block: u64, bytes: &[u8]) -> Result<()> {
        Ok(self.nodes.device.write(block * BLOCK_LEN, bytes)?)
    }

    /// What there is left below the device: see [`BlockDevice::room`].
    pub(in crate::store) fn room(&self) -> Option<Room> {
        self.nodes.device.room()
    }

    /// Writes pieces anywhere.
    ///
    /// # Errors
    /// If the device fails.
    pub(in crate::store) fn write_batch(&self, pieces: &[(u64, &[u8])]) -> Result<()> {
        let requests: Vec<WriteRequest<'_>> = pieces
            .iter()
            .map(|(block, bytes)| WriteRequest::new(block * BLOCK_LEN, bytes))
            .collect();
        Ok(self.nodes.device.write_batch(&requests)?)
    }

    /// Nothing is written any more: others may open the device.
    pub(in crate::store) fn unlock_device(&self) {
        self.nodes.device.unlock();
    }

    /// Gives blocks back to the device: nobody reads them before they are written.
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

    /// Lets the device have so many blocks, durably.
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

    /// Makes all that was written durable.
    ///
    /// # Errors
    /// If the device fails.
    pub(in crate::store) fn flush(&self) -> Result<()> {
        Ok(self.nodes.device.flush()?)
    }
}

impl Source for Blocks {
    fn read(&self, block: u64, page: &mut [u8; BLOCK]) -> Result<()> {
        let read = |page: &mut [u8; BLOCK]| Ok(self.nodes.device.read(block * BLOCK_LEN, page)?);
        self.announced.show(block, page, read)
    }

    fn read_row(&self, block: u64, row: &mut [u8]) -> Result<()> {
        if self.announced.is_empty() {
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
