//! The inode: what the core holds of one file object.
//!
//! *Invariants.* Number, type and device number never change. Its uses ([`crate::Node`]s, open
//! files, what a front end's kernel holds) are counted by the index. An inode whose `nlink` is 0 is
//! an *orphan*: it is *doomed* in the index, and leaves it with its last use. That mark and `nlink`
//! change together, under the lock of the attributes.
//!
//! *Locking.* See `docs/locking.md`: the names of a directory, or the pages of a file, come
//! before any attributes; their lock is a leaf, and no thread holds two of them. Attributes,
//! extended attributes and ACLs are read without it.

mod aging;
mod change;
mod charged;
mod extension;
mod marks;
mod meta;
mod numbered;
mod protection;
mod values;

pub(crate) use aging::{Epochs, Look, Part};
pub(crate) use change::{MetaWrite, View};
use extension::UNTOLD;
pub(crate) use extension::{Content, DirectoryBody, Extension, ExtraAttrs};
pub(crate) use holdfast_cache::Set;
pub(crate) use meta::Meta;
pub(crate) use numbered::Numbered;
pub(crate) use values::{kept_acl, kept_values, value};

use holdfast_cache::{PAGE_SIZE, Pages};
use holdfast_sync::Held;
use holdfast_sync::epoch::{self, Guard};
use once_cell::race::OnceBox;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::acl;
use crate::locks::InodeLocks;
use crate::store::StoredSpace;
use crate::types::{Access, Caller, Caps, Errno, FileType, Result, Time};
pub(crate) use marks::{Known, time_of_changes};
use meta::{ColdAttrs, HotAttrs, MetaCell};

/// Files up to so many bytes come into memory, and leave it, as a whole.
pub(crate) const WHOLE: u64 = 256 << 10;

/// What every empty directory's size is, and each name's share: tmpfs's figures.
const DIR_SIZE: u64 = 40;
const ENTRY_SIZE: u64 = 20;

const REGULAR: u8 = FileType::Regular as u8;
const DIRECTORY: u8 = FileType::Directory as u8;

/// The locks beside the pages: that of the attributes, and the turn at the store.
const ATTRIBUTES: usize = 0;
const TURN: usize = 1;

/// A file object in the index, which knows its number and its uses.
pub(crate) type Inode = Held<Object>;

