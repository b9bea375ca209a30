//! What a tree holds, on the host and in a volume, read by code that shares nothing.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use holdfast::FileSystem;
use rustix::fs::SeekFrom;

/// The type bits of a mode.
pub(crate) const KIND: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
pub(crate) const SYMLINK: u32 = 0o120_000;
const DIRECTORY: u32 = 0o040_000;
const PAGE: u64 = 4096;
/// Bytes of all names, or of one value.
const XATTRS: usize = 1 << 16;

/// What a name leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
    /// None for a time that no archive said.
    pub(crate) mtime: Option<(i64, i64)>,
    rdev: u64,
    pub(crate) size: u64,
    /// The first of several names of the same inode.
    pub(crate) first: Option<PathBuf>,
    content: u64,
    /// Where a file has data, if it is larger than a page: smaller ones may lie in their inode.
    pub(crate) data: Vec<Range<u64>>,
    target: PathBuf,
    pub(crate) xattrs: Xattrs,
}

/// Names, and values or what is the same only if they are.
type Xattrs = BTreeMap<String, String>;

pub(crate) type Tree = BTreeMap<PathBuf, Seen>;

fn short(content: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish()
}

fn shown_xattr(name: &[u8], value: &[u8]) -> (String, String) {
    let value = match value.len() {
        0..100 => value.escape_ascii().to_string(),
        length => format!("{length} bytes, {}", short(value)),
    };
    (name.escape_ascii().to_string(), value)
}

fn said(seconds: i64, nanos: i64, begun: i64) -> Option<(i64, i64)> {
    (seconds < begun || seconds > begun + 86_400).then_some((seconds, nanos))
}

fn name_groups(tree: &mut Tree, numbers: &HashMap<PathBuf, u64>) {
    let mut firsts: HashMap<u64, PathBuf> = HashMap::new();
    for (path, seen) in tree {
        if let Some(number) = numbers.get(path) {
            let first = firsts.entry(*number).or_insert_with(|| path.clone());
            seen.first = Some(first.clone());
        }
    }
}

/// A tree of the host. Times since `begun` were said by no archive.
pub(crate) fn on_host(top: &Path, begun: i64) -> io::Result<Tree> {
    let mut tree = Tree::new();
    let mut numbers = HashMap::new();
    let mut paths = vec![PathBuf::new()];
    while let Some(below) = paths.pop() {
        let path = top.join(&below);
        let meta = fs::symlink_metadata(&path)?;
        let mut seen = Seen {
            mode: meta.mode(),
            owner: (meta.uid(), meta.gid()),
            mtime: said(meta.mtime(), meta.mtime_nsec(), begun),
            rdev: meta.rdev(),
            ..Seen::default()
        };
        match meta.mode() & KIND {
            REGULAR => {
                seen.size = meta.len();
                seen.content = short(&fs::read(&path)?);
                seen.data = host_data(&path)?;
            }
            SYMLINK => seen.target = fs::read_link(&path)?,
            DIRECTORY => {
                for entry in fs::read_dir(&path)? {
                    paths.push(below.join(entry?.file_name()));
                }
            }
            _ => {}
        }
        if meta.mode() & KIND != SYMLINK {
            seen.xattrs = host_xattrs(&path)?;
        }
        if !meta.is_dir() && meta.nlink() > 1 {
            numbers.insert(below.clone(), meta.ino());
        }
        tree.insert(below, seen);
    }
    name_groups(&mut tree, &numbers);
    Ok(tree)
}

fn host_data(path: &Path) -> io::Result<Vec<Range<u64>>> {
    let file = File::open(path)?;
    let mut runs: Vec<Range<u64>> = Vec::new();
    let size = file.metadata()?.len();
    let mut at = if size < PAGE { size } else { 0 };
    while let Ok(start) = rustix::fs::seek(&file, SeekFrom::Data(at)) {
        at = rustix::fs::seek(&file, SeekFrom::Hole(start))?;
        runs.push(start..at);
    }
    Ok(runs)
}

fn host_xattrs(path: &Path) -> io::Result<Xattrs> {
    let mut bytes = vec![0; XATTRS];
    let length = rustix::fs::llistxattr(path, &mut bytes[..])?;
    let names = bytes[..length].to_vec();
    let names = names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    names
        .map(|name| {
            let length = rustix::fs::lgetxattr(path, OsStr::from_bytes(name), &mut bytes[..])?;
            Ok(shown_xattr(name, &bytes[..length]))
        })
        .collect()
}

/// A tree of a volume.
pub(crate) fn in_volume(fs: &FileSystem, top: &Path, begun: i64) -> io::Result<Tree> {
    let mut tree = Tree::new();
    let mut numbers = HashMap::new();
    let mut paths = vec![PathBuf::new()];
    while let Some(below) = paths.pop() {
        let path = top.join(&below);
        let meta = fs.symlink_metadata(&path)?;
        let mut seen = Seen {
            mode: meta.mode(),
            owner: (meta.uid(), meta.gid()),
            mtime: said(meta.mtime(), meta.mtime_nsec(), begun),
            rdev: meta.attr().rdev,
            ..Seen::default()
        };
        match meta.mode() & KIND {
            REGULAR => {
                seen.size = meta.len();
                seen.content = short(&fs.read(&path)?);
                let file = fs.open(&path)?;
                let mut at = if meta.len() < PAGE { meta.len() } else { 0 };
                while let Some(start) = file.seek_data(at)? {
                    at = file.seek_hole(start)?.unwrap_or(meta.len());
                    seen.data.push(start..at);
                }
            }
            SYMLINK => seen.target = fs.read_link(&path)?,
            DIRECTORY => {
                for entry in fs.read_dir(&path)? {
                    paths.push(below.join(entry?.file_name()));
                }
            }
            _ => {}
        }
        if meta.mode() & KIND != SYMLINK {
            for name in fs.list_xattr(&path)? {
                let value = fs.get_xattr(&path, &name)?.unwrap_or_default();
                seen.xattrs.extend([shown_xattr(name.as_bytes(), &value)]);
            }
        }
        if !meta.is_dir() && meta.nlink() > 1 {
            numbers.insert(below.clone(), meta.attr().ino.0);
        }
        tree.insert(below, seen);
    }
    name_groups(&mut tree, &numbers);
    Ok(tree)
}

/// The names at which two trees differ, and how.
pub(crate) fn differences(one: &Tree, other: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for (path, seen) in one {
        match other.get(path) {
            Some(same) if same == seen => {}
            Some(another) => found.push(format!("{path:?}:\n    {seen:?}\n    {another:?}")),
            None => found.push(format!("{path:?}: only in the first: {seen:?}")),
        }
    }
    let more = other.iter().filter(|(path, _)| !one.contains_key(*path));
    found.extend(more.map(|(path, seen)| format!("{path:?}: only in the second: {seen:?}")));
    found
}
