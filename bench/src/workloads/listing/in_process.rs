//! A directory as the library shows it, in this process.

use super::cold::{CALL, Directory, Name};
use anyhow::{Result, ensure};
use holdfast_core::{FileSystem, OpenFile};
use holdfast_types::{Caller, OpenFlags};
use std::hint::black_box;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// An open directory.
pub(super) struct InProcess<'f> {
    fs: &'f FileSystem,
    caller: Caller,
    dir: OpenFile,
    /// The cookie of the last name that was told.
    after: u64,
}

impl<'f> InProcess<'f> {
    /// Opens a directory below the root.
    ///
    /// # Errors
    /// Those of the file system.
    pub(super) fn open(fs: &'f FileSystem, path: &Path) -> Result<Self> {
        let caller = Caller::root();
        let path = path.as_os_str().as_bytes();
        let dir = fs.resolve(&caller, &fs.root(), path, true)?;
        let dir = fs.open(&caller, &dir, OpenFlags::DIRECTORY)?;
        let after = 0;
        Ok(Self {
            fs,
            caller,
            dir,
            after,
        })
    }
}

impl Directory for InProcess<'_> {
    fn some(&mut self) -> Result<Vec<Name>> {
        let mut some: Vec<Name> = Vec::new();
        let mut last = self.after;
        self.fs.read_dir(&self.dir, self.after, &mut |entry| {
            if some.len() == CALL {
                return false;
            }
            last = entry.cookie;
            if !is_dot(entry.name) {
                some.push((entry.ino, entry.name.to_vec()));
            }
            true
        })?;
        self.after = last;
        Ok(some)
    }

    fn stat(&self, name: &[u8]) -> Result<()> {
        let node = self.fs.lookup(&self.caller, self.dir.node(), name)?;
        let attr = black_box(self.fs.getattr(&node));
        ensure!(attr.size > 0, "an empty file");
        Ok(())
    }

    fn with_attributes(&self) -> Option<Result<u64>> {
        let mut met = 0;
        let mut failed = Ok(());
        let listed = self.fs.read_dir_plus(&self.dir, 0, &mut |entry, attr| {
            met += u64::from(!is_dot(entry.name));
            failed = attr.map(|attr| {
                black_box(attr);
            });
            failed.is_ok()
        });
        Some(listed.and(failed).map(|_| met).map_err(Into::into))
    }
}

fn is_dot(name: &[u8]) -> bool {
    matches!(name, b"." | b"..")
}
