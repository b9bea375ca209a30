//! The inspector's look at the library.

use crate::diff::op::Bytes;
use crate::diff::view::{BLOCK, Blocks, Content, Detail, Times, View};
use holdfast_core::{FileSystem, Node, OpenFile};
use holdfast_types::{Attr, Caller, Errno, FileType, OpenFlags, Result, Whence};
use std::collections::BTreeMap;

/// Looks at what `path` names, as the superuser, leaving no trace.
pub(super) fn look(
    fs: &FileSystem,
    who: &Caller,
    path: &Bytes,
    follow: bool,
    detail: Detail,
) -> Result<View> {
    let node = fs.resolve(who, &fs.root(), &path.0, follow)?;
    let mut view = view(&fs.getattr(&node));
    if detail.content {
        let quietly = || fs.open(who, &node, OpenFlags::NOATIME);
        view.content = match view.kind {
            FileType::Regular => Content::Bytes(read_blocks(fs, &quietly()?)?),
            FileType::Directory => Content::Names(read_names(fs, &quietly()?)?),
            _ => Content::Unseen,
        };
    }
    if detail.target && view.kind == FileType::Symlink {
        view.content = Content::Target(Bytes(fs.readlink(&node)?.into_vec()));
    }
    if detail.xattrs {
        view.xattrs = Some(xattrs(fs, who, &node)?);
    }
    Ok(view)
}

/// Attributes as a look.
pub(super) fn view(attr: &Attr) -> View {
    View {
        ino: attr.ino.0,
        kind: attr.kind,
        perm: attr.perm,
        nlink: attr.nlink,
        uid: attr.uid,
        gid: attr.gid,
        rdev: attr.rdev,
        size: attr.size,
        blocks: attr.blocks,
        times: Times {
            atime: attr.atime,
            mtime: attr.mtime,
            ctime: attr.ctime,
            btime: attr.btime,
        },
        content: Content::Unseen,
        xattrs: None,
    }
}

fn read_blocks(fs: &FileSystem, file: &OpenFile) -> Result<Blocks> {
    let mut blocks = Blocks::default();
    let mut buffer = vec![0; 32 * BLOCK];
    let mut offset = 0_u64;
    loop {
        offset = match fs.seek(file, offset, Whence::Data) {
            Ok(data) => data / BLOCK as u64 * BLOCK as u64,
            Err(Errno::ENXIO) => return Ok(blocks),
            Err(error) => return Err(error),
        };
        let room = (i64::MAX as u64 - offset).min(buffer.len() as u64) as usize;
        let got = fs.read(file, offset, &mut buffer[..room])?;
        if got == 0 {
            return Ok(blocks);
        }
        for (nth, chunk) in buffer[..got].chunks(BLOCK).enumerate() {
            blocks.add(offset / BLOCK as u64 + nth as u64, chunk);
        }
        offset += got as u64;
    }
}

fn read_names(fs: &FileSystem, dir: &OpenFile) -> Result<BTreeMap<Bytes, u8>> {
    let mut names = BTreeMap::new();
    fs.read_dir(dir, 0, &mut |entry| {
        if entry.name != b"." && entry.name != b".." {
            names.insert(Bytes::from(entry.name), entry.kind.dirent_type());
        }
        true
    })?;
    Ok(names)
}

fn xattrs(fs: &FileSystem, who: &Caller, node: &Node) -> Result<BTreeMap<Bytes, Bytes>> {
    let mut all = BTreeMap::new();
    for name in split_names(&fs.listxattr(who, node)?) {
        let value = fs.getxattr(who, node, &name.0)?;
        all.insert(name, Bytes(value.into_vec()));
    }
    Ok(all)
}

/// The names in a NUL-terminated list, sorted.
pub(super) fn split_names(list: &[u8]) -> Vec<Bytes> {
    let names = list
        .split(|&byte| byte == 0)
        .filter(|name| !name.is_empty());
    let mut names: Vec<Bytes> = names.map(Bytes::from).collect();
    names.sort();
    names
}
