//! Bringing a file's bytes into memory, as far as they are asked for.
//!
//! Over a store that does not pin everything an inode comes without its content. Of that either
//! nothing is known; or it is *mapped*: each page is known to be a hole, in memory or absent; or it is
//! *complete*: mapped, and no page is absent. Small files are brought as a whole; of others the
//! map comes first, and then what is read, with more ahead of who reads in order.
//!
//! *Invariant.* What is in memory and what the store answers for it is the same whenever the lock
//! of the pages is free: so any page may be forgotten then.
//!
//! *Locking.* All this happens under the lock of the pages. The marks change after a beginning: a
//! reader without the lock who met a page without a frame, and then a complete file, and then that
//! nothing had begun, met a hole.

use std::ops::Range;

use holdfast_cache::{Account, Arrival, MAX_SIZE, PagesLock};

use crate::file_system::Core;
use crate::inode::{Inode, Numbered as _, WHOLE};
use crate::reclaim::page_key;
use crate::types::{Errno, Ino, Result};

pub(super) const PAGE: u64 = holdfast_cache::PAGE_SIZE as u64;

/// Bytes brought in one call to the store.
pub(super) const BYTES_MAX: u64 = 1 << 20;
/// Pages brought ahead of who reads in order, at most.
const AHEAD_MAX: u64 = 255;
/// Pages brought ahead of who begins at the start of a file.
const AHEAD_FIRST: u64 = 32;
/// Stores take whole ones of these without having to know what is around them in a page.
const SECTOR: u64 = 512;

