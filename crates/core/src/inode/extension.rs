//! Parts that only some inodes have: names of a directory, a target, extended attributes, file
//! locks.

use holdfast_sync::collections::map_bytes;
use holdfast_sync::{Published, epoch};
use once_cell::race::OnceBox;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::acl::Acl;
use crate::directory::Directory;
use crate::inode::Meta;
use crate::locks::InodeLocks;
use crate::types::{FileType, Ino};

/// Created with the inode if its type needs it, else at first use.
///
/// *Invariant.* A regular file's extension has [`Content::Stored`], so that its space can be stored
/// there later.
pub(crate) struct Extension {
    /// Content of an inode that is no regular file; a regular file's space in the store.
    pub(super) content: Content,
    /// Extended attributes and ACLs: replaced as a whole, read without a lock.
    pub(super) extra_attrs: Published<ExtraAttrs>,
    /// File locks, created with the first.
    pub(super) locks: OnceBox<InodeLocks>,
}

/// The value of [`Content::Stored`] while the number of pages is not known.
pub(super) const UNTOLD: u64 = u64::MAX;

impl Default for Extension {
    fn default() -> Self {
        Self {
            content: Content::Stored(AtomicU64::new(UNTOLD)),
            extra_attrs: Published::default(),
            locks: OnceBox::new(),
        }
    }
}

impl Extension {
    /// The extension for this content and these attributes, if one is needed.
    pub(crate) fn of(content: Content, extra_attrs: Option<Box<ExtraAttrs>>) -> Option<Box<Self>> {
        let content = match (content, &extra_attrs) {
            (Content::None, None) => return None,
            (Content::None, Some(_)) => Content::Stored(AtomicU64::new(UNTOLD)),
            (content, _) => content,
        };
        Some(Box::new(Self {
            content,
            extra_attrs: extra_attrs.map_or_else(Default::default, Published::new),
            locks: OnceBox::new(),
        }))
    }
}

/// Bytes of the reference counts in front of a value.
const COUNTS: usize = 16;

impl Extension {
    /// Bytes of memory of a new extension, without the names of a directory and file locks.
    pub(crate) fn memory(&self) -> usize {
        let target = match &self.content {
            Content::Target(target) => target.len(),
            _ => 0,
        };
        let guard = epoch::pin();
        let extra_attrs = self.extra_attrs.load(&guard).map_or(0, ExtraAttrs::memory);
        size_of::<Self>() + target + extra_attrs
    }
}

impl ExtraAttrs {
    fn memory(&self) -> usize {
        let values = self.xattrs.iter();
        let values = values.map(|(name, value)| name.len() + COUNTS + value.len());
        let map = map_bytes::<(Box<[u8]>, Arc<[u8]>)>(self.xattrs.len());
        size_of::<Self>() + map + values.sum::<usize>()
    }
}

const _: () = assert!(size_of::<Extension>() == 64, "a directory is no line");

/// The content of an inode that is no regular file, or the stored space of one that is.
pub(crate) enum Content {
    /// None: for a new regular file, fifo or socket.
    None,
    /// Names.
    Directory(DirectoryBody),
    /// The target of a symbolic link.
    Target(Box<[u8]>),
    /// A device number.
    Device(u64),
    /// Pages that a regular file takes in its store, where the size would suggest another number.
    Stored(AtomicU64),
}

/// A directory's content.
pub(crate) struct DirectoryBody {
    /// The parent directory. Changes only under the rename lock.
    pub(crate) parent: AtomicU64,
    /// Its names.
    pub(crate) names: Directory,
}

/// Attributes that few inodes have.
#[derive(Clone, Default)]
pub(crate) struct ExtraAttrs {
    /// Extended attributes by full name, without ACLs. Values are shared between successive
    /// versions.
    pub(crate) xattrs: BTreeMap<Box<[u8]>, Arc<[u8]>>,
    /// The access ACL, unless the mode expresses it.
    pub(crate) acl: Option<Acl>,
    /// A directory's default ACL.
    pub(crate) default_acl: Option<Acl>,
    /// The project; 0 for inodes without extra attributes.
    pub(crate) project: u32,
}

impl Content {
    /// The content of a new inode of this type.
    pub(crate) fn of(kind: FileType, parent: Ino, rdev: u64, target: Option<&[u8]>) -> Self {
        match kind {
            FileType::Directory => Self::Directory(DirectoryBody {
                parent: AtomicU64::new(parent.0),
                names: Directory::empty(true),
            }),
            FileType::Symlink => Self::Target(target.unwrap_or_default().into()),
            _ if rdev != 0 => Self::Device(rdev),
            _ => Self::None,
        }
    }
}

/// Attributes and extra attributes, as of one moment.
#[derive(Clone, Copy)]
pub(crate) struct View<'g> {
    pub(crate) meta: Meta,
    pub(crate) extra_attrs: Option<&'g ExtraAttrs>,
}

impl<'g> View<'g> {
    pub(crate) fn acl(&self) -> Option<&'g Acl> {
        self.extra_attrs?.acl.as_ref()
    }

    pub(crate) fn default_acl(&self) -> Option<&'g Acl> {
        self.extra_attrs?.default_acl.as_ref()
    }
}
