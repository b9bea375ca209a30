//! The device as trees and files see it: by blocks, with what is being written on top.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use holdfast_device::{BlockDevice, SECTOR, WriteRequest};
use holdfast_types::Errno;
use parking_lot::{Mutex, RwLock};

use super::content::{Outgoing, Source};
use super::page::{Changed, zeros};
use crate::nodes::Nodes;
use crate::tree::NodeSource;
use crate::{BLOCK, Error, Result};

const BLOCK_LEN: u64 = BLOCK as u64;
/// Bytes that are gathered into one write.
const GATHER: usize = 256 * BLOCK;

/// A device, and pages on their way to it.
#[derive(Debug)]
pub(super) struct Blocks {
    /// The device, with the volume's identity.
    nodes: Nodes,
    /// By their block numbers: who reads one meanwhile finds it here.
    outgoing: RwLock<HashMap<u64, Arc<Outgoing>, RandomState>>,
    /// Held by the one who writes them.
    writing: Mutex<()>,
}

impl Blocks {
    pub(super) fn new(device: Arc<dyn BlockDevice>, volume: u32) -> Self {
        Self {
            nodes: Nodes { device, volume },
            outgoing: RwLock::default(),
            writing: Mutex::new(()),
        }
    }

    /// Shows pages to readers from now on, as if they were written.
    pub(super) fn announce(&self, pages: Vec<Outgoing>) {
        let mut outgoing = self.outgoing.write();
        let pages = pages.into_iter();
        outgoing.extend(pages.map(|page| (page.block, Arc::new(page))));
    }

    /// Writes all pages that were announced, and makes them durable.
    ///
    /// # Errors
    /// If the device fails; the pages stay announced.
    pub(super) fn write_out(&self) -> Result<()> {
        let _writing = self.writing.lock();
        let mut pages: Vec<(u64, Arc<Outgoing>)> = {
            let outgoing = self.outgoing.read();
            let pages = outgoing.iter();
            pages
                .map(|(block, page)| (*block, Arc::clone(page)))
                .collect()
        };
        if pages.is_empty() {
            return Ok(());
        }
        pages.sort_unstable_by_key(|(block, _)| *block);
        let mut gathered = Gathered::new(self);
        let mut scratch = zeros();
        for (block, page) in &pages {
            let at = block * BLOCK_LEN;
            match &page.changed {
                Changed::Whole(bytes) => gathered.put(at, &bytes[..])?,
                Changed::Parts(parts) if !page.fresh && self.nodes.device.alignment() <= SECTOR => {
                    for part in parts {
                        gathered.put(at + part.from as u64, &part.bytes)?;
                    }
                }
                parts @ Changed::Parts(_) => {
                    match page.fresh {
                        true => scratch.fill(0),
                        false => self.read_at(*block, &mut scratch[..])?,
                    }
                    parts.show_in(&mut scratch);
                    gathered.put(at, &scratch[..])?;
                }
            }
        }
        gathered.end()?;
        self.flush()?;
        let mut outgoing = self.outgoing.write();
        for (block, page) in pages {
            // Not what was announced for the same block meanwhile.
            if outgoing
                .get(&block)
                .is_some_and(|now| Arc::ptr_eq(now, &page))
            {
                outgoing.remove(&block);
            }
        }
        Ok(())
    }

    /// Reads whole blocks that no file has.
    ///
    /// # Errors
    /// If the device fails.
    pub(super) fn read_at(&self, block: u64, bytes: &mut [u8]) -> Result<()> {
        Ok(self.nodes.device.read(block * BLOCK_LEN, bytes)?)
    }

    /// Writes whole blocks.
    ///
    /// # Errors
    /// If the device fails.
    pub(super) fn write(&self, block: u64, bytes: &[u8]) -> Result<()> {
        Ok(self.nodes.device.write(block * BLOCK_LEN, bytes)?)
    }

    /// Writes pieces anywhere.
    ///
    /// # Errors
    /// If the device fails.
    pub(super) fn write_batch(&self, pieces: &[(u64, &[u8])]) -> Result<()> {
        let requests: Vec<WriteRequest<'_>> = pieces
            .iter()
            .map(|(block, bytes)| WriteRequest::new(block * BLOCK_LEN, bytes))
            .collect();
        Ok(self.nodes.device.write_batch(&requests)?)
    }

    /// Gives blocks back to the device: nobody reads them before they are written.
    ///
    /// # Errors
    /// [`Error::NoDiscard`]; if the device fails.
    pub(super) fn discard(&self, block: u64, blocks: u64) -> Result<()> {
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
    pub(super) fn make_room(&self, blocks: u64) -> Result<()> {
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
    pub(super) fn flush(&self) -> Result<()> {
        Ok(self.nodes.device.flush()?)
    }
}

/// Bytes that lie side by side, to be written at once.
struct Gathered<'b> {
    blocks: &'b Blocks,
    start: u64,
    bytes: Vec<u8>,
}

impl<'b> Gathered<'b> {
    fn new(blocks: &'b Blocks) -> Self {
        Self {
            blocks,
            start: 0,
            bytes: Vec::with_capacity(GATHER),
        }
    }

    /// Takes bytes, behind those that it took before.
    fn put(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        let end = self.start + self.bytes.len() as u64;
        if at != end || self.bytes.len() + bytes.len() > GATHER {
            self.end()?;
            self.start = at;
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Writes what it has.
    fn end(&mut self) -> Result<()> {
        if !self.bytes.is_empty() {
            self.blocks.nodes.device.write(self.start, &self.bytes)?;
            self.bytes.clear();
        }
        Ok(())
    }
}

impl Source for Blocks {
    fn read(&self, block: u64, page: &mut [u8; BLOCK]) -> Result<()> {
        let outgoing = self.outgoing.read().get(&block).map(Arc::clone);
        match &outgoing {
            Some(outgoing) if matches!(outgoing.changed, Changed::Whole(_)) => {}
            Some(outgoing) if outgoing.fresh => page.fill(0),
            _ => self.nodes.device.read(block * BLOCK_LEN, page)?,
        }
        if let Some(outgoing) = outgoing {
            outgoing.changed.show_in(page);
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
