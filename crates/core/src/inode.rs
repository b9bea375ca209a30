//! The inode: what the core holds of one file object.
//!
//! *Invariants.* `kind`, `ino` and `rdev` never change. `refs` counts every use: [`crate::Node`]s,
//! open files, and what a front end's kernel holds; it is raised from 0 only under the inode
//! table's shard lock. An inode whose `nlink` is 0 is an *orphan*: it leaves the table with its
//! last use.
//!
//! *Locking.* See `docs/locking.md`: the names of a directory, or the pages of a file, come
//! before any `meta`; `meta` is a leaf, and no thread holds two of them.

use holdfast_cache::Pages;
use parking_lot::{RwLock, RwLockReadGuard};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{OnceLock, Weak};

use crate::acl::Acl;
use crate::directory::Directory;
use crate::file_system::Core;
use crate::locks::InodeLocks;
use crate::store::InodeRecord;
use crate::types::{Attr, Errno, FileType, Ino, Result, Time};

/// What every empty directory's size is, and each name's share: tmpfs's figures.
const DIR_SIZE: u64 = 40;
const ENTRY_SIZE: u64 = 20;

/// A file object.
pub(crate) struct Inode {
    /// Uses: nodes, open files, a kernel's lookups.
    pub(crate) refs: AtomicU64,
    /// Number.
    pub(crate) ino: Ino,
    /// Type.
    pub(crate) kind: FileType,
    /// Device number.
    pub(crate) rdev: u64,
    /// Attributes.
    pub(crate) meta: RwLock<Meta>,
    /// Content.
    pub(crate) body: Body,
    /// File locks, made with the first.
    pub(crate) locks: OnceLock<Box<InodeLocks>>,
}

/// The attributes of an inode that change.
pub(crate) struct Meta {
    /// Permission, set-id and sticky bits.
    pub(crate) perm: u16,
    /// May an orphan still get a name (`O_TMPFILE` without `O_EXCL`)?
    pub(crate) linkable: bool,
    /// Number of names.
    pub(crate) nlink: u32,
    /// Owner.
    pub(crate) uid: u32,
    /// Group.
    pub(crate) gid: u32,
    /// Bytes; changed only with the page lock held, so that a holder of either sees it stand.
    pub(crate) size: u64,
    /// Pages of content.
    pub(crate) pages: u64,
    /// Last access.
    pub(crate) atime: Time,
    /// Last change of content.
    pub(crate) mtime: Time,
    /// Last change of the inode.
    pub(crate) ctime: Time,
    /// Birth.
    pub(crate) btime: Time,
    /// Directory and cookie of the name it got last: where watchers of the directory look.
    pub(crate) home: (Ino, u64),
    /// What few inodes have.
    pub(crate) rare: Option<Box<Rare>>,
}

/// What few inodes have.
#[derive(Default)]
pub(crate) struct Rare {
    /// Extended attributes by full name, ACLs excepted.
    pub(crate) xattrs: BTreeMap<Box<[u8]>, Box<[u8]>>,
    /// ACL, when it says more than the mode.
    pub(crate) acl: Option<Acl>,
    /// A directory's ACL for what is created in it.
    pub(crate) default_acl: Option<Acl>,
    /// Set on an orphan: whom its last user tells.
    pub(crate) orphan_of: Option<Weak<Core>>,
}

/// The content of an inode.
pub(crate) enum Body {
    /// Names.
    Directory(Box<DirectoryBody>),
    /// Bytes.
    Regular(RegularBody),
    /// A target.
    Symlink(Box<[u8]>),
    /// Nothing: a fifo, a socket, a device.
    Special,
}

/// A directory's content.
pub(crate) struct DirectoryBody {
    /// The directory that holds it. Changes only under the rename lock.
    pub(crate) parent: AtomicU64,
    /// Its names.
    pub(crate) names: RwLock<Directory>,
}

/// A regular file's content.
pub(crate) struct RegularBody {
    /// Its bytes.
    pub(crate) pages: RwLock<Pages>,
    /// Are they here (else the store has to be asked first)? Set under the page lock.
    pub(crate) complete: AtomicBool,
}

