//! All that a file system shows, and the way to remove it.

use holdfast_core::{FileSystem, Node, OpenFile};
use holdfast_types::{Attr, Caller, Errno, FileType, OpenFlags, Result, Whence};
use std::collections::BTreeMap;

/// One inode as its users see it. Access times, which looking changes, are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    attr: Attr,
    target: Option<Box<[u8]>>,
    /// Of every word that is not zero, with its offset.
    content: u64,
    xattrs: Vec<(Vec<u8>, Box<[u8]>)>,
}

/// Everything by path.
pub(super) type Survey = BTreeMap<Vec<u8>, Seen>;

fn list(fs: &FileSystem, who: &Caller, dir: &Node) -> Result<Vec<Vec<u8>>> {
    let opened = fs.open(who, dir, OpenFlags::NOATIME)?;
    let mut names = Vec::new();
    fs.read_dir(&opened, 0, &mut |entry| {
        if !matches!(entry.name, b"." | b"..") {
            names.push(entry.name.to_vec());
        }
        true
    })?;
    Ok(names)
}

/// Looks at everything.
///
/// # Errors
/// If a call fails: no other thread is at work.
pub(super) fn survey(fs: &FileSystem) -> std::result::Result<Survey, String> {
    let (who, mut seen) = (Caller::root(), Survey::new());
    let mut open = vec![(Vec::new(), fs.root())];
    while let Some((path, node)) = open.pop() {
        let look = || look(fs, &who, &node);
        let found = look().map_err(|error| format!("{}: {error:?}", path.escape_ascii()))?;
        if found.attr.kind == FileType::Directory {
            let names = list(fs, &who, &node);
            for name in names.map_err(|error| format!("{}: {error:?}", path.escape_ascii()))? {
                let mut below = path.clone();
                below.push(b'/');
                below.extend_from_slice(&name);
                let found = fs.lookup(&who, &node, &name);
                let child =
                    found.map_err(|error| format!("{}: {error:?}", below.escape_ascii()))?;
                open.push((below, child));
            }
        }
        seen.insert(path, found);
    }
    Ok(seen)
}

fn look(fs: &FileSystem, who: &Caller, node: &Node) -> Result<Seen> {
    let content = match node.kind() {
        FileType::Regular => content(fs, &fs.open(who, node, OpenFlags::NOATIME)?)?,
        _ => 0,
    };
    let target = match node.kind() {
        FileType::Symlink => Some(fs.readlink(node)?),
        _ => None,
    };
    let mut xattrs = Vec::new();
    for name in xattr_names(fs, who, node)? {
        let value = fs.getxattr(who, node, &name)?;
        xattrs.push((name, value));
    }
    let mut attr = fs.attributes(node)?;
    attr.atime = attr.mtime;
    // What is not loaded yet does not show its space.
    attr.blocks = 0;
    Ok(Seen {
        attr,
        target,
        content,
        xattrs,
    })
}

fn xattr_names(fs: &FileSystem, who: &Caller, node: &Node) -> Result<Vec<Vec<u8>>> {
    let names = fs.listxattr(who, node)?;
    let names = names.split(|byte| *byte == 0);
    Ok(names
        .filter(|name| !name.is_empty())
        .map(<[u8]>::to_vec)
        .collect())
}

fn content(fs: &FileSystem, file: &OpenFile) -> Result<u64> {
    let (mut sum, mut at) = (0_u64, 0);
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let data = match fs.seek(file, at, Whence::Data) {
            Err(Errno::ENXIO) => return Ok(sum),
            found => found? / 8 * 8,
        };
        let read = fs.read(file, data, &mut bytes)?;
        if read == 0 {
            return Ok(sum);
        }
        for (word, offset) in bytes[..read].chunks(8).zip((data..).step_by(8)) {
            let mut little = [0; 8];
            little[..word.len()].copy_from_slice(word);
            let value = u64::from_le_bytes(little);
            if value != 0 {
                let mixed = value ^ offset.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                sum = sum.wrapping_add(mixed.wrapping_mul(0xff51_afd7_ed55_8ccd) >> 7);
            }
        }
        at = data + read as u64;
    }
}

/// The first difference between two surveys.
pub(super) fn difference(one: &Survey, other: &Survey) -> Option<String> {
    let paths = one.keys().chain(other.keys());
    let path = paths
        .into_iter()
        .find(|path| one.get(*path) != other.get(*path))?;
    let (was, is) = (one.get(path), other.get(path));
    let (was, is) = match (was, is) {
        (Some(was), Some(is)) if was.attr != is.attr => {
            (format!("{:?}", was.attr), format!("{:?}", is.attr))
        }
        (Some(was), Some(is)) if was.xattrs != is.xattrs => (names(was), names(is)),
        (was, is) => (format!("{was:?}"), format!("{is:?}")),
    };
    Some(format!("{}: {was} became {is}", path.escape_ascii()))
}

/// Extended attributes with the lengths of their values, and their first bytes.
fn names(seen: &Seen) -> String {
    let show = |(name, value): &(Vec<u8>, Box<[u8]>)| {
        let first = &value[..value.len().min(8)];
        format!(
            "{}: {} bytes {first:02x?}",
            name.escape_ascii(),
            value.len()
        )
    };
    seen.xattrs.iter().map(show).collect::<Vec<_>>().join(", ")
}

/// Removes everything, and the root's extended attributes.
///
/// # Errors
/// If a call fails: no other thread is at work.
pub(super) fn remove_all(fs: &FileSystem) -> std::result::Result<(), String> {
    let (who, root) = (Caller::root(), fs.root());
    let strip = || -> Result<()> {
        for name in xattr_names(fs, &who, &root)? {
            fs.removexattr(&who, &root, &name)?;
        }
        Ok(())
    };
    strip().map_err(|error| format!("stripping the root: {error:?}"))?;
    remove_in(fs, &who, &root).map_err(|error| format!("removing everything: {error:?}"))
}

fn remove_in(fs: &FileSystem, who: &Caller, dir: &Node) -> Result<()> {
    for name in list(fs, who, dir)? {
        let node = fs.lookup(who, dir, &name)?;
        if node.kind().is_dir() {
            remove_in(fs, who, &node)?;
            fs.rmdir(who, dir, &name)?;
        } else {
            fs.unlink(who, dir, &name)?;
        }
    }
    Ok(())
}
