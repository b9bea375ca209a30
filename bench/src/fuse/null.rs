//! The null file system: it answers every request, without a lock, an allocation or a memory of
//! what was asked before. Nothing that does more can be faster on the same transport.
//!
//! *Invariants.* What a name means is in the name: one that begins with `n` does not exist, one
//! with `d` is a directory, all others are regular files; making or removing it changes nothing.
//! An inode number is a hash of parent and name, with a bit that tells a directory.

use holdfast_fuse::wire::{
    CreateRequest, DirPlusSink, DirSink, OpenReply, OpenRequest, ReadRequest, SetAttrRequest,
    WriteRequest,
};
use holdfast_fuse::{Context, Opened, Operations};
use holdfast_types::{Attr, Errno, FileType, Ino, Result, StatFs, Time};

/// Length of every regular file.
pub(crate) const FILE_BYTES: u64 = 1 << 20;

/// Set in all numbers but the root's, so that none is 0 or 1.
const ANY: u64 = 1 << 61;
const DIRECTORY: u64 = 1 << 62;
const HASH: u64 = ANY - 1;

/// What our own file system asks of the kernel, so that the kernel has as much to do.
const OPENED: Opened = Opened {
    fh: 0,
    flags: OpenReply::KEEP_CACHE.union(OpenReply::PARALLEL_DIRECT_WRITES),
    backing: None,
};

/// The file system.
pub(crate) struct Null;

fn number(parent: Ino, name: &[u8], directory: bool) -> Ino {
    let hash = name.iter().fold(parent.0, |hash, &byte| {
        (hash.rotate_left(5) ^ u64::from(byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    let kind = if directory { DIRECTORY } else { 0 };
    Ino((hash & HASH) | ANY | kind)
}

fn attr(ino: Ino) -> Attr {
    let directory = ino == Ino::ROOT || ino.0 & DIRECTORY != 0;
    let time = Time::new(1_700_000_000, 0);
    Attr {
        ino,
        kind: if directory {
            FileType::Directory
        } else {
            FileType::Regular
        },
        perm: if directory { 0o755 } else { 0o644 },
        nlink: if directory { 2 } else { 1 },
        uid: 0,
        gid: 0,
        rdev: 0,
        size: FILE_BYTES,
        blocks: FILE_BYTES / 512,
        atime: time,
        mtime: time,
        ctime: time,
        btime: time,
    }
}

impl Operations for Null {
    fn lookup(&self, _: &Context<'_>, parent: Ino, name: &[u8]) -> Result<Attr> {
        match name.first() {
            Some(b'n') => Err(Errno::ENOENT),
            first => Ok(attr(number(parent, name, first == Some(&b'd')))),
        }
    }

    fn getattr(&self, _: &Context<'_>, ino: Ino, _: Option<u64>) -> Result<Attr> {
        Ok(attr(ino))
    }

    fn setattr(&self, _: &Context<'_>, ino: Ino, _: &SetAttrRequest) -> Result<Attr> {
        Ok(attr(ino))
    }

    fn mkdir(&self, _: &Context<'_>, parent: Ino, name: &[u8], _: u32) -> Result<Attr> {
        Ok(attr(number(parent, name, true)))
    }

    fn unlink(&self, _: &Context<'_>, _: Ino, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn rmdir(&self, _: &Context<'_>, _: Ino, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn open(&self, _: &Context<'_>, _: Ino, _: &OpenRequest) -> Result<Opened> {
        Ok(OPENED)
    }

    fn create(
        &self,
        _: &Context<'_>,
        parent: Ino,
        request: &CreateRequest<'_>,
    ) -> Result<(Attr, Opened)> {
        Ok((attr(number(parent, request.name, false)), OPENED))
    }

    /// The bytes are those of some earlier request: even filling them would be work.
    fn read(&self, _: &Context<'_>, _: Ino, _: &ReadRequest, out: &mut [u8]) -> Result<usize> {
        Ok(out.len())
    }

    fn write(&self, _: &Context<'_>, _: Ino, request: &WriteRequest<'_>) -> Result<usize> {
        Ok(request.data.len())
    }

    /// Answered as a file system must that serves locks, so that closing is as many requests as
    /// with ours.
    fn flush(&self, _: &Context<'_>, _: Ino, _: u64, _: u64) -> Result<()> {
        Ok(())
    }

    fn opendir(&self, _: &Context<'_>, _: Ino, _: &OpenRequest) -> Result<Opened> {
        Ok(OPENED)
    }

    fn readdir(&self, _: &Context<'_>, _: Ino, _: &ReadRequest, _: &mut DirSink<'_>) -> Result<()> {
        Ok(())
    }

    fn readdirplus(
        &self,
        _: &Context<'_>,
        _: Ino,
        _: &ReadRequest,
        _: &mut DirPlusSink<'_>,
    ) -> Result<()> {
        Ok(())
    }

    fn statfs(&self, _: &Context<'_>, _: Ino) -> Result<StatFs> {
        Ok(StatFs {
            block_size: 4096,
            blocks: 1 << 20,
            blocks_free: 1 << 20,
            blocks_available: 1 << 20,
            files: 1 << 20,
            files_free: 1 << 20,
            name_max: 255,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_tells_a_directory_and_differs_by_parent_and_name() {
        let numbers = [
            number(Ino(1), b"f1", false),
            number(Ino(1), b"f2", false),
            number(Ino(2), b"f1", false),
            number(Ino(1), b"d1", true),
        ];
        for (index, ino) in numbers.iter().enumerate() {
            assert!(ino.0 > 1 && !numbers[..index].contains(ino), "{numbers:?}");
            assert_eq!(attr(*ino).kind.is_dir(), index == 3);
        }
        assert!(attr(Ino::ROOT).kind.is_dir());
    }
}