impl Meta {
    /// Attributes of a new inode.
    pub(crate) fn new(perm: u16, uid: u32, gid: u32, now: Time) -> Self {
        Self {
            perm,
            linkable: false,
            nlink: 1,
            uid,
            gid,
            size: 0,
            pages: 0,
            atime: now,
            mtime: now,
            ctime: now,
            btime: now,
            home: (Ino(0), 0),
            rare: None,
        }
    }

    pub(crate) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    pub(crate) fn acl(&self) -> Option<&Acl> {
        self.rare.as_ref()?.acl.as_ref()
    }

    pub(crate) fn default_acl(&self) -> Option<&Acl> {
        self.rare.as_ref()?.default_acl.as_ref()
    }

    /// The content changed now, and so did the inode.
    pub(crate) fn modified(&mut self, now: Time) {
        self.mtime = now;
        self.ctime = now;
    }
}

impl Inode {
    /// An inode that nobody uses yet.
    pub(crate) fn new(ino: Ino, kind: FileType, rdev: u64, meta: Meta, body: Body) -> Self {
        Self {
            refs: AtomicU64::new(0),
            ino,
            kind,
            rdev,
            meta: RwLock::new(meta),
            body,
            locks: OnceLock::new(),
        }
    }

    /// The content of a new inode of this type.
    pub(crate) fn empty_body(kind: FileType, parent: Ino, target: Option<&[u8]>) -> Body {
        match kind {
            FileType::Directory => Body::Directory(Box::new(DirectoryBody {
                parent: AtomicU64::new(parent.0),
                names: RwLock::new(Directory::empty()),
            })),
            FileType::Regular => Body::Regular(RegularBody {
                pages: RwLock::new(Pages::new()),
                complete: AtomicBool::new(true),
            }),
            FileType::Symlink => Body::Symlink(target.unwrap_or_default().into()),
            _ => Body::Special,
        }
    }

    /// The names, or `ENOTDIR`.
    pub(crate) fn directory(&self) -> Result<&DirectoryBody> {
        match &self.body {
            Body::Directory(body) => Ok(body),
            _ => Err(Errno::ENOTDIR),
        }
    }

    /// The bytes; `EISDIR` for a directory, `EINVAL` for others.
    pub(crate) fn regular(&self) -> Result<&RegularBody> {
        match &self.body {
            Body::Regular(body) => Ok(body),
            Body::Directory(_) => Err(Errno::EISDIR),
            _ => Err(Errno::EINVAL),
        }
    }

    pub(crate) fn meta(&self) -> RwLockReadGuard<'_, Meta> {
        self.meta.read()
    }

    /// All attributes, as they are under `meta`.
    pub(crate) fn attr(&self, meta: &Meta) -> Attr {
        Attr {
            ino: self.ino,
            kind: self.kind,
            perm: meta.perm,
            nlink: meta.nlink,
            uid: meta.uid,
            gid: meta.gid,
            rdev: self.rdev,
            size: meta.size,
            blocks: meta.pages * 8,
            atime: meta.atime,
            mtime: meta.mtime,
            ctime: meta.ctime,
            btime: meta.btime,
        }
    }

    /// The inode as a store keeps it.
    pub(crate) fn record(&self, meta: &Meta) -> InodeRecord {
        let parent = match &self.body {
            Body::Directory(body) => Ino(body.parent.load(Ordering::Relaxed)),
            _ => meta.home.0,
        };
        InodeRecord {
            ino: self.ino,
            kind: self.kind,
            perm: meta.perm,
            nlink: meta.nlink,
            uid: meta.uid,
            gid: meta.gid,
            rdev: self.rdev,
            size: meta.size,
            atime: meta.atime,
            mtime: meta.mtime,
            ctime: meta.ctime,
            btime: meta.btime,
            parent,
        }
    }
}

impl Drop for Inode {
    fn drop(&mut self) {
        // An orphan's pages were settled when it was evicted. Whatever else ends, ends with its
        // file system, and the accounts with it.
        if let Body::Regular(body) = &mut self.body {
            body.pages.get_mut().abandon();
        }
    }
}

/// The size that a directory of this many names shows.
pub(crate) fn directory_size(names: u32) -> u64 {
    DIR_SIZE + ENTRY_SIZE * u64::from(names)
}
