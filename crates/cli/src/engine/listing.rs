//! A tree with the attributes of its entries, as a stream into a pipe.
//!
//! Each record is the length of the path as `u32`, little-endian, a [row] of attributes, and
//! the path below the top. A directory comes before what it holds. If its attributes cannot
//! be read, an entry has only its number and its type.

use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use holdfast::types::{Attr, Ino, Time};
use holdfast::{Copied, FileSystem, TreeEntry, TreeWalk, row};

/// Entries that are sent at once.
const PIECE: usize = 1024;

/// Lists what is below `top`.
///
/// # Errors
/// Those of the first directory that cannot be listed, with its path, and of the stream.
pub(super) fn list(
    fs: &FileSystem,
    top: PathBuf,
    depth: Option<usize>,
    out: &mut dyn Write,
) -> Result<Copied, (PathBuf, io::Error)> {
    let mut done = Copied::default();
    let mut records = Vec::new();
    let begun = TreeWalk::new(fs.clone(), &top, depth);
    let mut walk = begun.map_err(|error| (top.clone(), error))?;
    loop {
        let shown = walk.next(PIECE, &mut |entry| put(&top, &entry, &mut records));
        let shown = shown.map_err(|(path, error)| (path.to_path_buf(), error))?;
        if shown == 0 {
            return Ok(done);
        }
        done.files += shown as u64;
        out.write_all(&records)
            .map_err(|error| (PathBuf::new(), error))?;
        records.clear();
    }
}

fn put(top: &PathBuf, entry: &TreeEntry<'_>, records: &mut Vec<u8>) {
    let path = entry.directory.strip_prefix(top).unwrap_or(entry.directory);
    let path = path.join(entry.name);
    let path = path.as_os_str().as_bytes();
    records.extend_from_slice(&(path.len() as u32).to_le_bytes());
    match &entry.metadata {
        Ok(metadata) => row::put(metadata.attr(), records),
        Err(_) => row::put(&unread(entry), records),
    }
    records.extend_from_slice(path);
}

/// The attributes of an entry that cannot be read: without a name, which no listed inode is.
fn unread(entry: &TreeEntry<'_>) -> Attr {
    Attr {
        ino: Ino(entry.ino),
        kind: entry.kind,
        perm: 0,
        nlink: 0,
        uid: 0,
        gid: 0,
        rdev: 0,
        size: 0,
        blocks: 0,
        atime: Time(0),
        mtime: Time(0),
        ctime: Time(0),
        btime: Time(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// The attributes of a list, by path.
    fn listed(fs: &FileSystem, top: &str, depth: Option<usize>) -> BTreeMap<String, Option<Attr>> {
        let mut records = Vec::new();
        let done = list(fs, top.into(), depth, &mut records).unwrap();
        let (mut rest, mut found) = (&records[..], BTreeMap::new());
        while let Some((len, behind)) = rest.split_first_chunk() {
            let (row, behind) = behind.split_at(row::ROW);
            let (path, behind) = behind.split_at(u32::from_le_bytes(*len) as usize);
            found.insert(String::from_utf8(path.to_vec()).unwrap(), row::get(row));
            rest = behind;
        }
        assert_eq!(done.files, found.len() as u64);
        found
    }

    #[test]
    fn a_list_has_each_entry_with_its_attributes() {
        let fs = FileSystem::memory();
        fs.create_dir_all("/top/dir/below").unwrap();
        for number in 0..2 * PIECE {
            fs.write(format!("/top/dir/{number}"), vec![0; number])
                .unwrap();
        }
        fs.symlink("nowhere", "/top/link").unwrap();
        let found = listed(&fs, "/top", None);
        assert_eq!(found.len(), 2 * PIECE + 3);
        for (path, attr) in &found {
            let expected = fs.symlink_metadata(format!("/top/{path}")).unwrap();
            // A list is an access to the directory.
            let atime = Time(0);
            let (expected, attr) = (*expected.attr(), attr.unwrap());
            assert_eq!(Attr { atime, ..attr }, Attr { atime, ..expected }, "{path}");
        }
        let names = |depth| listed(&fs, "/top/", depth).into_keys().collect::<Vec<_>>();
        assert_eq!(names(Some(1)), ["dir", "link"]);
        assert_eq!(names(Some(2)).len(), found.len());
    }

    #[test]
    fn an_error_names_its_directory() {
        let fs = FileSystem::memory();
        fs.create_dir_all("/top/private").unwrap();
        let mode = holdfast::Permissions::from_mode(0o700);
        fs.set_permissions("/top/private", mode).unwrap();
        let user = fs.as_user(holdfast::Caller::user(7, 7));
        let (path, error) = list(&user, "/top".into(), None, &mut io::sink()).unwrap_err();
        assert_eq!(path, PathBuf::from("/top/private"));
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }
}
