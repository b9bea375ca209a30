//! The parts of an inode, built from the record of a store.

use crate::acl::{ACL_ACCESS, ACL_DEFAULT, Acl};
use crate::directory::Directory;
use crate::inode::{Content, DirectoryBody, ExtraAttrs, Meta};
use crate::store::{InodeRecord, Rest};
use crate::types::{Errno, FileFlags, FileType, Result};
use std::sync::atomic::AtomicU64;

/// The attributes of a record.
pub(crate) fn meta_of(record: &InodeRecord) -> Meta {
    Meta {
        nlink: record.nlink,
        size: record.size,
        atime: record.atime,
        mtime: record.mtime,
        btime: record.btime,
        home: (record.parent, 0),
        // Unknown flags are neither shown nor obeyed; a check finds them.
        flags: record.flags & FileFlags::all(),
        ..Meta::new(record.perm, record.uid, record.gid, record.ctime)
    }
}

/// Is the record complete by itself, and the inode no orphan?
pub(crate) fn is_plain(record: &InodeRecord) -> bool {
    record.nlink > 0 && !record.xattrs && record.project == 0 && record.kind != FileType::Symlink
}

/// The parts of an inode beside its record.
pub(crate) type Parts = (Content, Option<Box<ExtraAttrs>>);

/// Builds them from the store's data.
pub(crate) fn parts(record: &InodeRecord, rest: Rest) -> Result<Parts> {
    let mut extra_attrs = None::<Box<ExtraAttrs>>;
    for (name, value) in rest.xattrs {
        let extra_attrs = extra_attrs.get_or_insert_default();
        match &*name {
            ACL_ACCESS => extra_attrs.acl = Acl::parse(&value)?,
            ACL_DEFAULT => extra_attrs.default_acl = Acl::parse(&value)?,
            _ => {
                extra_attrs.xattrs.insert(name, value.into());
            }
        }
    }
    if record.kind == FileType::Regular && record.xattrs {
        // It may have space behind its end, and this mark stays as long as the inode.
        extra_attrs.get_or_insert_default();
    }
    if record.project != 0 {
        extra_attrs.get_or_insert_default().project = record.project;
    }
    let content = match (record.kind, rest.target) {
        (FileType::Symlink, Some(target)) => Content::Target(target),
        (FileType::Symlink, None) => return Err(Errno::EUCLEAN),
        _ => content_of(record),
    };
    Ok((content, extra_attrs))
}

/// The content of an inode with no other data to load now.
pub(crate) fn content_of(record: &InodeRecord) -> Content {
    match record.kind {
        FileType::Directory => Content::Directory(DirectoryBody {
            parent: AtomicU64::new(record.parent.0),
            names: Directory::empty(false),
        }),
        FileType::Regular => match record.space.beside_size() {
            Some(pages) => Content::Stored(AtomicU64::new(pages)),
            None => Content::None,
        },
        kind => Content::of(kind, record.parent, record.rdev, None),
    }
}
