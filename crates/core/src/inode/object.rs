//! The object of a file: what it consists of, and how it is read.

use crate::inode::{Content, ContentState, DirectoryBody, Extension, ExtraAttrs, Meta, View};

use holdfast_cache::Pages;
use holdfast_sync::Held;
use holdfast_sync::epoch::{self, Guard};
use once_cell::race::OnceBox;

use super::meta::{ColdAttrs, HotAttrs, MetaCell};
use crate::acl;
use crate::locks::InodeLocks;
use crate::types::{Access, Caller, Caps, Errno, FileType, Result, Time};

/// Files up to this size are loaded and evicted as a whole.
pub(crate) const WHOLE: u64 = 256 << 10;

/// The size of an empty directory, and what each name adds: tmpfs's figures.
const DIR_SIZE: u64 = 40;
const ENTRY_SIZE: u64 = 20;

const REGULAR: u8 = FileType::Regular as u8;
const DIRECTORY: u8 = FileType::Directory as u8;

/// The locks beside the pages: that of the attributes, and the log-order lock.
const ATTRIBUTES: usize = 0;
pub(super) const LOG_ORDER: usize = 1;

/// An object in the index, which keeps its number and reference count.
pub(crate) type Inode = Held<Object>;

/// The in-memory object of a file.
///
/// In the index it takes two cache lines, and the border goes through `pages`. The first has the
/// fields for finding and reading the content, the second those that a writer of the content
/// changes, its locks included.
#[repr(C)]
pub(crate) struct Object {
    pub(super) front: HotAttrs,
    pub(super) extension: OnceBox<Extension>,
    /// A regular file's content; empty for others. Beside it are the lock of the attributes and the
    /// log-order lock.
    pub(super) pages: Pages,
    back: ColdAttrs,
}

const _: () = assert!(size_of::<Object>() == 104, "an inode grew");
const _: () = assert!(
    size_of::<Inode>() == 128,
    "an inode takes more than two lines"
);
const _: () = assert!(
    size_of::<Inode>() - size_of::<Object>() + std::mem::offset_of!(Object, pages) == 56,
    "the border of the lines is not behind the first word of the pages"
);

impl Object {
    /// An object that is in no index yet. `known`: what is known of a file's content.
    ///
    /// Inlined, so that it is built in place: see [`holdfast_sync::Prepared`].
    #[inline(always)]
    pub(crate) fn new(
        file_system: u16,
        kind: FileType,
        meta: &Meta,
        extension: Option<Box<Extension>>,
        known: ContentState,
    ) -> Self {
        let marks = known as u8;
        Self {
            front: HotAttrs::new(file_system, kind, meta, marks),
            extension: extension.map_or_else(OnceBox::new, OnceBox::with_value),
            pages: Pages::new(),
            back: ColdAttrs::new(meta),
        }
    }