impl Core {
    /// Whom pages are charged to whose space was taken when they were written.
    pub(crate) fn loaded(&self) -> Account<'_> {
        Account {
            space: &Loaded,
            stats: &self.cache,
        }
    }

    /// Makes sure that a file is mapped.
    ///
    /// # Errors
    /// What the store answers; `EUCLEAN` when its map makes no sense.
    #[inline]
    pub(super) fn map(&self, inode: &Inode, pages: &mut PagesLock<'_>) -> Result<()> {
        if self.pinned || inode.is_mapped() {
            return Ok(());
        }
        self.map_now(inode, pages)
    }

    #[cold]
    fn map_now(&self, inode: &Inode, pages: &mut PagesLock<'_>) -> Result<()> {
        let size = inode.size();
        if let Err(error) = self.lay_out(inode.ino(), size, pages) {
            pages.clear(self.loaded());
            return Err(error);
        }
        if pages.absent() > 0 {
            inode.partial();
        } else {
            inode.completed();
        }
        match self.coherence.is_some() {
            // What a map shows need not be all the space: some was given ahead, or is compressed.
            true => inode.still_takes_what_was_told(),
            false => inode.takes_its_pages(),
        }
        pages.has_size(size);
        if size <= WHOLE {
            let (ghosts, there) = (&self.reclaim.content_ghosts, self.cache.pages());
            let again = ghosts.take(inode.ino().0, there);
            inode.content_comes(&self.reclaim.epochs, again);
        }
        Ok(())
    }

    /// Says of all of a file where it takes space; brings what it has, if that is little.
    fn lay_out(&self, ino: Ino, size: u64, pages: &mut PagesLock<'_>) -> Result<()> {
        let mut buf = Vec::new();
        self.each_run(ino, |run, written| {
            if !written {
                return pages.allocate(run.start, run.end - run.start, self.loaded());
            }
            let end = run.end.min(size);
            if end <= run.start {
                // Nobody reads it.
                return Ok(());
            }
            if size > WHOLE {
                let touched = run.start / PAGE..end.div_ceil(PAGE);
                return pages.put_aside(touched, self.loaded());
            }
            buf.resize((end - run.start) as usize, 0);
            self.store.read_data(ino, run.start, &mut buf)?;
            pages.write(run.start, &buf, self.loaded()).map(drop)
        })
    }

    /// Shows all stretches of a file that take space, and whether they were written.
    fn each_run(
        &self,
        ino: Ino,
        mut visit: impl FnMut(Range<u64>, bool) -> Result<()>,
    ) -> Result<()> {
        let mut offset = 0;
        while offset < MAX_SIZE
            && let Some(run) = self.store.next_space(ino, offset)?
        {
            if run.start < offset || run.start >= MAX_SIZE || run.len == 0 {
                return Err(Errno::EUCLEAN);
            }
            // The last page reaches a byte beyond what offsets can say.
            let end = run.start.saturating_add(run.len).min(MAX_SIZE);
            visit(run.start..end, run.written)?;
            offset = end;
        }
        Ok(())
    }

    /// Pages of space that a file takes in the store.
    ///
    /// # Errors
    /// What the store answers; `EUCLEAN` when its map makes no sense.
    pub(crate) fn stored_pages(&self, ino: Ino) -> Result<u64> {
        let (mut counted, mut pages) = (0, 0);
        self.each_run(ino, |run, _| {
            // Two runs can share a page.
            let last = run.end.div_ceil(PAGE);
            pages += last.saturating_sub(counted.max(run.start / PAGE));
            counted = last;
            Ok(())
        })?;
        Ok(pages)
    }

    /// Makes sure that it is known how much space a file takes, before its attributes are told. Where the record
    /// that it was loaded with did not say it, the store is asked.
    ///
    /// # Errors
    /// What the store answers; attributes tell the space by the size then.
    #[inline]
    pub(crate) fn weigh(&self, inode: &Inode) -> Result<()> {
        match self.pinned || inode.has_known_space() {
            true => Ok(()),
            // A host that does not let a file be read tells its attributes all the same.
            false if self.coherence.is_some() => self.weigh_now(inode).or(Ok(())),
            false => self.weigh_now(inode),
        }
    }

    #[cold]
    fn weigh_now(&self, inode: &Inode) -> Result<()> {
        let mut pages = inode.regular()?.lock();
        if inode.has_known_space() {
            return Ok(());
        }
        let size = inode.size();
        match self.store.next_space(inode.ino(), 0)? {
            // Nearly every file, with one question.
            Some(run)
                if run.start == 0
                    && run.written
                    && run.len >= size
                    && !self.has_space_behind(inode, run.len) =>
            {
                inode.full();
                Ok(())
            }
            _ => self.map(inode, &mut pages),
        }
    }

    /// Has it space from this byte on, or may it have, if that cannot be told?
    fn has_space_behind(&self, inode: &Inode, end: u64) -> bool {
        let behind = || self.store.next_space(inode.ino(), end);
        inode.may_be_rare() && behind().map_or(true, |run| run.is_some())
    }

    /// Makes sure that a file is mapped and that none of these bytes is absent.
    ///
    /// # Errors
    /// What the store answers; what came before that stays.
    pub(super) fn bring(
        &self,
        inode: &Inode,
        pages: &mut PagesLock<'_>,
        bytes: Range<u64>,
    ) -> Result<()> {
        if self.pinned || inode.is_complete() {
            return Ok(());
        }
        self.map(inode, pages)?;
        let within = bytes.start / PAGE..bytes.end.div_ceil(PAGE);
        let Some(first) = pages.next_absent(within.clone()) else {
            return Ok(());
        };
        let size = inode.size();
        pages.stamp(self.reclaim.epochs.epoch(), Arrival::Ahead);
        let mut came_again = false;
        let mut buf = Vec::new();
        let mut next = Some(first);
        while let Some(run) = next {
            let start = run.start * PAGE;
            let end = (run.end * PAGE).min(size).min(start + BYTES_MAX);
            if start >= end {
                // There is no such page; going on would not end.
                return Err(Errno::EUCLEAN);
            }
            buf.resize((end - start) as usize, 0);
            self.store.read_data(inode.ino(), start, &mut buf)?;
            pages.bring(start, &buf, self.loaded())?;
            came_again |= self.recall(inode.ino(), pages, run.start..end.div_ceil(PAGE));
            next = pages.next_absent(within.clone());
        }
        if came_again {
            self.reclaim.content_ghosts.refaults.add(1);
        }
        if pages.absent() == 0 {
            inode.completed();
        }
        pages.has_size(size);
        Ok(())
    }

    /// Says of those of these pages which had gone too early that they come again. Did any?
    fn recall(&self, ino: Ino, pages: &mut PagesLock<'_>, came: Range<u64>) -> bool {
        let (ghosts, there) = (&self.reclaim.content_ghosts, self.cache.pages());
        let mut any = false;
        for page in came {
            if ghosts.recall(page_key(ino, page), there) {
                pages.came_again(page);
                any = true;
            }
        }
        any
    }

    /// As [`bring`](Self::bring), for who reads these bytes: with more, if he seems to read on.
    pub(super) fn bring_to_read(
        &self,
        inode: &Inode,
        pages: &mut PagesLock<'_>,
        bytes: Range<u64>,
    ) -> Result<()> {
        self.map(inode, pages)?;
        let end = bytes.end.min(inode.size());
        let (first, behind) = (bytes.start / PAGE, end.div_ceil(PAGE));
        if self.pinned || pages.next_absent(first..behind).is_none() {
            return Ok(());
        }
        let ahead = match first {
            0 => AHEAD_FIRST,
            _ => pages.present_before(first, AHEAD_MAX),
        };
        let end = end.saturating_add(ahead * PAGE).min(inode.size());
        self.bring(inode, pages, bytes.start..end)
    }

    /// Is a write of these bytes one that nothing need be brought for? It goes past memory if it writes sectors of
    /// one page which is absent, and stays so: whoever reads it has the store put both together.
    ///
    /// A large file that is written here and there, a few sectors at a time, would have each page read for them
    /// otherwise, and another page forgotten for that one.
    ///
    /// # Errors
    /// Those of mapping the file.
    pub(super) fn goes_past(
        &self,
        inode: &Inode,
        pages: &mut PagesLock<'_>,
        bytes: Range<u64>,
    ) -> Result<bool> {
        if self.pinned || inode.is_complete() {
            return Ok(false);
        }
        let page = bytes.start / PAGE;
        let sectors = bytes.start.is_multiple_of(SECTOR) && bytes.end.is_multiple_of(SECTOR);
        let part = bytes.end - bytes.start < PAGE && bytes.end <= (page + 1) * PAGE;
        let size = inode.size();
        if !sectors || !part || bytes.end > size || size <= WHOLE {
            return Ok(false);
        }
        self.map(inode, pages)?;
        Ok(pages.next_absent(page..page + 1).is_some())
    }

    /// Makes sure that a file is mapped and that no page is absent of which buffers of these lengths, one
    /// behind the other from `offset` on, write only a part.
    pub(super) fn bring_edges(
        &self,
        inode: &Inode,
        pages: &mut PagesLock<'_>,
        offset: u64,
        lens: impl Iterator<Item = usize>,
    ) -> Result<()> {
        if self.pinned || inode.is_complete() {
            return Ok(());
        }
        self.map(inode, pages)?;
        let mut edge = offset;
        for len in std::iter::once(0).chain(lens) {
            edge = edge.saturating_add(len as u64);
            if !edge.is_multiple_of(PAGE) {
                self.bring(inode, pages, edge..edge + 1)?;
            }
        }
        Ok(())
    }
}

/// Space for what the store holds already: it was taken when it was written.
struct Loaded;

impl holdfast_cache::Space for Loaded {
    fn reserve(&self, _pages: u64) -> Result<()> {
        Ok(())
    }

    fn release(&self, _pages: u64) {}
}
