//! What one side of a pair works on.

use holdfast_core::types::{Caller, OpenFlags, Result, XattrSet};
use holdfast_core::{FileSystem, Node, OpenFile};

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;

/// An attribute that every object has.
pub(crate) const XATTR: &[u8] = b"user.audit.attribute";

/// One side of a pair in one repetition: the thread's own view of the place it was given.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) fs: FileSystem,
    pub(crate) who: Caller,
    /// 0 or 1.
    pub(crate) side: usize,
    /// Makes names differ between repetitions.
    pub(crate) round: usize,
    pub(crate) root: Node,
    /// The directory to work in, and its path from the root.
    pub(crate) dir: Node,
    pub(crate) dir_path: Vec<u8>,
    /// A second directory that is this side's own.
    pub(crate) extra: Node,
    /// Names in `dir` of a file with content, and of a symbolic link.
    pub(crate) file: Vec<u8>,
    pub(crate) link: Vec<u8>,
    /// The page of the file that is this side's.
    pub(crate) page: u64,
}

impl Setup {
    /// A name that is free, and this side's own: 24 bytes, as most are in practice.
    pub(crate) fn name(&self, what: &str) -> Vec<u8> {
        own_name(what, self.side, self.round)
    }

    /// The path of a name in the directory, from the root.
    pub(crate) fn path(&self, name: &[u8]) -> Vec<u8> {
        [&self.dir_path, b"/".as_slice(), name].concat()
    }

    /// The file.
    ///
    /// # Errors
    /// What looking it up answers.
    pub(crate) fn node(&self) -> Result<Node> {
        self.fs.lookup(&self.who, &self.dir, &self.file)
    }

    /// A handle of the file.
    ///
    /// # Errors
    /// What opening it answers.
    pub(crate) fn open(&self) -> Result<OpenFile> {
        self.fs
            .open(&self.who, &self.node()?, OpenFlags::READ_WRITE)
    }

    /// Makes an empty file.
    ///
    /// # Errors
    /// What making it answers.
    pub(crate) fn make(&self, dir: &Node, name: &[u8]) -> Result<Node> {
        let flags = OpenFlags::WRITE_ONLY | OpenFlags::EXCLUSIVE;
        let file = self.fs.create(&self.who, dir, name, 0o644, flags)?;
        Ok(file.node().clone())
    }

    /// Where the side's page begins.
    pub(crate) fn offset(&self) -> u64 {
        self.page * PAGE
    }

    /// Makes the file, with this many pages and an attribute, and the symbolic link.
    ///
    /// # Errors
    /// What the calls answer.
    pub(crate) fn make_objects(&self, pages: u64) -> Result<()> {
        let flags = OpenFlags::READ_WRITE | OpenFlags::EXCLUSIVE;
        let file = self
            .fs
            .create(&self.who, &self.dir, &self.file, 0o644, flags)?;
        let content = vec![1; (pages * PAGE) as usize];
        self.fs.write(&self.who, &file, 0, &content)?;
        self.fs
            .setxattr(&self.who, file.node(), XATTR, b"value", XattrSet::Create)?;
        let target = b"where it leads";
        self.fs.symlink(&self.who, &self.dir, &self.link, target)?;
        Ok(())
    }

    /// Reads what [`Setup::make_objects`] made: with `relatime`, the first read after a change
    /// moves the access time, and the audit is about the reads that follow.
    ///
    /// # Errors
    /// What the calls answer.
    pub(crate) fn settle(&self) -> Result<()> {
        let file = self.open()?;
        self.fs.read(&file, 0, &mut [0; 1])?;
        let link = self.fs.lookup(&self.who, &self.dir, &self.link)?;
        self.fs.readlink(&link)?;
        let dir = self.fs.open(&self.who, &self.dir, OpenFlags::DIRECTORY)?;
        self.fs.read_dir(&dir, 0, &mut |_| false)
    }
}

/// A name of one side and round.
pub(crate) fn own_name(what: &str, side: usize, round: usize) -> Vec<u8> {
    format!("{what}-{side}-{round:.<width$}", width = 21 - what.len()).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_24_bytes_and_differ() {
        assert_eq!(own_name("gone", 0, 7).len(), 24);
        assert_eq!(own_name("absent", 1, 12).len(), 24);
        assert_ne!(own_name("gone", 0, 7), own_name("gone", 1, 7));
        assert_ne!(own_name("gone", 0, 7), own_name("gone", 0, 8));
    }
}
