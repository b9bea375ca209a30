//! Snapshots of all that a file system shows, for comparisons.

use holdfast_core::{FileSystem, Node};
use holdfast_types::{Attr, Caller, Errno, FileType, OpenFlags, Result};
use std::collections::BTreeMap;

/// A path below the root.
pub(crate) type Path = Vec<u8>;

/// What is visible of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) kind: FileType,
    pub(crate) perm: u16,
    pub(crate) owners: (u32, u32),
    pub(crate) nlink: u32,
    pub(crate) rdev: u64,
    pub(crate) size: u64,
    pub(crate) mtime: i64,
    /// Content, or target.
    pub(crate) bytes: Vec<u8>,
    pub(crate) xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// Everything below the root, and the root as the empty path.
pub(crate) type Snapshot = BTreeMap<Path, Seen>;

/// Content beyond this length is not read: a damaged size may have any value.
const CONTENT_MAX: u64 = 1 << 20;

/// Takes a snapshot, or returns the first error.
pub(crate) fn take(fs: &FileSystem) -> Result<Snapshot> {
    let (seen, errors) = take_what_can_be_read(fs);
    errors.first().map_or(Ok(seen), |(_, error)| Err(*error))
}

/// Takes what can be read, and lists failures.
pub(crate) fn take_what_can_be_read(fs: &FileSystem) -> (Snapshot, Vec<(Path, Errno)>) {
    let (mut seen, mut errors) = (Snapshot::new(), Vec::new());
    let mut waiting = vec![(Path::new(), fs.root(), 0)];
    while let Some((path, node, depth)) = waiting.pop() {
        match look(fs, &node) {
            Ok(one) => drop(seen.insert(path.clone(), one)),
            Err(error) => errors.push((path.clone(), error)),
        }
        // Damage may cause cycles.
        if fs.getattr(&node).kind != FileType::Directory || depth > 20 {
            continue;
        }
        match names(fs, &node) {
            Ok(names) => {
                for name in names {
                    let below = [&path[..], b"/", &name].concat();
                    match fs.lookup(&Caller::root(), &node, &name) {
                        Ok(node) => waiting.push((below, node, depth + 1)),
                        Err(error) => errors.push((below, error)),
                    }
                }
            }
            Err(error) => errors.push((path, error)),
        }
    }
    (seen, errors)
}

fn names(fs: &FileSystem, dir: &Node) -> Result<Vec<Vec<u8>>> {
    let listing = fs.open(&Caller::root(), dir, OpenFlags::NOATIME)?;
    let mut names = Vec::new();
    fs.read_dir(&listing, 0, &mut |entry| {
        if !matches!(entry.name, b"." | b"..") {
            names.push(entry.name.to_vec());
        }
        true
    })?;
    Ok(names)
}

fn look(fs: &FileSystem, node: &Node) -> Result<Seen> {
    let who = Caller::root();
    let Attr {
        kind,
        perm,
        nlink,
        uid,
        gid,
        rdev,
        size,
        mtime,
        ..
    } = fs.getattr(node);
    let bytes = match kind {
        FileType::Regular => {
            let file = fs.open(&who, node, OpenFlags::NOATIME)?;
            let mut bytes = vec![0; size.min(CONTENT_MAX) as usize];
            let mut done = 0;
            while done < bytes.len() {
                match fs.read(&file, done as u64, &mut bytes[done..])? {
                    0 => break,
                    read => done += read,
                }
            }
            bytes
        }
        FileType::Symlink => fs.readlink(node)?.into(),
        _ => Vec::new(),
    };
    let mut xattrs = BTreeMap::new();
    for name in fs.listxattr(&who, node)?.split(|byte| *byte == 0) {
        if !name.is_empty() {
            xattrs.insert(name.to_vec(), fs.getxattr(&who, node, name)?.into());
        }
    }
    Ok(Seen {
        kind,
        perm,
        owners: (uid, gid),
        nlink,
        rdev,
        // A directory's size depends on how it is stored.
        size: if kind == FileType::Directory { 0 } else { size },
        mtime: mtime.0,
        bytes,
        xattrs,
    })
}

/// A description of the differences.
pub(crate) fn differences(expected: &Snapshot, found: &Snapshot) -> Vec<String> {
    let shown = |path: &Path| path.escape_ascii().to_string();
    let mut all = Vec::new();
    for (path, seen) in expected {
        match found.get(path) {
            None => all.push(format!("{} is missing", shown(path))),
            Some(other) if other != seen => {
                let brief = |seen: &Seen| {
                    let mut seen = seen.clone();
                    seen.bytes.truncate(16);
                    format!("{seen:?}")
                };
                all.push(format!(
                    "{}: {} / {}",
                    shown(path),
                    brief(seen),
                    brief(other)
                ));
            }
            Some(_) => {}
        }
    }
    let new = found.keys().filter(|path| !expected.contains_key(*path));
    all.extend(new.map(|path| format!("{} is new", shown(path))));
    all
}
