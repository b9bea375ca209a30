//! A host that answers slowly: one directory of many small files, and as many in a tree of small
//! directories, of which the kernel learns nothing without asking.
//!
//! *Invariants.* Each LOOKUP, GETATTR and READDIR takes the delay, however many are under way, as
//! on a network's file system; a listing tells names alone. What was told is valid as long as the
//! mount: so a stat costs one delay, and a fresh mount has nothing in memory. What a name means is
//! in the name.

use crate::chance::{name, number_of};
use crate::workloads::listing::cold::{FILES, SMALL, TREE};
use holdfast_fuse::wire::{DirSink, ReadRequest, Request};
use holdfast_fuse::{Answer, Context, Operations};
use holdfast_types::{Attr, Errno, FileType, Ino, Result, StatFs, Time};
use std::thread::sleep;
use std::time::Duration;

/// Bytes of a file.
pub(crate) const FILE_BYTES: u64 = 1000;

const FILES_INO: Ino = Ino(2);
const TREE_INO: Ino = Ino(3);
/// The number of the first file of the directory; of the first small directory; of the first file
/// in one of those.
const FILE: u64 = 1 << 32;
const DIR: u64 = 2 << 32;
const IN_TREE: u64 = 3 << 32;

/// What has a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Root,
    Files,
    Tree,
    /// A small directory.
    Small(u64),
    File,
}

/// A name, its inode and its type.
type Entry = (Vec<u8>, Ino, FileType);

/// The file system.
pub(crate) struct SlowHost {
    files: u64,
    delay: Duration,
}

impl SlowHost {
    /// With so many files in the directory and in the tree, and this delay.
    pub(crate) fn new(files: u64, delay: Duration) -> Self {
        Self { files, delay }
    }

    fn dirs(&self) -> u64 {
        self.files.div_ceil(SMALL)
    }

    fn is(&self, ino: Ino) -> Result<Is> {
        let below = |first: u64, count: u64| ino.0.checked_sub(first).filter(|at| *at < count);
        Ok(match ino {
            Ino::ROOT => Is::Root,
            FILES_INO => Is::Files,
            TREE_INO => Is::Tree,
            _ if below(FILE, self.files).is_some() => Is::File,
            _ if below(IN_TREE, self.files).is_some() => Is::File,
            _ => Is::Small(below(DIR, self.dirs()).ok_or(Errno::ENOENT)?),
        })
    }

    /// The name at this place of a directory.
    fn entry(&self, dir: Is, at: u64) -> Option<Entry> {
        let file = |first: u64, number: u64| {
            let is_there = number < self.files;
            is_there.then(|| (name(number), Ino(first + number), FileType::Regular))
        };
        match dir {
            Is::Root => {
                let all = [(FILES, FILES_INO), (TREE, TREE_INO)];
                let (name, ino) = all.get(usize::try_from(at).ok()?)?;
                Some((name.as_bytes().to_vec(), *ino, FileType::Directory))
            }
            Is::Files => file(FILE, at),
            Is::Tree => (at < self.dirs()).then(|| (name(at), Ino(DIR + at), FileType::Directory)),
            Is::Small(number) if at < SMALL => file(IN_TREE, number * SMALL + at),
            Is::Small(_) | Is::File => None,
        }
    }

    fn attr(&self, ino: Ino) -> Result<Attr> {
        let is_dir = self.is(ino)? != Is::File;
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

impl SlowHost {
    fn lookup(&self, parent: Ino, name: &[u8]) -> Result<Attr> {
        let dir = self.is(parent)?;
        let at = match dir {
            Is::Root => u64::from(name == TREE.as_bytes()),
            Is::Small(first) => {
                let number = number_of(name).ok_or(Errno::ENOENT)?;
                number.checked_sub(first * SMALL).ok_or(Errno::ENOENT)?
            }
            _ => number_of(name).ok_or(Errno::ENOENT)?,
        };
        match self.entry(dir, at) {
            Some((found, ino, _)) if found == name => self.attr(ino),
            _ => Err(Errno::ENOENT),
        }
    }
}

impl Operations for SlowHost {
    fn answer(&self, _: &Context<'_>, ino: Ino, request: Request<'_>) -> Result<Answer> {
        Ok(match request {
            Request::Lookup { name } => {
                sleep(self.delay);
                Answer::Entry(self.lookup(ino, name)?)
            }
            Request::GetAttr => {
                sleep(self.delay);
                Answer::Attr(self.attr(ino)?)
            }
            Request::StatX => {
                sleep(self.delay);
                Answer::StatX(self.attr(ino)?)
            }
            Request::Release(_) => Answer::Done,
            Request::StatFs => Answer::StatFs(StatFs {
                block_size: 4096,
                blocks: self.files,
                blocks_free: 0,
                blocks_available: 0,
                files: self.files,
                files_free: 0,
                name_max: 255,
            }),
            _ => return Err(Errno::ENOSYS),
        })
    }

    fn readdir(
        &self,
        _: &Context<'_>,
        ino: Ino,
        request: &ReadRequest,
        sink: &mut DirSink<'_>,
    ) -> Result<()> {
        sleep(self.delay);
        let dir = self.is(ino)?;
        let entries = (request.offset..).map_while(|at| Some((at, self.entry(dir, at)?)));
        for (at, (name, ino, kind)) in entries {
            if !sink.push(&name, ino, kind, at + 1) {
                break;
            }
        }
        Ok(())
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
            (FILES_INO, Some(FileType::Directory)),
            (TREE_INO, Some(FileType::Directory)),
            (Ino(FILE), Some(FileType::Regular)),
            (Ino(FILE + 1), Some(FileType::Regular)),
            (Ino(FILE + 2), None),
            (Ino(DIR), Some(FileType::Directory)),
            (Ino(DIR + 1), None),
            (Ino(IN_TREE + 1), Some(FileType::Regular)),
            (Ino(IN_TREE + 2), None),
            (Ino(0), None),
            (Ino(u64::MAX), None),
        ] {
            let attr = host.attr(ino).ok();
            assert_eq!(attr.map(|attr| attr.kind), kind, "{ino:?}");
        }
    }

    #[test]
    fn a_directory_has_all_files_and_those_of_the_tree_ten_each() {
        let host = SlowHost::new(25, Duration::ZERO);
        let names = |dir| (0..).map_while(|at| host.entry(dir, at)).count();
        let counts = [Is::Root, Is::Files, Is::Tree].map(names);
        assert_eq!(counts, [2, 25, 3]);
        assert_eq!([0, 1, 2].map(|dir| names(Is::Small(dir))), [10, 10, 5]);
        assert_eq!(names(Is::File), 0);
    }
}
