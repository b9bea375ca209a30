//! The archive that trees are unpacked from: a file that was given, or a generated one.

use super::census::Census;
use super::generate;
use crate::commands;
use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How compressed archives begin, and what makes them plain ones.
const COMPRESSED: [(&[u8], &str); 4] = [
    (b"\x1f\x8b", "gzip"),
    (b"\xfd7zXZ\0", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"BZh", "bzip2"),
];

/// A plain archive, and what is in it.
pub(crate) struct TreeArchive {
    path: PathBuf,
    /// What it is, for reports.
    pub(super) name: String,
    pub(crate) census: Census,
}

impl TreeArchive {
    /// From a file; a compressed one is made plain in `scratch` first, for that is not what is
    /// measured.
    ///
    /// # Errors
    /// If it cannot be read, or is no archive, or an empty one.
    pub(super) fn given(file: &Path, scratch: &Path) -> Result<Self> {
        let what = || file.display().to_string();
        let path = match compression(file).with_context(what)? {
            None => std::path::absolute(file).with_context(what)?,
            Some(program) => {
                commands::require([program])?;
                let path = scratch.join("tree.tar");
                let mut command = Command::new(program);
                command.arg("-dc").arg(file);
                commands::run_into(&mut command, &path, scratch).with_context(what)?;
                path
            }
        };
        let name = file.file_name().unwrap_or_default();
        Self::at(path, name.to_string_lossy().into_owned()).with_context(what)
    }

    /// A generated one.
    ///
    /// # Errors
    /// If there is no space for it.
    pub(crate) fn generated(files: u64, scratch: &Path) -> Result<Self> {
        ensure!(files > 0, "a tree has one file at least");
        let path = scratch.join("tree.tar");
        let what = || format!("cannot write {}", path.display());
        let file = File::create(&path).with_context(what)?;
        generate::write(files, BufWriter::new(file)).with_context(what)?;
        Self::at(path, "generated".to_owned())
    }

    fn at(path: PathBuf, name: String) -> Result<Self> {
        let census = Census::of_archive(BufReader::new(File::open(&path)?))?;
        ensure!(census.files > 0, "there are no files in it");
        Ok(Self { path, name, census })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads it into the page cache, so that no phase waits for its disk.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn warm_up(&self) -> Result<()> {
        let what = || self.path.display().to_string();
        let mut file = File::open(&self.path).with_context(what)?;
        let mut piece = vec![0; 1 << 20];
        while file.read(&mut piece).with_context(what)? > 0 {}
        Ok(())
    }
}

/// The program that makes it plain, if it is compressed.
fn compression(path: &Path) -> io::Result<Option<&'static str>> {
    let mut begin = Vec::new();
    File::open(path)?.take(8).read_to_end(&mut begin)?;
    let found = COMPRESSED
        .iter()
        .find(|(magic, _)| begin.starts_with(magic));
    Ok(found.map(|(_, program)| *program))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_compressed_archive_is_the_same_tree() {
        let scratch = tempfile::tempdir().expect("temporary directory");
        let made = TreeArchive::generated(20, scratch.path()).expect("made");
        assert_eq!(made.census.files, 20);
        made.warm_up().expect("read");
        let plain = scratch.path().join("kept.tar");
        fs::rename(made.path(), &plain).expect("moved");
        let given = TreeArchive::given(&plain, scratch.path()).expect("taken");
        assert_eq!((given.path(), given.census), (plain.as_path(), made.census));
        let status = Command::new("gzip").arg(&plain).status().expect("started");
        assert!(status.success());
        let packed = scratch.path().join("kept.tar.gz");
        let given = TreeArchive::given(&packed, scratch.path()).expect("taken");
        assert_eq!(given.census, made.census);
        assert_eq!(given.name, "kept.tar.gz");
    }

    #[test]
    fn what_is_no_archive_is_refused_by_its_name() {
        let scratch = tempfile::tempdir().expect("temporary directory");
        let file = scratch.path().join("letter");
        for content in [vec![b'x'; 4096], Vec::new(), b"\x1f\x8bnothing".to_vec()] {
            fs::write(&file, content).expect("written");
            let refused = TreeArchive::given(&file, scratch.path()).err();
            let error = format!("{:#}", refused.expect("refused"));
            assert!(error.contains("letter"), "{error}");
        }
        let gone = TreeArchive::given(&scratch.path().join("gone"), scratch.path());
        assert!(format!("{:#}", gone.err().expect("refused")).contains("gone"));
        assert!(TreeArchive::generated(0, scratch.path()).is_err());
    }
}
