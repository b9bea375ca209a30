//! The space that a file takes in its store.

use std::sync::atomic::Ordering;

use holdfast_cache::PAGE_SIZE;

use super::Object;
use super::extension::{Content, UNTOLD};
use crate::inode::bits::{FULL, MAPPED};
use crate::store::StoredSpace;
use crate::types::FileType;

impl Object {
    /// Pages of space that a file takes. If that is not [known](Self::has_known_space), those of a
    /// file of this size without holes.
    pub(super) fn pages_held(&self, size: u64) -> u64 {
        if self.kind() == FileType::Regular {
            let is_mapped = self.is_mapped();
            let reported = is_mapped || !self.is_full();
            if let Some(pages) = reported.then(|| self.stored_pages()).flatten() {
                return pages;
            }
            if !is_mapped {
                return size.div_ceil(PAGE_SIZE as u64);
            }
        }
        // The common case, without an epoch guard.
        if self.pages.is_empty() {
            return 0;
        }
        self.pages.pages()
    }

    /// Pages that the file takes in its store, if the store reported a number other than its size
    /// suggests. For a mapped file: other than its pages suggest.
    #[inline]
    pub(super) fn stored_pages(&self) -> Option<u64> {
        match &self.extension.get()?.content {
            // Relaxed: any of the numbers that the store reported.
            Content::Stored(pages) => {
                Some(pages.load(Ordering::Relaxed)).filter(|pages| *pages != UNTOLD)
            }
            _ => None,
        }
    }

    /// Other users of the store changed the file, which takes `space` now; everything known of its
    /// content is dropped. The page lock is held, and the pages have begun to change.
    pub(crate) fn changed_below(&self, space: StoredSpace) {
        if space.beside_size().is_some() {
            self.extension.get_or_init(Box::default);
        }
        self.set_stored_pages(space.beside_size().unwrap_or(UNTOLD));
        self.unknown(space == StoredSpace::AS_SIZE);
    }

    /// Sets the space of a mapped file of this size in a store that reports it. The page lock is
    /// held.
    pub(crate) fn takes(&self, space: StoredSpace, size: u64) {
        let reported = space.pages(size);
        if reported.is_some_and(|reported| reported != self.pages.pages()) {
            self.extension.get_or_init(Box::default);
        }
        self.set_stored_pages(reported.unwrap_or(UNTOLD));
    }

    /// As [`takes`](Self::takes), for a file that has just been mapped: the space is the last
    /// reported.
    pub(crate) fn keep_reported_space(&self) {
        if self.stored_pages().is_none() && self.is_full() {
            self.takes(StoredSpace::AS_SIZE, self.size());
        }
    }

    /// From now on the pages of this mapped file determine its space. The page lock is held.
    pub(crate) fn takes_its_pages(&self) {
        self.set_stored_pages(UNTOLD);
    }

    fn set_stored_pages(&self, reported: u64) {
        if let Some(Content::Stored(pages)) = self.extension.get().map(|it| &it.content) {
            pages.store(reported, Ordering::Relaxed);
        }
    }

    /// Pages of a file that is not mapped, if they are known without asking the store.
    pub(crate) fn known_unmapped_pages(&self) -> Option<u64> {
        let known = !self.is_mapped() && (self.is_full() || self.stored_pages().is_some());
        known.then(|| self.pages_held(self.size()))
    }

    /// Does a file have holes, or space without data? A store may not report them exactly. Locks
    /// the pages.
    pub(crate) fn has_space_of_its_own(&self) -> bool {
        if self.kind() != FileType::Regular || !self.is_mapped() {
            return false;
        }
        let pages = self.pages.lock();
        let data = pages.frames() + pages.unloaded();
        (data, pages.pages()) != (self.size().div_ceil(PAGE_SIZE as u64), data)
    }

    /// Is the file's space known without asking the store?
    #[inline]
    pub(crate) fn has_known_space(&self) -> bool {
        let marks = self.front.marks.load(Ordering::Acquire);
        marks & (MAPPED | FULL) != 0
            || self.kind() != FileType::Regular
            // There may be space behind the end, but only with an extension.
            || (self.size() == 0 && !self.may_have_extra_attrs())
            || self.stored_pages().is_some()
    }
}
