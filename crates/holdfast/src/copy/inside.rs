//! A file system of the core as a side of a copy.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::tree::{About, Lost, NO_PRIVILEGES, Tree, Xattrs, set_xattrs};
use crate::types::{Errno, FileType, Ino, SetAttr, SetTime, XattrSet};
use crate::view::View;
use crate::{Dir, File, OpenOptions, ReadDir};

/// Caches are dropped above this number of bytes of cached pages.
const BYTES_KEPT: u64 = 128 << 20;
/// Caches are dropped above this number of cached inodes.
const INODES_KEPT: u64 = 50_000;
/// Names between two checks of that.
const LOOK: u32 = 256;

/// The prefix of ACL attributes, and the access ACL.
const ACLS: &[u8] = b"system.posix_acl_";
const ACCESS: &[u8] = b"system.posix_acl_access";

/// A file system of the core, as one caller sees it.
pub(crate) struct Inside {
    root: Dir,
    /// The device number of its inodes in [`About::id`].
    pub(crate) number: u64,
    names: Cell<u32>,
}

impl Inside {
    pub(crate) fn new(root: Dir, number: u64) -> Self {
        Self {
            root,
            number,
            names: Cell::new(0),
        }
    }

    /// Removes a name: an empty directory, or another file.
    pub(crate) fn remove_name(&self, dir: &Dir, name: &OsStr, is_dir: bool) -> io::Result<()> {
        let View { core, who } = &*dir.view;
        let name = name.as_bytes();
        match is_dir {
            true => core.rmdir(who, &dir.base, name)?,
            false => core.unlink(who, &dir.base, name)?,
        }
        Ok(())
    }

    /// Changes the attributes of a name; a link is not followed.
    pub(crate) fn set_attributes(&self, dir: &Dir, name: &OsStr, set: &SetAttr) -> io::Result<()> {
        let View { core, who } = &*dir.view;
        let node = dir.resolve(Path::new(name), false)?;
        Ok(core.setattr(who, &node, set, None).map(drop)?)
    }
}

/// The names of a directory.
pub(crate) struct Names(ReadDir);

impl Iterator for Names {
    type Item = io::Result<OsString>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next()?.map(|entry| entry.file_name()))
    }
}

impl Tree for Inside {
    type Dir = Dir;
    type File = File;
    type Names = Names;
    type Place = Ino;

    fn open_dir(&self, path: &Path) -> io::Result<Dir> {
        self.root.open_dir(path)
    }

    fn about(&self, dir: &Dir, name: &OsStr) -> io::Result<About> {
        let attr = dir.stat(Path::new(name), false)?;
        Ok(About {
            kind: attr.kind,
            perm: attr.perm,
            uid: attr.uid,
            gid: attr.gid,
            rdev: attr.rdev,
            size: attr.size,
            nlink: attr.nlink.into(),
            id: (self.number, attr.ino.0),
            sparse: attr.size > 0,
            atime: attr.atime,
            mtime: attr.mtime,
            clamped: false,
        })
    }

    fn enter(&self, dir: &Dir, name: &OsStr) -> io::Result<Dir> {
        let node = dir.resolve(Path::new(name), false)?;
        if !node.kind().is_dir() {
            return Err(Errno::ENOTDIR.into());
        }
        Ok(Dir {
            view: dir.view.clone(),
            base: node,
        })
    }

    fn names(&self, dir: &Dir) -> io::Result<Names> {
        Ok(Names(dir.read_dir(".")?))
    }

    fn target(&self, dir: &Dir, name: &OsStr) -> io::Result<OsString> {
        Ok(dir.read_link(name)?.into_os_string())
    }

    fn xattrs(&self, dir: &Dir, name: &OsStr) -> io::Result<Xattrs> {
        let node = dir.resolve(Path::new(name), false)?;
        let mut found = Xattrs::new();
        for name in dir.view.list_xattr(&node)? {
            if let Some(value) = dir.view.get_xattr(&node, &name)? {
                found.push((name, value));
            }
        }
        Ok(found)
    }

    fn open(&self, dir: &Dir, name: &OsStr) -> io::Result<File> {
        dir.open_with(name, OpenOptions::new().read(true).no_follow(true))
    }

    fn read_at(&self, file: &File, buf: &mut [u8], at: u64) -> io::Result<usize> {
        file.read_at(buf, at)
    }

