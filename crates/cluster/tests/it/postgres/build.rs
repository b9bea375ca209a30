//! Requests, in short.

use holdfast_cluster::meta::{
    Change, Content, Edit, Extent, Flush, Meta, NewInode, Pages, Request, Size,
};
use holdfast_types::{FileType, Ino, RenameFlags, Time, XattrSet};

/// A new inode.
pub(super) fn new(ino: u64, kind: FileType) -> NewInode {
    NewInode {
        perm: 0o644,
        ..NewInode::new(Ino(ino), kind)
    }
}

/// A request that makes an inode.
pub(super) fn make(dir: Ino, name: &str, ino: u64, kind: FileType) -> Request {
    Request::Make {
        dir,
        name: name.as_bytes().into(),
        new: new(ino, kind),
    }
}

/// Makes a directory in the root.
pub(super) fn directory(meta: &dyn Meta, name: &str) -> Ino {
    let ino = meta.deal(1).unwrap().start;
    let request = make(Ino::ROOT, name, ino, FileType::Directory);
    meta.perform(request).unwrap();
    Ino(ino)
}

/// A request that changes attributes.
pub(super) fn chmod(ino: Ino, perm: u16) -> Request {
    let change = Change {
        perm: Some(perm),
        ..Change::default()
    };
    Request::SetAttributes { ino, change }
}

pub(super) fn make_unnamed(dir: Ino, ino: u64) -> Request {
    let new = new(ino, FileType::Regular);
    Request::MakeUnnamed { dir, new }
}

pub(super) fn link(ino: Ino, dir: Ino, name: &str, cookie: u64) -> Request {
    Request::Link {
        ino,
        dir,
        name: name.as_bytes().into(),
        cookie,
    }
}

pub(super) fn remove(dir: Ino, name: &str) -> Request {
    Request::Remove {
        dir,
        name: name.as_bytes().into(),
        directory: false,
    }
}

pub(super) fn rename(
    from: (Ino, &str),
    to: (Ino, &str),
    flags: RenameFlags,
    cookie: u64,
) -> Request {
    Request::Rename {
        from: (from.0, from.1.as_bytes().into()),
        to: (to.0, to.1.as_bytes().into()),
        flags,
        cookie,
        whiteout: None,
    }
}

/// Sets an extended attribute that is not there.
pub(super) fn set_xattr(ino: Ino) -> Request {
    Request::SetXattr {
        ino,
        name: Box::from(*b"user.x"),
        value: Some(Box::from(*b"value")),
        how: XattrSet::Create,
        perm: None,
    }
}

/// Removes it.
pub(super) fn remove_xattr(ino: Ino) -> Request {
    let name = Box::from(*b"user.x");
    Request::RemoveXattr { ino, name }
}

pub(super) fn flush(ino: Ino, generation: u64, edit: Edit) -> Request {
    Request::Flush(Flush {
        ino,
        generation,
        edit,
        size: Some(Size::AtLeast(5000)),
        changed: Some(Time(1)),
        change: Change::default(),
    })
}

/// A file becomes a body of 5,000 bytes.
pub(super) fn body() -> Edit {
    let content = Content::Body {
        bytes: vec![7; 5000].into(),
        pages: Pages(3),
    };
    Edit::Replace {
        content,
        objects: vec![],
    }
}

/// 9,000 bytes of an object.
pub(super) fn extent(offset: u64, object: u64) -> Extent {
    Extent {
        offset,
        len: 9000,
        object,
        object_offset: 0,
    }
}

/// A map of one extent, from a new object.
pub(super) fn map(object: u64) -> Edit {
    Edit::Map {
        cut: Some(20000),
        clear: vec![(0, 4096)],
        add: vec![extent(4096, object)],
        objects: vec![(object, 9000)],
    }
}
