//! A host that answers slowly: one directory of many small files, of which the kernel learns nothing without asking.
//!
//! *Invariants.* Each LOOKUP, GETATTR and READDIR takes the delay, however many are under way, as on a network's file
//! system; a listing tells names alone. What was told is valid as long as the mount: so a stat costs one delay, and a fresh
//! mount has nothing in memory. What a name means is in the name.

use crate::chance::{name, number_of};
use holdfast_fuse::wire::{DirSink, ReadRequest};
use holdfast_fuse::{Context, Operations};
use holdfast_types::{Attr, Errno, FileType, Ino, Result, StatFs, Time};
use std::thread::sleep;
use std::time::Duration;

/// The directory that the files are in, below the root.
pub(crate) const DIR: &str = "files";
/// Bytes of a file.
pub(crate) const FILE_BYTES: u64 = 1000;

const DIR_INO: Ino = Ino(2);
/// The number of the first file.
const FIRST: u64 = 3;

/// The file system.
pub(crate) struct SlowHost {
    files: u64,
    delay: Duration,
}

impl SlowHost {
    /// With so many files, and this delay.
    pub(crate) fn new(files: u64, delay: Duration) -> Self {
        Self { files, delay }
    }

    fn attr(&self, ino: Ino) -> Result<Attr> {
        let is_dir = ino == Ino::ROOT || ino == DIR_INO;
        if !is_dir && !(FIRST..FIRST + self.files).contains(&ino.0) {
            return Err(Errno::ENOENT);
        }
        let time = Time::new(1_700_000_000, 0);
        let (kind, perm, nlink, size) = match is_dir {
            true => (FileType::Directory, 0o755, 2, 4096),
            false => (FileType::Regular, 0o644, 1, FILE_BYTES),
        };
        Ok(Attr {
            ino,
            kind,
            perm,
            nlink,
            uid: 0,
            gid: 0,
            rdev: 0,
            size,
            blocks: 8,
            atime: time,
            mtime: time,
            ctime: time,
            btime: time,
        })
    }
}

impl Operations for SlowHost {
    fn lookup(&self, _: &Context<'_>, parent: Ino, name: &[u8]) -> Result<Attr> {
        sleep(self.delay);
        match parent {
            Ino::ROOT if name == DIR.as_bytes() => self.attr(DIR_INO),
            DIR_INO => {
                let number = number_of(name).ok_or(Errno::ENOENT)?;
                self.attr(Ino(FIRST + number))
            }
            _ => Err(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Context<'_>, ino: Ino, _: Option<u64>) -> Result<Attr> {
        sleep(self.delay);
        self.attr(ino)
    }

    fn readdir(
        &self,
        _: &Context<'_>,
        ino: Ino,
        request: &ReadRequest,
        sink: &mut DirSink<'_>,
    ) -> Result<()> {
        sleep(self.delay);
        if ino == Ino::ROOT {
            if request.offset == 0 {
                let _ = sink.push(DIR.as_bytes(), DIR_INO, FileType::Directory, 1);
            }
            return Ok(());
        }
        for number in request.offset..self.files {
            let ino = Ino(FIRST + number);
            if !sink.push(&name(number), ino, FileType::Regular, number + 1) {
                break;
            }
        }
        Ok(())
    }

    fn statfs(&self, _: &Context<'_>, _: Ino) -> Result<StatFs> {
        Ok(StatFs {
            block_size: 4096,
            blocks: self.files,
            blocks_free: 0,
            blocks_available: 0,
            files: self.files,
            files_free: 0,
            name_max: 255,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_that_there_are_have_attributes_and_no_others() {
        let host = SlowHost::new(2, Duration::ZERO);
        for (ino, kind) in [
            (Ino::ROOT, Some(FileType::Directory)),
            (DIR_INO, Some(FileType::Directory)),
            (Ino(FIRST), Some(FileType::Regular)),
            (Ino(FIRST + 1), Some(FileType::Regular)),
            (Ino(FIRST + 2), None),
            (Ino(0), None),
            (Ino(u64::MAX), None),
        ] {
            let attr = host.attr(ino).ok();
            assert_eq!(attr.map(|attr| attr.kind), kind, "{ino:?}");
        }
    }
}
