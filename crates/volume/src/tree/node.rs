//! A node: a header, then records in blocks (leaves) or pointers (interior nodes).
//!
//! *Invariants.* A [`Node`] has passed every check that needs no decoding of records: checksum,
//! identity, and lengths that stay inside it. Its bytes never change.

use super::error::{Defect, Error, Result};
use super::pointer::Pointer;
use super::record::{Key, Kind, Record};
use crate::checksum::checksum;
use crate::varint::Reader;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a block of space.
pub(super) const BLOCK: usize = 4096;
/// Bytes of the header.
pub(super) const HEADER: usize = 48;
const MAGIC: [u8; 4] = *b"HfTn";
pub(super) const CHECKSUM: Range<usize> = 8..16;
/// Bytes of the offset of a block of records.
pub(super) const OFFSET: usize = 2;

/// The generation and subvolume of a new node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The generation that the next superblock will have.
    pub generation: u64,
    /// The subvolume that wrote it.
    pub subvolume: u32,
}

/// The fields of a header that describe its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: u8,
    pub(super) level: u8,
    pub(super) node: Pointer,
    pub(super) subvolume: u32,
    /// Bytes in use, including this header.
    pub(super) used: u32,
    /// Records of a leaf, pointers of an interior node.
    pub(super) count: u32,
    /// Blocks of records; 0 in an interior node.
    pub(super) runs: u16,
}

impl Header {
    /// Writes the header, the volume's identity and the checksum over a whole node.
    pub(super) fn seal(&self, bytes: &mut [u8], volume: u32) {
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = self.kind;
        bytes[5] = self.level;
        bytes[6..8].copy_from_slice(&self.node.blocks.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.node.block.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.node.generation.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.subvolume.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.used.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.count.to_le_bytes());
        bytes[44..46].copy_from_slice(&self.runs.to_le_bytes());
        bytes[46..48].fill(0);
        let sum = checksum(bytes, CHECKSUM) | u64::from(volume) << 32;
        bytes[CHECKSUM].copy_from_slice(&sum.to_le_bytes());
    }

    /// Reads a header without checking it. `None`: no node begins like this.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        if reader.take(4)? != MAGIC {
            return None;
        }
        let (kind, level, blocks) = (reader.byte()?, reader.byte()?, reader.short()?);
        let _checksum_and_volume = reader.long()?;
        let (block, generation) = (reader.long()?, reader.long()?);
        let (subvolume, used, count) = (reader.word()?, reader.word()?, reader.word()?);
        let (runs, flags) = (reader.short()?, reader.short()?);
        let node = Pointer {
            block,
            blocks,
            generation,
        };
        (flags == 0).then_some(Self {
            kind,
            level,
            node,
            subvolume,
            used,
            count,
            runs,
        })
    }
}

/// A verified node.
#[derive(Clone, Debug)]
pub struct Node {
    bytes: Arc<[u8]>,
    header: Header,
}

impl Node {
    /// Verifies a node read through `pointer` for a tree of `kind` at `level`.
    pub(super) fn verify(
        bytes: Arc<[u8]>,
        volume: u32,
        pointer: Pointer,
        kind: Kind,
        key_len: usize,
        level: u8,
    ) -> Result<Self, Defect> {
        let magic = bytes.first_chunk() == Some(&MAGIC);
        if !magic || bytes.len() != usize::from(pointer.blocks) * BLOCK {
            return Err(Defect::Magic);
        }
        let stored = bytes.get(CHECKSUM).and_then(|field| field.first_chunk());
        let stored = u64::from_le_bytes(*stored.ok_or(Defect::Layout)?);
        // The upper half of the checksum would be zero; the field holds the volume's identity
        // there.
        if u64::from(stored as u32) != checksum(&bytes, CHECKSUM) {
            return Err(Defect::Checksum);
        }
        let found = (stored >> 32) as u32;
        if found != volume {
            return Err(Defect::Volume { found });
        }
        let header = Header::read(&bytes).ok_or(Defect::Layout)?;
        let found = header.node;
        if found.block != pointer.block {
            return Err(Defect::Address { found: found.block });
        }
        if found.generation != pointer.generation {
            let expected = pointer.generation;
            return Err(Defect::Generation {
                expected,
                found: found.generation,
            });
        }
        if header.kind != kind as u8 {
            return Err(Defect::Kind { found: header.kind });
        }
        if header.level != level {
            return Err(Defect::Level {
                expected: level,
                found: header.level,
            });
        }
        let fits = found.blocks == pointer.blocks
            && header.used as usize <= bytes.len()
            && header.is_sound(key_len);
        if !fits {
            return Err(Defect::Layout);
        }
        Ok(Self { bytes, header })
    }