    #[inline]
    pub(super) fn cell(&self) -> MetaCell<'_> {
        MetaCell {
            front: &self.front,
            back: &self.back,
            lock: &self.pages.beside()[ATTRIBUTES],
        }
    }

    /// The number of its file system.
    pub(crate) fn file_system(&self) -> u16 {
        self.front.file_system()
    }

    /// The file type.
    #[inline]
    pub(crate) fn kind(&self) -> FileType {
        let mode = u32::from(self.front.kind_bits()) << 12;
        FileType::from_mode(mode).unwrap_or(FileType::Regular)
    }

    /// The names of a directory, or `ENOTDIR`.
    #[inline]
    pub(crate) fn directory(&self) -> Result<&DirectoryBody> {
        match self.extension.get().map(|extension| &extension.content) {
            Some(Content::Directory(body)) => Ok(body),
            _ => Err(Errno::ENOTDIR),
        }
    }

    /// The target of a symbolic link.
    pub(crate) fn target(&self) -> Option<&[u8]> {
        match &self.extension.get()?.content {
            Content::Target(target) => Some(target),
            _ => None,
        }
    }

    /// The device number; 0 if it is no device.
    pub(crate) fn rdev(&self) -> u64 {
        match self.extension.get().map(|extension| &extension.content) {
            Some(Content::Device(rdev)) => *rdev,
            _ => 0,
        }
    }

    /// The pages of a regular file; `EISDIR` for a directory, `EINVAL` for others.
    pub(crate) fn regular(&self) -> Result<&Pages> {
        match self.front.kind_bits() {
            REGULAR => Ok(&self.pages),
            DIRECTORY => Err(Errno::EISDIR),
            _ => Err(Errno::EINVAL),
        }
    }

    /// The attributes, as of one moment; writes nothing.
    #[inline]
    pub(crate) fn meta(&self) -> Meta {
        self.cell().read(|| ()).0
    }

    /// Attributes and extra attributes, as of one moment.
    #[inline]
    pub(crate) fn view<'g>(&'g self, guard: &'g Guard) -> View<'g> {
        let (meta, extra_attrs) = self.cell().read(|| self.extra_attrs(guard));
        View { meta, extra_attrs }
    }

    /// May the caller do this whatever the permissions are?
    #[inline]
    pub(crate) fn opens_to(&self, who: &Caller, want: Access) -> bool {
        let is_overridable = || !want.contains(Access::EXEC) || self.kind_is(FileType::Directory);
        who.checked || who.caps.contains(Caps::DAC_OVERRIDE) && is_overridable()
    }

    /// Is the inode of this type?
    #[inline]
    fn kind_is(&self, kind: FileType) -> bool {
        self.front.kind_bits() == kind as u8
    }

    /// Do the permissions let the caller do this?
    #[inline(always)]
    pub(crate) fn permits(&self, who: &Caller, want: Access, guard: &Guard) -> bool {
        self.opens_to(who, want) || self.permits_by_mode(who, want, guard)
    }

    /// The same for a caller without a capability for it.
    #[inline(never)]
    fn permits_by_mode(&self, who: &Caller, want: Access, guard: &Guard) -> bool {
        let permissions = self.cell().read_permissions(|| self.extra_attrs(guard));
        let ((perm, uid, gid), extra_attrs) = permissions;
        let acl = extra_attrs.and_then(|extra_attrs| extra_attrs.acl.as_ref());
        acl::permission(who, uid, gid, perm, acl, self.kind(), want)
    }

    /// `false`: the inode has, and had, no [extra attributes](ExtraAttrs).
    #[inline]
    pub(crate) fn may_have_extra_attrs(&self) -> bool {
        self.extension.get().is_some()
    }

    /// Extended attributes, ACLs, project: `None` if the inode never had any.
    #[inline]
    pub(crate) fn extra_attrs<'g>(&'g self, guard: &'g Guard) -> Option<&'g ExtraAttrs> {
        self.extension.get()?.extra_attrs.load(guard)
    }

    /// The project.
    pub(crate) fn project(&self) -> u32 {
        self.extra_attrs(&epoch::pin())
            .map_or(0, |extra_attrs| extra_attrs.project)
    }

    /// The size: bytes written before it grew are visible.
    #[inline]
    pub(crate) fn size(&self) -> u64 {
        self.back.size()
    }

    /// The access time, on a cache line that writers of the content do not write.
    #[inline]
    pub(crate) fn atime(&self) -> Time {
        self.front.atime()
    }

    /// Is the access time later than mtime and ctime?
    #[inline]
    pub(crate) fn is_read_since_changed(&self) -> bool {
        self.front.is_read()
    }

    /// Are mtime and ctime both equal to `time`? Each is loaded by itself; a concurrent change is
    /// ordered after the call.
    #[inline]
    pub(crate) fn is_modified(&self, time: Time) -> bool {
        self.back.changes() == (time, time)
    }

    /// Access, modification and change time, each loaded by itself.
    #[inline]
    pub(crate) fn latest_times(&self) -> (Time, Time, Time) {
        let (mtime, ctime) = self.back.changes();
        (self.front.atime(), mtime, ctime)
    }

    /// Access, modification and change time, as of one moment.
    #[inline]
    pub(crate) fn times(&self) -> (Time, Time, Time) {
        let meta = self.meta();
        (meta.atime, meta.mtime, meta.ctime)
    }

    /// The link count.
    pub(crate) fn nlink(&self) -> u32 {
        self.back.nlink()
    }

    /// Is a name known that leads to it?
    pub(crate) fn has_home(&self) -> bool {
        self.back.has_home()
    }

    /// The file locks, if there ever was one.
    pub(crate) fn locks(&self) -> Option<&InodeLocks> {
        self.extension.get()?.locks.get()
    }

    /// The file locks, created if need be.
    pub(crate) fn locks_or_new(&self) -> &InodeLocks {
        let extension = self.extension_or_new();
        extension.locks.get_or_init(|| Box::new(InodeLocks::new()))
    }

    pub(super) fn extension_or_new(&self) -> &Extension {
        self.extension.get_or_init(Box::default)
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        // An orphan's pages were released when it was freed. Any other inode is dropped with its
        // file system, and so are the accounts.
        self.pages.abandon();
    }
}

/// The size of a directory of this many names.
pub(crate) fn directory_size(names: u32) -> u64 {
    DIR_SIZE + ENTRY_SIZE * u64::from(names)
}

/// The number of names of a directory of this size.
pub(crate) fn directory_names(size: u64) -> u64 {
    size.saturating_sub(DIR_SIZE) / ENTRY_SIZE
}
