//! Making inodes: files, directories, symbolic links, devices, unnamed files.

use holdfast_sync::epoch::{self, Guard};
use std::sync::atomic::Ordering;

use super::publish::AN_INODE;
use crate::acl::{self, Acl};
use crate::directory::Names;
use crate::file_system::Core;
use crate::inode::{Content, Meta, Numbered as _, Object, Rare, directory_size};
use crate::node::Node;
use crate::permission::in_group_or_capable;
use crate::quota::Check;
use crate::store::Change;
use crate::types::{
    Caller, Caps, Errno, FileType, Ino, NAME_MAX, PATH_MAX, Result, S_ISGID, S_ISVTX,
    check_new_name, is_special,
};
use crate::watch::EventMask;
use crate::xattr::{ACL_ACCESS, ACL_DEFAULT};
use crate::{FileSystem, clock};

/// What is to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Birth<'a> {
    /// Type.
    pub(crate) kind: FileType,
    /// Permission bits asked for.
    pub(crate) perm: u16,
    /// Device number.
    pub(crate) rdev: u64,
    /// The target of a symbolic link.
    pub(crate) target: Option<&'a [u8]>,
}

impl Birth<'_> {
    pub(crate) fn of(kind: FileType, perm: u16) -> Self {
        Self {
            kind,
            perm,
            rdev: 0,
            target: None,
        }
    }
}

impl FileSystem {
    /// Makes a regular file, fifo, socket or device with this name.
    ///
    /// # Errors
    /// `EEXIST`, `ENOENT` in a removed directory, `EACCES`, `EROFS`, `ENOSPC`, `EDQUOT`, `ENAMETOOLONG`;
    /// `EPERM` for a device without `CAP_MKNOD` or for a directory; `EINVAL` for a symbolic link.
    pub fn mknod(
        &self,
        who: &Caller,
        dir: &Node,
        name: &[u8],
        kind: FileType,
        perm: u16,
        rdev: u64,
    ) -> Result<Node> {
        match kind {
            FileType::Directory => return Err(Errno::EPERM),
            FileType::Symlink => return Err(Errno::EINVAL),
            _ => {}
        }
        let rdev = if kind.is_device() { rdev } else { 0 };
        self.core.make(
            who,
            dir,
            name,
            Birth {
                kind,
                perm,
                rdev,
                target: None,
            },
        )
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// As [`FileSystem::mknod`]; `EMLINK` when `dir` holds too many directories.
    pub fn mkdir(&self, who: &Caller, dir: &Node, name: &[u8], perm: u16) -> Result<Node> {
        self.core.make(
            who,
            dir,
            name,
            Birth::of(FileType::Directory, perm & (0o777 | S_ISVTX)),
        )
    }

    /// Makes a symbolic link.
    ///
    /// # Errors
    /// As [`FileSystem::mknod`]; `ENOENT` for an empty target, `ENAMETOOLONG` for one of 4096
    /// bytes or more.
    pub fn symlink(&self, who: &Caller, dir: &Node, name: &[u8], target: &[u8]) -> Result<Node> {
        check_target(target)?;
        let birth = Birth {
            target: Some(target),
            ..Birth::of(FileType::Symlink, 0o777)
        };
        self.core.make(who, dir, name, birth)
    }
}

/// Can this be the target of a symbolic link?
///
/// # Errors
/// `ENOENT` if empty, `ENAMETOOLONG` from 4096 bytes on, `EINVAL` for a NUL in it.
pub(crate) fn check_target(target: &[u8]) -> Result<()> {
    if target.is_empty() {
        return Err(Errno::ENOENT);
    }
    if target.len() >= PATH_MAX {
        return Err(Errno::ENAMETOOLONG);
    }
    if target.contains(&0) {
        return Err(Errno::EINVAL);
    }
    Ok(())
}

impl Core {
    /// Makes an inode and its name.
    pub(crate) fn make(
        &self,
        who: &Caller,
        dir: &Node,
        name: &[u8],
        birth: Birth<'_>,
    ) -> Result<Node> {
        if is_special(name) {
            return Err(Errno::EEXIST);
        }
        let body = self.search(who, dir)?;
        check_new_name(name)?;
        let node = {
            let mut names = self.lock_name(dir, body, name);
            let _guard = self.calm();
            if names.get(name).is_some() {
                return Err(Errno::EEXIST);
            }
            self.make_in(who, dir, &mut names, name, birth)?
        };
        self.tell_entry(who, dir.ino(), name);
        Ok(node)
    }