    /// Its place.
    #[must_use]
    pub fn pointer(&self) -> Pointer {
        self.header.node
    }

    /// Its level; 0: a leaf.
    #[must_use]
    pub fn level(&self) -> u8 {
        self.header.level
    }

    /// Is it of this kind of tree and this level?
    pub(super) fn belongs(&self, kind: Kind, level: u8) -> bool {
        (self.header.kind, self.header.level) == (kind as u8, level)
    }

    /// The subvolume that wrote it.
    #[must_use]
    pub fn subvolume(&self) -> u32 {
        self.header.subvolume
    }

    /// Records of a leaf, pointers of an interior node: as the header says.
    #[must_use]
    pub fn count(&self) -> usize {
        self.header.count as usize
    }

    /// Blocks of records in a leaf.
    #[must_use]
    pub fn runs(&self) -> usize {
        usize::from(self.header.runs)
    }

    /// Bytes in use, including the header.
    #[must_use]
    pub fn used(&self) -> usize {
        self.header.used as usize
    }

    /// All its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The range of block `index` of records: the count byte, then the records.
    #[inline]
    pub(super) fn run(&self, index: usize) -> Option<Range<usize>> {
        let directory = self.used() - self.runs() * OFFSET;
        let offset = |index: usize| -> Option<usize> {
            if index == self.runs() {
                return Some(directory);
            }
            let at = directory + index * OFFSET;
            let field = self.bytes.get(at..at + OFFSET)?;
            Some(usize::from(u16::from_le_bytes(*field.first_chunk()?)))
        };
        let (start, end) = (offset(index)?, offset(index + 1)?);
        let first = index > 0 || start == HEADER;
        (first && start >= HEADER && start < end && end <= directory).then_some(start..end)
    }

    /// The first key of block `index` of records.
    pub(super) fn run_key<R: Record>(&self, index: usize) -> Option<R::Key> {
        let run = self.run(index)?;
        let mut reader = Reader::new(self.bytes.get(run.start + 1..run.end)?);
        R::first_key(&mut reader)
    }

    /// Key and pointer `index` of an interior node.
    #[inline]
    pub(super) fn child<K: Key>(&self, index: usize) -> Option<(K, Pointer)> {
        let len = K::LEN + Pointer::LEN;
        let at = HEADER + index * len;
        if at + len > self.used() {
            return None;
        }
        let mut reader = Reader::new(self.bytes.get(at..at + len)?);
        let key = K::read(&mut reader)?;
        Some((key, Pointer::from_bytes(reader.take(Pointer::LEN)?)?))
    }

    /// How many children begin at or before `key`. `None`: a child is damaged.
    pub(super) fn children_upto<K: Key>(&self, key: &K) -> Option<usize> {
        upto(self.count(), |index| {
            Some(self.child::<K>(index)?.0 <= *key)
        })
    }

    /// How many blocks of records begin at or before `key`. `None`: a block is damaged.
    pub(super) fn runs_upto<R: Record>(&self, key: &R::Key) -> Option<usize> {
        upto(self.runs(), |index| Some(self.run_key::<R>(index)? <= *key))
    }
}

/// Makes the checksum of a damaged node right again.
#[cfg(test)]
pub(super) fn reseal(bytes: &mut [u8]) {
    let sum = checksum(bytes, CHECKSUM);
    bytes[CHECKSUM].copy_from_slice(&sum.to_le_bytes());
}

impl Header {
    /// Do the counts make sense, and do they fit into the bytes in use?
    fn is_sound(&self, key_len: usize) -> bool {
        let (count, runs) = (self.count as usize, usize::from(self.runs));
        let Some(body) = (self.used as usize).checked_sub(HEADER) else {
            return false;
        };
        if self.level == 0 {
            (1..=count).contains(&runs) && body > runs * OFFSET
        } else {
            let pointers = count.checked_mul(key_len + Pointer::LEN);
            count > 0 && runs == 0 && pointers == Some(body)
        }
    }
}

/// The number of items, of `count` sorted ones, for which `is_before` holds.
fn upto(count: usize, is_before: impl Fn(usize) -> Option<bool>) -> Option<usize> {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low.midpoint(high);
        if is_before(middle)? {
            low = middle + 1
        } else {
            high = middle
        }
    }
    Some(low)
}

/// Child `index` of an interior node.
pub(super) fn child<R: Record>(node: &Node, index: usize) -> Result<(R::Key, Pointer)> {
    let block = node.pointer().block;
    node.child(index).ok_or(Error::Corrupt {
        block,
        defect: Defect::Pointer,
    })
}