    fn next_data(&self, file: &File, at: u64) -> io::Result<Option<Range<u64>>> {
        let Some(start) = file.seek_data(at)? else {
            return Ok(None);
        };
        Ok(file.seek_hole(start)?.map(|end| start..end))
    }

    fn make_dir(&self, dir: &Dir, name: &OsStr) -> io::Result<()> {
        Ok(dir.make(Path::new(name), 0o700)?)
    }

    fn make_file(&self, dir: &Dir, name: &OsStr, about: &About) -> io::Result<File> {
        let mut options = OpenOptions::new();
        // Without set-id bits, until the owner is set.
        let mode = u32::from(about.perm & 0o777);
        dir.open_with(name, options.write(true).create_new(true).mode(mode))
    }

    fn make_symlink(&self, dir: &Dir, name: &OsStr, target: &OsStr) -> io::Result<()> {
        dir.symlink(target, name)
    }

    fn make_special(&self, dir: &Dir, name: &OsStr, about: &About) -> io::Result<()> {
        let mode = u32::from(about.perm & 0o777);
        dir.mknod(name, about.kind, mode, about.rdev)
    }

    fn write_all_at(&self, file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
        file.write_all_at(bytes, at)
    }

    fn set_len(&self, file: &File, size: u64) -> io::Result<()> {
        file.set_len(size)
    }

    fn place(&self, _path: &Path, dir: &Dir, name: &OsStr) -> io::Result<Ino> {
        Ok(dir.resolve(Path::new(name), false)?.ino())
    }

    fn link(&self, _top: &Dir, place: &Ino, dir: &Dir, name: &OsStr) -> io::Result<()> {
        let View { core, who } = &*dir.view;
        let node = core.node(*place)?;
        Ok(core.link_at(who, &node, &dir.base, name.as_bytes())?)
    }

    fn remove(&self, dir: &Dir, name: &OsStr) -> io::Result<()> {
        dir.remove_file(name)
    }

    /// The order matters: a change of owner clears set-id bits, setting attributes without root
    /// needs write permission, and a change of mode changes the mask of an ACL.
    fn finish(&self, dir: &Dir, name: &OsStr, about: &About, xattrs: &Xattrs) -> io::Result<Lost> {
        let View { core, who } = &*dir.view;
        let node = dir.resolve(Path::new(name), false)?;
        let now = core.attributes(&node)?;
        let is_link = about.kind == FileType::Symlink;
        let owner = SetAttr {
            uid: (now.uid != about.uid).then_some(about.uid),
            gid: (now.gid != about.gid).then_some(about.gid),
            ..SetAttr::default()
        };
        let mut rest = SetAttr {
            perm: (!is_link && now.perm != about.perm).then_some(about.perm),
            atime: Some(SetTime::At(about.atime)),
            mtime: Some(SetTime::At(about.mtime)),
            ..SetAttr::default()
        };
        let mut lost = Lost::default();
        if owner != SetAttr::default() {
            match core.setattr(who, &node, &owner, None) {
                Err(Errno::EPERM) => {
                    lost.owner = true;
                    rest.perm = rest.perm.map(|perm| perm & NO_PRIVILEGES);
                }
                other => drop(other?),
            }
        }
        let set = |name: &OsStr, value: &[u8]| {
            Ok(core.setxattr(who, &node, name.as_bytes(), value, XattrSet::Any)?)
        };
        let is_acl = |name: &OsStr| name.as_bytes().starts_with(ACLS);
        lost.xattrs = set_xattrs(xattrs, |name| !is_acl(name), set)?;
        core.setattr(who, &node, &rest, None)?;
        lost.xattrs += set_xattrs(xattrs, is_acl, set)?;
        // An ACL inherited from the directory is not part of the copy.
        if !is_link && !xattrs.iter().any(|(name, _)| name.as_bytes() == ACCESS) {
            match core.getxattr(who, &node, ACCESS) {
                Ok(_) => core.removexattr(who, &node, ACCESS)?,
                Err(Errno::ENODATA | Errno::EOPNOTSUPP) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(lost)
    }

    fn relax(&self) -> io::Result<()> {
        self.names.set(self.names.get().wrapping_add(1));
        if !self.names.get().is_multiple_of(LOOK) {
            return Ok(());
        }
        let core = &self.root.view.core;
        let stats = core.stats();
        if stats.bytes > BYTES_KEPT || stats.inodes > INODES_KEPT {
            core.drop_caches()?;
        }
        Ok(())
    }
}