/// A file object.
///
/// In the index it takes two cache lines. The first has what is needed to find and to read the
/// content, its border goes through the pages, and the second has what a writer of the content
/// changes, his locks included.
#[repr(C)]
pub(crate) struct Object {
    front: HotAttrs,
    extension: OnceBox<Extension>,
    /// A regular file's content; empty for others. The locks beside it are that of the attributes,
    /// and the turn at the store.
    pages: Pages,
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
    /// One that is in no index yet. `known`: what is known of a file's content.
    ///
    /// Inlined, so that it is built where it stays: see [`holdfast_sync::Prepared`].
    #[inline(always)]
    pub(crate) fn new(
        file_system: u16,
        kind: FileType,
        meta: &Meta,
        extension: Option<Box<Extension>>,
        known: Known,
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
    fn cell(&self) -> MetaCell<'_> {
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

    /// What it is.
    #[inline]
    pub(crate) fn kind(&self) -> FileType {
        let mode = u32::from(self.front.kind_bits()) << 12;
        FileType::from_mode(mode).unwrap_or(FileType::Regular)
    }

    /// The names, or `ENOTDIR`.
    #[inline]
    pub(crate) fn directory(&self) -> Result<&DirectoryBody> {
        match self.extension.get().map(|extension| &extension.content) {
            Some(Content::Directory(body)) => Ok(body),
            _ => Err(Errno::ENOTDIR),
        }
    }

    /// The target, if it is a symbolic link.
    pub(crate) fn target(&self) -> Option<&[u8]> {
        match &self.extension.get()?.content {
            Content::Target(target) => Some(target),
            _ => None,
        }
    }

    /// The device number; 0 for what is no device.
    pub(crate) fn rdev(&self) -> u64 {
        match self.extension.get().map(|extension| &extension.content) {
            Some(Content::Device(rdev)) => *rdev,
            _ => 0,
        }
    }

    /// The bytes; `EISDIR` for a directory, `EINVAL` for others.
    pub(crate) fn regular(&self) -> Result<&Pages> {
        match self.front.kind_bits() {
            REGULAR => Ok(&self.pages),
            DIRECTORY => Err(Errno::EISDIR),
            _ => Err(Errno::EINVAL),
        }
    }

    /// The bytes, if it is a regular file: others have no pages.
    #[inline]
    pub(crate) fn pages_if_any(&self) -> &Pages {
        &self.pages
    }

    /// Pages of space that a file has; those that it would have without holes, if that is not
    /// [known](Self::has_known_space).
    fn pages_held(&self, size: u64) -> u64 {
        if self.kind() == FileType::Regular {
            let is_mapped = self.is_mapped();
            let told = is_mapped || !self.is_full();
            if let Some(pages) = told.then(|| self.stored_pages()).flatten() {
                return pages;
            }
            if !is_mapped {
                return size.div_ceil(PAGE_SIZE as u64);
            }
        }
        // Most ask for nothing more, and need no guard.
        if self.pages.is_empty() {
            return 0;
        }
        self.pages.pages()
    }

    /// Pages that the file takes in its store as that told of it, where its size says others. Of a file that is mapped: where its pages
    /// say others, and the space is the store's to tell.
    #[inline]
    fn stored_pages(&self) -> Option<u64> {
        match &self.extension.get()?.content {
            // Relaxed: one of the numbers that the store told.
            Content::Stored(pages) => {
                Some(pages.load(Ordering::Relaxed)).filter(|pages| *pages != UNTOLD)
            }
            _ => None,
        }
    }

    /// Others changed the file in the store, where it takes this space now: nothing else of its content is known. To be said
    /// with the pages locked, which must have begun to change.
    pub(crate) fn changed_below(&self, space: StoredSpace) {
        if space.beside_size().is_some() {
            self.extension.get_or_init(Box::default);
        }
        self.tell_stored(space.beside_size().unwrap_or(UNTOLD));
        self.unknown(space == StoredSpace::AS_SIZE);
    }

    /// A file of this size, which is mapped, takes this space in a store that tells of it by itself. To be said with the pages locked.
    pub(crate) fn takes(&self, space: StoredSpace, size: u64) {
        let told = space.pages(size);
        if told.is_some_and(|told| told != self.pages.pages()) {
            self.extension.get_or_init(Box::default);
        }
        self.tell_stored(told.unwrap_or(UNTOLD));
    }

    /// As [`takes`](Self::takes), of a file that has just been mapped: the space is what was told before.
    pub(crate) fn still_takes_what_was_told(&self) {
        if self.stored_pages().is_none() && self.is_full() {
            self.takes(StoredSpace::AS_SIZE, self.size());
        }
    }

    /// The pages of a file, which is mapped now, tell its space from now on. To be said with them locked.
    pub(crate) fn takes_its_pages(&self) {
        self.tell_stored(UNTOLD);
    }

    fn tell_stored(&self, told: u64) {
        if let Some(Content::Stored(pages)) = self.extension.get().map(|it| &it.content) {
            pages.store(told, Ordering::Relaxed);
        }
    }

    /// Pages of space that only the store has, if it is known without asking it.
    pub(crate) fn known_unmapped_pages(&self) -> Option<u64> {
        let known = !self.is_mapped() && (self.is_full() || self.stored_pages().is_some());
        known.then(|| self.pages_held(self.size()))
    }

    /// Does a file have holes, or space without data? A store may not tell so exactly. Locks the pages.
    pub(crate) fn has_space_of_its_own(&self) -> bool {
        if self.kind() != FileType::Regular || !self.is_mapped() {
            return false;
        }
        let pages = self.pages.lock();
        let data = pages.frames() + pages.absent();
        (data, pages.pages()) != (self.size().div_ceil(PAGE_SIZE as u64), data)
    }

    /// The attributes of the moment; writes nothing.
    #[inline]
    pub(crate) fn meta(&self) -> Meta {
        self.cell().read(|| ()).0
    }

    /// Attributes, and what few inodes have, of one moment.
    #[inline]
    pub(crate) fn view<'g>(&'g self, guard: &'g Guard) -> View<'g> {
        let (meta, extra_attrs) = self.cell().read(|| self.extra_attrs(guard));
        View { meta, extra_attrs }
    }

    /// May `who` do this whatever the permissions are?
    #[inline]
    pub(crate) fn opens_to(&self, who: &Caller, want: Access) -> bool {
        let is_overridable = || !want.contains(Access::EXEC) || self.kind_is(FileType::Directory);
        who.checked || who.caps.contains(Caps::DAC_OVERRIDE) && is_overridable()
    }

    /// Is it of this type?
    #[inline]
    pub(crate) fn kind_is(&self, kind: FileType) -> bool {
        self.front.kind_bits() == kind as u8
    }

    /// May `who` do this, as far as permissions decide?
    #[inline(always)]
    pub(crate) fn permits(&self, who: &Caller, want: Access, guard: &Guard) -> bool {
        self.opens_to(who, want) || self.permits_by_mode(who, want, guard)
    }

    /// May `who` do this, who has no capability for it?
    #[inline(never)]
    fn permits_by_mode(&self, who: &Caller, want: Access, guard: &Guard) -> bool {
        let ((perm, uid, gid), extra_attrs) = self.cell().read_owner(|| self.extra_attrs(guard));
        let acl = extra_attrs.and_then(|extra_attrs| extra_attrs.acl.as_ref());
        acl::permission(who, uid, gid, perm, acl, self.kind(), want)
    }

    /// `false`: it has nothing of what [few inodes](ExtraAttrs) have, and never had.
    #[inline]
    pub(crate) fn may_have_extra_attrs(&self) -> bool {
        self.extension.get().is_some()
    }

    /// What few inodes have: extended attributes, or had some, ACLs, a project.
    #[inline]
    pub(crate) fn extra_attrs<'g>(&'g self, guard: &'g Guard) -> Option<&'g ExtraAttrs> {
        self.extension.get()?.extra_attrs.load(guard)
    }

    /// The project.
    pub(crate) fn project(&self) -> u32 {
        self.extra_attrs(&epoch::pin())
            .map_or(0, |extra_attrs| extra_attrs.project)
    }

    /// The size alone: what was written before it grew can be read.
    #[inline]
    pub(crate) fn size(&self) -> u64 {
        self.back.size()
    }

    /// Where the size is, to be loaded with the pages.
    #[inline]
    pub(crate) fn size_cell(&self) -> &AtomicU64 {
        self.back.size_cell()
    }

    /// The time of the last access alone; no writer of the content disturbs whoever asks.
    #[inline]
    pub(crate) fn atime(&self) -> Time {
        self.front.atime()
    }

    /// Was it read after it was last changed?
    #[inline]
    pub(crate) fn is_read_since_changed(&self) -> bool {
        self.front.is_read()
    }

    /// Are these the times of modification and change? Each by itself: whoever changes one meanwhile does so after that.
    #[inline]
    pub(crate) fn is_modified(&self, time: Time) -> bool {
        self.back.changes() == (time, time)
    }

    /// Access, modification and change, each by itself.
    #[inline]
    pub(crate) fn latest_times(&self) -> (Time, Time, Time) {
        let (mtime, ctime) = self.back.changes();
        (self.front.atime(), mtime, ctime)
    }

    /// Access, modification and change.
    #[inline]
    pub(crate) fn times(&self) -> (Time, Time, Time) {
        self.cell().read_times()
    }

    /// The number of names alone.
    pub(crate) fn nlink(&self) -> u32 {
        self.back.nlink()
    }

    /// The file locks, if there ever was one.
    pub(crate) fn locks(&self) -> Option<&InodeLocks> {
        self.extension.get()?.locks.get()
    }

    /// The file locks, made if need be.
    pub(crate) fn locks_or_new(&self) -> &InodeLocks {
        let extension = self.extension_or_new();
        extension.locks.get_or_init(|| Box::new(InodeLocks::new()))
    }

    fn extension_or_new(&self) -> &Extension {
        self.extension.get_or_init(Box::default)
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        // An orphan's pages were settled when it was evicted. Whatever else ends, ends with its
        // file system, and the accounts with it.
        self.pages.abandon();
    }
}

/// The size that a directory of this many names shows.
pub(crate) fn directory_size(names: u32) -> u64 {
    DIR_SIZE + ENTRY_SIZE * u64::from(names)
}

/// The number of names for which a directory shows this size.
pub(crate) fn directory_names(size: u64) -> u64 {
    size.saturating_sub(DIR_SIZE) / ENTRY_SIZE
}
