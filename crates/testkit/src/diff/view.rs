//! What the inspector sees of an object, and of a tree.

use crate::diff::op::Bytes;
use holdfast_types::{FileType, Time};
use std::collections::BTreeMap;

/// The inspector's look at one object: what the superuser sees without leaving a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The target's own inode number; the two targets' numbers must map one to one.
    pub ino: u64,
    /// What it is.
    pub kind: FileType,
    /// Permission, set-id and sticky bits.
    pub perm: u16,
    /// Number of names.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Owning group.
    pub gid: u32,
    /// Device number.
    pub rdev: u64,
    /// Length in bytes.
    pub size: u64,
    /// Space in units of 512 bytes.
    pub blocks: u64,
    /// The four times.
    pub times: Times,
    /// What is inside, if it was asked for.
    pub content: Content,
    /// Extended attributes and ACLs, if they were asked for.
    pub xattrs: Option<BTreeMap<Bytes, Bytes>>,
}

/// The times of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Last access.
    pub atime: Time,
    /// Last change of the content.
    pub mtime: Time,
    /// Last change of the inode.
    pub ctime: Time,
    /// Birth.
    pub btime: Time,
}

/// What an object holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Not read.
    Unseen,
    /// The bytes of a file.
    Bytes(Blocks),
    /// The names of a directory (without `.` and `..`), and their `d_type`.
    Names(BTreeMap<Bytes, u8>),
    /// The target of a symbolic link.
    Target(Bytes),
}

/// A file's bytes by block of 4 KiB; blocks of zeros are left out, so that two files with
/// the same bytes are equal whatever holes they have. Offsets near 2^63 cost nothing.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Blocks(BTreeMap<u64, Vec<u8>>);

/// Length of the blocks of [`Blocks`].
pub(crate) const BLOCK: usize = 4096;

impl Blocks {
    /// Adds the bytes of block number `index` (fewer than [`BLOCK`] at the end of a file).
    pub(crate) fn add(&mut self, index: u64, bytes: &[u8]) {
        let used = bytes
            .iter()
            .rposition(|&byte| byte != 0)
            .map_or(0, |last| last + 1);
        if used > 0 {
            self.0.insert(index, bytes[..used].to_vec());
        }
    }

    /// Where the two first differ: the offset of the byte.
    #[must_use]
    pub fn first_difference(&self, other: &Self) -> Option<u64> {
        let indices = self
            .0
            .keys()
            .chain(other.0.keys())
            .collect::<std::collections::BTreeSet<_>>();
        for &index in indices {
            let empty = Vec::new();
            let (mine, theirs) = (
                self.0.get(&index).unwrap_or(&empty),
                other.0.get(&index).unwrap_or(&empty),
            );
            if mine != theirs {
                let same = mine.iter().zip(theirs).take_while(|(a, b)| a == b).count();
                return Some(index * BLOCK as u64 + same as u64);
            }
        }
        None
    }
}

impl Blocks {
    /// Up to 8 bytes from this offset on, within its block.
    pub(crate) fn sample(&self, offset: u64) -> Vec<u8> {
        let (index, start) = (offset / BLOCK as u64, (offset % BLOCK as u64) as usize);
        let block = self.0.get(&index).map_or(&[][..], Vec::as_slice);
        block
            .get(start..)
            .unwrap_or_default()
            .iter()
            .take(8)
            .copied()
            .collect()
    }
}

impl std::fmt::Debug for Blocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} blocks of data", self.0.len())
    }
}

/// How closely to look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// Also the bytes of a file, the names of a directory.
    pub content: bool,
    /// Also the target of a symbolic link (reading it changes its time of access).
    pub target: bool,
    /// Also extended attributes.
    pub xattrs: bool,
}

impl Detail {
    /// Attributes only.
    pub const ATTRIBUTES: Self = Self {
        content: false,
        target: false,
        xattrs: false,
    };
    /// Everything.
    pub const ALL: Self = Self {
        content: true,
        target: true,
        xattrs: true,
    };
}

/// A whole tree: every path and what is there.
pub type Snapshot = BTreeMap<Bytes, View>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_and_zeros_are_the_same_bytes() {
        let (mut sparse, mut dense) = (Blocks::default(), Blocks::default());
        sparse.add(5, b"x");
        dense.add(0, &[0; BLOCK]);
        dense.add(5, b"x\0\0");
        assert_eq!(sparse, dense);
        dense.add(6, b"\0y");
        assert_eq!(sparse.first_difference(&dense), Some(6 * 4096));
    }
}
