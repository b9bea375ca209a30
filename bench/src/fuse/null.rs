//! The null file system: it answers every request, without a lock, an allocation or a memory of
//! what was asked before. Nothing that does more can be faster on the same transport.
//!
//! *Invariants.* The first byte of a name determines its type: `n` does not exist, `d` is a
//! directory, all others are regular files. Creating or removing a name changes nothing. An inode
//! number is a hash of parent and name, with a bit that marks a directory.

use holdfast_fuse::wire::{DirSink, OpenReply, ReadRequest, Request};
use holdfast_fuse::{Answer, Context, Opened, Operations};
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
    fn answer(&self, _: &Context<'_>, ino: Ino, request: Request<'_>) -> Result<Answer> {
        Ok(match request {
            Request::Lookup { name } => match name.first() {
                Some(b'n') => return Err(Errno::ENOENT),
                first => Answer::Entry(attr(number(ino, name, first == Some(&b'd')))),
            },
            Request::GetAttr | Request::SetAttr(_) => Answer::Attr(attr(ino)),
            Request::StatX => Answer::StatX(attr(ino)),
            Request::Mkdir { name, .. } => Answer::Entry(attr(number(ino, name, true))),
            Request::Open(_) | Request::OpenDir(_) => Answer::Opened(OPENED),
            Request::Create(create) => {
                Answer::Created(attr(number(ino, create.name, false)), OPENED)
            }
            Request::Write(write) => Answer::Written(write.data.len()),
            // FLUSH is answered as by a file system that serves locks, so that a close takes as
            // many requests as with Holdfast.
            Request::Unlink { .. }
            | Request::Rmdir { .. }
            | Request::Flush { .. }
            | Request::Release(_) => Answer::Done,
            Request::StatFs => Answer::StatFs(StatFs {
                block_size: 4096,
                blocks: 1 << 20,
                blocks_free: 1 << 20,
                blocks_available: 1 << 20,
                files: 1 << 20,
                files_free: 1 << 20,
                name_max: 255,
            }),
            _ => return Err(Errno::ENOSYS),
        })
    }

    /// The bytes are those of an earlier request: even filling them would be work.
    fn read(&self, _: Ino, _: &ReadRequest, out: &mut [u8]) -> Result<usize> {
        Ok(out.len())
    }

    fn readdir(&self, _: &Context<'_>, _: Ino, _: &ReadRequest, _: &mut DirSink<'_>) -> Result<()> {
        Ok(())
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
