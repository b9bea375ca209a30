//! What there is in a tree: as its archive says, and as a directory has it.

use anyhow::{Context, Result};
use std::collections::HashSet;
use std::fs;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use tar::{Archive, EntryType};

/// Counts of one tree, its root left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Census {
    /// Regular files, each hard link counted.
    pub(crate) files: u64,
    pub(super) directories: u64,
    pub(super) symlinks: u64,
    /// Fifos and devices.
    pub(super) others: u64,
    /// Those that no dot in their path hides from ls(1).
    pub(super) visible: u64,
    /// Content of the files; that of a hard link counts once.
    pub(crate) bytes: u64,
    /// The same in whole blocks of 4 KiB.
    pub(super) block_bytes: u64,
}

const BLOCK: u64 = 4096;

impl Census {
    /// Everything that has a name.
    pub(crate) fn entries(&self) -> u64 {
        self.files + self.directories + self.symlinks + self.others
    }

    fn count(&mut self, path: &Path, kind: EntryType, bytes: u64) {
        match kind {
            EntryType::Directory => self.directories += 1,
            EntryType::Symlink => self.symlinks += 1,
            EntryType::Char | EntryType::Block | EntryType::Fifo => self.others += 1,
            _ => self.files += 1,
        }
        let hides = |part: Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
        self.visible += u64::from(!path.components().any(hides));
        self.bytes += bytes;
        self.block_bytes += bytes.next_multiple_of(BLOCK);
    }

    /// Of what an archive holds. Directories that it only names as a part of others' paths count,
    /// too.
    ///
    /// # Errors
    /// If it is no archive, or a broken one; content that has what a search of the files looks for.
    pub(super) fn of_archive(archive: impl Read) -> Result<Self> {
        let mut census = Self::default();
        let mut seen = Seen::default();
        for entry in Archive::new(archive).entries()? {
            let entry = entry.context("this is no tar archive, or a broken one")?;
            let kind = entry.header().entry_type();
            if kind.is_pax_global_extensions() {
                continue;
            }
            let path = plain(&entry.path()?);
            let above = path
                .ancestors()
                .skip(1)
                .filter(|above| *above != Path::new(""));
            for above in above {
                if !seen.insert(above) {
                    break;
                }
                census.count(above, EntryType::Directory, 0);
            }
            if path != Path::new("") && seen.insert(&path) {
                let bytes = if kind.is_hard_link() { 0 } else { entry.size() };
                census.count(&path, kind, bytes);
            }
        }
        Ok(census)
    }

    /// Of what a directory holds.
    ///
    /// # Errors
    /// If it cannot be listed.
    pub(super) fn of_directory(root: &Path) -> Result<Self> {
        let mut census = Self::default();
        let mut left = vec![PathBuf::new()];
        while let Some(below) = left.pop() {
            let folder = root.join(&below);
            let what = || format!("cannot list {}", folder.display());
            for entry in fs::read_dir(&folder).with_context(what)? {
                let entry = entry.with_context(what)?;
                let path = below.join(entry.file_name());
                let attributes = entry.metadata().with_context(what)?;
                let kind = attributes.file_type();
                if kind.is_dir() {
                    census.count(&path, EntryType::Directory, 0);
                    left.push(path);
                } else if kind.is_symlink() {
                    census.count(&path, EntryType::Symlink, 0);
                } else if kind.is_file() {
                    census.count(&path, EntryType::Regular, attributes.len());
                } else {
                    census.count(&path, EntryType::Fifo, 0);
                }
            }
        }
        Ok(census)
    }
}

/// Paths that were met: of each only a number, for there may be millions.
#[derive(Default)]
struct Seen {
    hasher: BuildHasherDefault<DefaultHasher>,
    numbers: HashSet<u64>,
}

impl Seen {
    /// Takes a path in; was it new?
    fn insert(&mut self, path: &Path) -> bool {
        self.numbers.insert(self.hasher.hash_one(path))
    }
}

/// The path as tar(1) makes it below the directory that it unpacks into.
fn plain(path: &Path) -> PathBuf {
    let parts = path.components();
    let parts = parts.filter(|part| matches!(part, Component::Normal(_)));
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use tar::{Builder, Header};

    fn archive(entries: &[(&str, EntryType, &str)]) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        for (path, kind, content) in entries {
            let mut header = Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_size(0);
            if matches!(kind, EntryType::Symlink | EntryType::Link) {
                builder
                    .append_link(&mut header, path, content)
                    .expect("appended");
            } else {
                header.set_size(content.len() as u64);
                header.set_cksum();
                builder
                    .append_data(&mut header, path, content.as_bytes())
                    .expect("appended");
            }
        }
        builder.into_inner().expect("written")
    }

    #[test]
    fn an_archive_is_counted_with_the_directories_that_it_only_names() {
        let archive = archive(&[
            ("./", EntryType::Directory, ""),
            ("./top/", EntryType::Directory, ""),
            ("./top/a", EntryType::Regular, "12345"),
            ("./top/a", EntryType::Regular, "12345"),
            ("./top/b/.c/d", EntryType::Regular, ""),
            ("./top/link", EntryType::Symlink, "a"),
            ("./top/hard", EntryType::Link, "top/a"),
            ("fifo", EntryType::Fifo, ""),
        ]);
        let census = Census::of_archive(archive.as_slice()).expect("counted");
        let expected = Census {
            files: 3,
            directories: 3,
            symlinks: 1,
            others: 1,
            visible: 6,
            bytes: 5,
            block_bytes: 4096,
        };
        assert_eq!(census, expected);
        assert_eq!(census.entries(), 8);
        let broken = [b'x'; 2048];
        Census::of_archive(broken.as_slice()).expect_err("no archive");
    }

    #[test]
    fn a_directory_is_counted_as_the_archive_it_came_from() {
        let folder = tempfile::tempdir().expect("temporary directory");
        fs::create_dir_all(folder.path().join("a/.b")).expect("made");
        fs::write(folder.path().join("a/.b/file"), "12345").expect("written");
        symlink("nowhere", folder.path().join("link")).expect("made");
        let archive = archive(&[
            ("a/.b/file", EntryType::Regular, "12345"),
            ("link", EntryType::Symlink, "nowhere"),
        ]);
        assert_eq!(
            Census::of_directory(folder.path()).expect("listed"),
            Census::of_archive(archive.as_slice()).expect("counted")
        );
    }
}
