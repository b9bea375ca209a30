//! The device as the volume's trees read it.

use std::sync::Arc;

use holdfast_device::{BlockDevice, ReadRequest};
use holdfast_types::Errno;

use crate::block::BLOCK;
use crate::error::Error;
use crate::tree::NodeSource;

const BLOCK_LEN: u64 = BLOCK as u64;

/// A device, with the identity of its volume.
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
        let mut rows = rows_of(reads);
        let mut requests: Vec<ReadRequest<'_>> = rows
            .iter_mut()
            .map(|row| ReadRequest::new(row.first * BLOCK_LEN, &mut row.bytes))
            .collect();
        let read = self.device.read_batch(&mut requests);
        read.map_err(|error| Error::from(error).errno())?;
        for row in rows {
            let mut rest: &[u8] = &row.bytes;
            for index in row.reads {
                let (_, bytes) = &mut reads[index];
                let (own, behind) = rest.split_at(bytes.len());
                bytes.copy_from_slice(own);
                rest = behind;
            }
        }
        Ok(())
    }
}

/// The longest merged read.
const ROW_MAX: usize = 1 << 20;

/// Adjacent nodes, merged into one read, for devices with one request at a time.
#[derive(Debug, PartialEq)]
struct Row {
    /// Its first block.
    first: u64,
    bytes: Vec<u8>,
    /// The indices of its reads, in the order of blocks.
    reads: Vec<usize>,
}

fn rows_of(reads: &[(u64, Box<[u8]>)]) -> Vec<Row> {
    let mut order: Vec<usize> = (0..reads.len()).collect();
    order.sort_unstable_by_key(|&index| reads[index].0);
    let mut rows: Vec<Row> = Vec::new();
    for index in order {
        let (block, bytes) = &reads[index];
        let len = bytes.len();
        let goes_on = |row: &&mut Row| {
            let end = row.first + (row.bytes.len() / BLOCK) as u64;
            end == *block && row.bytes.len() + len <= ROW_MAX
        };
        match rows.last_mut().filter(goes_on) {
            Some(row) => {
                row.bytes.resize(row.bytes.len() + len, 0);
                row.reads.push(index);
            }
            None => rows.push(Row {
                first: *block,
                bytes: vec![0; len],
                reads: vec![index],
            }),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_device::MemoryDevice;

    fn reads(blocks: &[(u64, usize)]) -> Vec<(u64, Box<[u8]>)> {
        let read = |&(block, count): &(u64, usize)| (block, vec![0; count * BLOCK].into());
        blocks.iter().map(read).collect()
    }

    #[test]
    fn nodes_side_by_side_are_one_read_and_each_gets_its_own_bytes() {
        let device = MemoryDevice::new(1 << 20);
        for block in 0..64 {
            let bytes = [block as u8; BLOCK];
            device.write(block * BLOCK_LEN, &bytes).unwrap();
        }
        let nodes = Nodes {
            device: Arc::new(device),
            volume: 1,
        };
        let mut reads = reads(&[(12, 4), (8, 4), (40, 1), (16, 2), (41, 1)]);
        let rows = rows_of(&reads);
        let firsts: Vec<u64> = rows.iter().map(|row| row.first).collect();
        assert_eq!(firsts, [8, 40]);
        nodes.read_batch(&mut reads).unwrap();
        for (block, bytes) in &reads {
            for (at, page) in bytes.chunks(BLOCK).enumerate() {
                assert!(
                    page.iter()
                        .all(|byte| u64::from(*byte) == block + at as u64)
                );
            }
        }
    }

    #[test]
    fn a_read_has_an_end_however_many_nodes_lie_there() {
        let nodes: Vec<(u64, usize)> = (0..300).map(|at| (4 * at, 4)).collect();
        let rows = rows_of(&reads(&nodes));
        let lengths: Vec<usize> = rows.iter().map(|row| row.bytes.len()).collect();
        assert_eq!(
            lengths,
            [ROW_MAX, ROW_MAX, ROW_MAX, ROW_MAX, 44 * 4 * BLOCK]
        );
    }
}
