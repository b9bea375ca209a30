//! A device as the trees of a volume read it.

use std::sync::Arc;

use holdfast_device::{BlockDevice, ReadRequest};
use holdfast_types::Errno;

use crate::tree::NodeSource;
use crate::{BLOCK, Error};

const BLOCK_LEN: u64 = BLOCK as u64;

/// A device that nodes of a volume are read from.
#[derive(Debug)]
pub(crate) struct Nodes {
    pub(crate) device: Arc<dyn BlockDevice>,
    pub(crate) volume: u32,
}

impl NodeSource for Nodes {
    fn volume(&self) -> u32 {
        self.volume
    }

    fn blocks(&self) -> u64 {
        self.device.size() / BLOCK_LEN
    }

    fn read(&self, block: u64, bytes: &mut [u8]) -> Result<(), Errno> {
        let read = self.device.read(block * BLOCK_LEN, bytes);
        read.map_err(|error| Error::from(error).errno())
    }

    fn read_batch(&self, reads: &mut [(u64, Box<[u8]>)]) -> Result<(), Errno> {
        let mut requests: Vec<ReadRequest<'_>> = reads
            .iter_mut()
            .map(|(block, bytes)| ReadRequest::new(*block * BLOCK_LEN, bytes))
            .collect();
        let read = self.device.read_batch(&mut requests);
        read.map_err(|error| Error::from(error).errno())
    }
}
