//! A directory as the kernel shows it, by system calls.

use super::cold::{CALL, Directory, Name};
use anyhow::{Result, ensure};
use holdfast_types::Ino;
use rustix::fs::{AtFlags, Dir, Mode, OFlags, open, statat};
use std::hint::black_box;
use std::os::fd::OwnedFd;
use std::path::Path;

/// An open directory.
pub(super) struct ByCalls {
    fd: OwnedFd,
    entries: Dir,
}

impl ByCalls {
    /// Opens it.
    ///
    /// # Errors
    /// Those of open(2).
    pub(super) fn open(path: &Path) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = open(path, flags, Mode::empty())?;
        let entries = Dir::read_from(&fd)?;
        Ok(Self { fd, entries })
    }
}

impl Directory for ByCalls {
    fn some(&mut self) -> Result<Vec<Name>> {
        let mut some = Vec::new();
        while some.len() < CALL {
            let Some(entry) = self.entries.next() else {
                break;
            };
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if !matches!(name, b"." | b"..") {
                some.push((Ino(entry.ino()), name.to_vec()));
            }
        }
        Ok(some)
    }

    fn stat(&self, name: &[u8]) -> Result<()> {
        let stat = black_box(statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW)?);
        ensure!(stat.st_size > 0, "an empty file");
        Ok(())
    }

    /// There is no such call.
    fn with_attributes(&self) -> Option<Result<u64>> {
        None
    }
}