    /// Makes an inode and its name, which the caller knows to be free under the lock it holds.
    pub(crate) fn make_in(
        &self,
        who: &Caller,
        dir: &Node,
        names: &mut Names<'_>,
        name: &[u8],
        birth: Birth<'_>,
    ) -> Result<Node> {
        debug_assert!(name.len() <= NAME_MAX);
        self.may_create(who, dir.inode(), names)?;
        // A whiteout (0:0) is no device that anybody could open.
        if birth.kind.is_device()
            && !(birth.kind == FileType::CharDevice && birth.rdev == 0)
            && !who.has(Caps::MKNOD)
        {
            return Err(Errno::EPERM);
        }
        let is_dir = birth.kind.is_dir();
        if is_dir && self.is_full_of_directories(dir) {
            return Err(Errno::EMLINK);
        }
        let cookie = names.next_cookie();
        let (ino, inode) = self.conceive(who, dir, cookie, birth)?;
        // The inode first: who finds the name finds it.
        let node = self.publish(ino, inode, Check::of(who))?;
        let now = node.inode().times().1;
        names.changed(dir.inode(), 1, i32::from(is_dir), now);
        // The store before the name: nobody changes the inode before the store knows it.
        let recorded = if self.pinned {
            Ok(())
        } else {
            self.record_birth(dir, &node, birth.target, Some((name, cookie)))
        };
        let named = recorded.and_then(|()| names.insert(name, cookie, ino, birth.kind));
        if let Err(error) = named {
            names.changed(dir.inode(), 0, -i32::from(is_dir), now);
            self.unpublish(node);
            return Err(error);
        }
        self.names.add(1);
        self.name_happened(dir.ino(), EventMask::CREATE, name, is_dir, 0);
        Ok(node)
    }

    /// A guard for a section that waits for nothing, so that those inside cost nothing: over a
    /// store that pins everything. Any other may be asked, and must be waited for without one.
    /// With an observer there is somebody to be waited for, too.
    #[inline]
    pub(crate) fn calm(&self) -> Option<Guard> {
        (self.pinned && !self.observed.load(Ordering::Relaxed)).then(epoch::pin)
    }

    /// Builds a new inode: number, owner, group, mode and ACLs as `dir` and `who` decide. `cookie`:
    /// the one that its name in `dir` will have.
    pub(crate) fn conceive(
        &self,
        who: &Caller,
        dir: &Node,
        cookie: u64,
        birth: Birth<'_>,
    ) -> Result<(Ino, Object)> {
        let Birth {
            kind,
            mut perm,
            rdev,
            target,
        } = birth;
        let (dir_perm, dir_gid, default_acl) = {
            let guard = epoch::pin();
            let view = dir.inode().view(&guard);
            (view.meta.perm, view.meta.gid, view.default_acl().cloned())
        };
        let inherits = dir_perm & S_ISGID != 0;
        let gid = if inherits { dir_gid } else { who.gid };
        if inherits && kind.is_dir() {
            perm |= S_ISGID;
        } else if inherits
            && perm & (S_ISGID | 0o010) == S_ISGID | 0o010
            && !in_group_or_capable(who, dir_gid)
        {
            perm &= !S_ISGID;
        }
        let mut access = None;
        match &default_acl {
            _ if kind == FileType::Symlink => {}
            Some(default) => (access, perm) = acl::create(default, perm),
            None => perm &= !who.umask,
        }
        self.store.reserve(AN_INODE)?;
        let mut meta = Meta::new(perm & 0o7777, who.uid, gid, clock::now());
        meta.home = (dir.ino(), cookie);
        if kind.is_dir() {
            meta.nlink = 2;
            meta.size = directory_size(0);
        } else if let Some(target) = target {
            meta.size = target.len() as u64;
        }
        let default_acl = default_acl.filter(|_| kind.is_dir());
        let rare = (access.is_some() || default_acl.is_some()).then(|| {
            Box::new(Rare {
                acl: access,
                default_acl,
                ..Rare::default()
            })
        });
        let content = Content::of(kind, dir.ino(), rdev, target);
        let ino = self.numbers.deal();
        let fs = self.enrolment.number();
        let object = Object::new(fs, kind, &meta, rare, content, true);
        if !self.pinned {
            object.unborn();
        }
        Ok((ino, object))
    }

    /// Tells the store of a new inode, and of its name if it has one.
    pub(crate) fn record_birth(
        &self,
        dir: &Node,
        node: &Node,
        target: Option<&[u8]>,
        name: Option<(&[u8], u64)>,
    ) -> Result<()> {
        let (record, acls) = {
            let guard = epoch::pin();
            let view = node.inode().view(&guard);
            let value = |acl: Option<&Acl>| acl.map(acl::to_xattr);
            (
                node.inode().record(&view.meta),
                [value(view.acl()), value(view.default_acl())],
            )
        };
        let (ino, kind): (Ino, FileType) = (record.ino, record.kind);
        let mut batch = vec![Change::Create {
            inode: record,
            target,
        }];
        for (acl, key) in acls.iter().zip([ACL_ACCESS, ACL_DEFAULT]) {
            if let Some(value) = acl {
                batch.push(Change::Xattr {
                    ino,
                    name: key,
                    value: Some(value),
                });
            }
        }
        if let Some((name, cookie)) = name {
            batch.push(Change::Enter {
                dir: dir.ino(),
                name,
                cookie,
                ino,
                kind,
            });
            batch.push(Change::Attributes {
                inode: dir.inode().record(&dir.inode().meta()),
            });
        }
        self.apply(&batch)?;
        node.inode().born();
        Ok(())
    }
}
