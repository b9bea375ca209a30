//! Bringing a file's bytes into memory, as far as they are asked for.
//!
//! Over a store that does not pin everything an inode comes without its content. Of that either
//! nothing is known; or it is *mapped*: each page is known to be a hole, in memory or absent; or it is
//! *complete*: mapped, and no page is absent. Small files are brought as a whole; of others the
//! map comes first, and then what is read, with more ahead of a reader that reads in order.
//!
//! *Invariant.* What is in memory and what the store answers for it is the same whenever the lock
//! of the pages is free: so any page may be forgotten then.
//!
//! *Locking.* The pages are not locked while the store is asked. What is missing is found under the
//! lock and marked as in flight; what came is published under it, as far as the file did not change
//! there meanwhile (see [`holdfast_cache::Flight`]). Then the caller looks again. The marks change
//! after a beginning: a reader without the lock that met a page without a frame, and then a
//! complete file, and then that nothing had begun, met a hole.

use std::ops::Range;
use std::sync::Arc;

use holdfast_cache::{Account, Arrival, Flight, Missing, Pages, PagesLock};

use crate::file_system::Core;
use crate::inode::{Inode, Numbered as _, WHOLE};
use crate::reclaim::page_key;
use crate::types::{Errno, Ino, Result};

pub(super) const PAGE: u64 = holdfast_cache::PAGE_SIZE as u64;

/// Bytes brought in one call to the store.
pub(super) const BYTES_MAX: u64 = 1 << 20;
/// Pages brought ahead of a reader in order, at most.
const AHEAD_MAX: u64 = 255;
/// Pages brought ahead of a reader that begins at the start of a file.
const AHEAD_FIRST: u64 = 32;
/// Stores take whole ones of these without having to know what is around them in a page.
const SECTOR: u64 = 512;
/// Times that a thread asks with the pages free, beyond one for each page that it needs. If what
/// comes is of no use as often, since others change the file or need the memory, it holds the lock
/// meanwhile.
pub(super) const TRIES: u64 = 8;

/// Are the pages locked while the store is asked?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    Free,
    Locked,
}

/// What is not in memory of what is needed.
#[derive(Clone, Debug)]
pub(super) struct Needed {
    /// The pages that are needed. If the file is not mapped its map comes first.
    pages: Range<u64>,
    /// Behind the last page that is worth reading with them.
    ahead: u64,
}

impl Needed {
    fn pages(pages: Range<u64>) -> Self {
        let ahead = pages.end;
        Self { pages, ahead }
    }

    /// How often it is asked for with the pages free.
    pub(super) fn tries(&self) -> u64 {
        self.pages.end - self.pages.start + TRIES
    }
}

/// A flight that ends when this is dropped, if it has not.
pub(super) struct Leading(pub(super) Arc<Flight>);

impl Drop for Leading {
    fn drop(&mut self) {
        self.0.end(Ok(()));
    }
}

impl Core {
    /// Whom pages are charged to whose space was taken when they were written.
    pub(crate) fn loaded(&self) -> Account<'_> {
        Account {
            space: &Loaded,
            stats: &self.cache,
        }
    }

    /// Locks the pages of a file once `missing` finds that nothing is. It looks under the lock, and
    /// may look more than once: the pages are free while the store is asked for what it found.
    ///
    /// # Errors
    /// Those of `missing`, and what the store answers; what came before that stays.
    #[inline]
    pub(super) fn lock_with<'p>(
        &self,
        inode: &Inode,
        body: &'p Pages,
        mut missing: impl FnMut(&mut PagesLock<'p>) -> Result<Option<Needed>>,
    ) -> Result<PagesLock<'p>> {
        let mut pages = body.lock();
        let mut tries = 0;
        while let Some(needed) = missing(&mut pages)? {
            pages = self.populate(inode, body, pages, needed, &mut tries)?;
        }
        Ok(pages)
    }

    /// Locks the pages of a file that is mapped.
    ///
    /// # Errors
    /// What the store answers; `EUCLEAN` when its map makes no sense.
    #[inline]
    pub(super) fn lock_mapped<'p>(&self, inode: &Inode, body: &'p Pages) -> Result<PagesLock<'p>> {
        self.lock_with(inode, body, |_| Ok(self.map_missing(inode)))
    }

    /// The map of a file, if that is missing.
    #[inline]
    pub(super) fn map_missing(&self, inode: &Inode) -> Option<Needed> {
        (!self.pinned && !inode.is_mapped()).then(|| Needed::pages(0..0))
    }

    /// The map, or those of these bytes that are absent.
    #[inline]
    pub(super) fn missing(
        &self,
        inode: &Inode,
        pages: &PagesLock<'_>,
        bytes: Range<u64>,
    ) -> Option<Needed> {
        if self.pinned || inode.is_complete() {
            return None;
        }
        let within = bytes.start / PAGE..bytes.end.div_ceil(PAGE);
        let is_missing = !inode.is_mapped() || pages.next_absent(within.clone()).is_some();
        is_missing.then(|| Needed::pages(within))
    }

    /// As [`missing`](Self::missing), for a reader of these bytes: with more, if it seems to read
    /// on.
    pub(super) fn missing_to_read(
        &self,
        inode: &Inode,
        pages: &PagesLock<'_>,
        bytes: Range<u64>,
    ) -> Option<Needed> {
        let end = bytes.end.min(inode.size());
        let mut needed = self.missing(inode, pages, bytes.start..end.max(bytes.start))?;
        let first = needed.pages.start;
        let ahead = match first {
            0 => AHEAD_FIRST,
            _ => pages.coming_before(first, AHEAD_MAX),
        };
        needed.ahead = needed.pages.end.saturating_add(ahead);
        Some(needed)
    }

    /// The map, or a page of which buffers of these lengths, one behind the other from `offset` on,
    /// write only a part, if it is absent.
    #[inline]
    pub(super) fn missing_edges(
        &self,
        inode: &Inode,
        pages: &PagesLock<'_>,
        offset: u64,
        lens: impl Iterator<Item = usize>,
    ) -> Option<Needed> {
        if self.pinned || inode.is_complete() {
            return None;
        }
        if !inode.is_mapped() {
            return self.map_missing(inode);
        }
        let mut edge = offset;
        std::iter::once(0).chain(lens).find_map(|len| {
            edge = edge.saturating_add(len as u64);
            match edge.is_multiple_of(PAGE) {
                true => None,
                false => self.missing(inode, pages, edge..edge + 1),
            }
        })
    }

    /// Is a write of these bytes one that nothing need be brought for? It goes past memory if it
    /// writes sectors of one page which is absent, and stays so: a reader of the page has the store
    /// put both together.
    ///
    /// A large file that is written here and there, a few sectors at a time, would have each page
    /// read for them otherwise, and another page forgotten for that one. A page that is being read
    /// is waited for instead: its readers would have to begin again.
    pub(super) fn goes_past(
        &self,
        inode: &Inode,
        pages: &PagesLock<'_>,
        bytes: Range<u64>,
    ) -> bool {
        if self.pinned || !inode.is_mapped() || inode.is_complete() {
            return false;
        }
        let page = bytes.start / PAGE;
        let sectors = bytes.start.is_multiple_of(SECTOR) && bytes.end.is_multiple_of(SECTOR);
        let part = bytes.end - bytes.start < PAGE && bytes.end <= (page + 1) * PAGE;
        let size = inode.size();
        if !sectors || !part || bytes.end > size || size <= WHOLE {
            return false;
        }
        pages.next_absent(page..page + 1).is_some() && !pages.is_in_flight(page)
    }

    /// Brings something of what is needed, or waits for another thread that does; the file may be
    /// another when the pages are locked again. `tries`: how often the caller came here before.
    ///
    /// # Errors
    /// What the store answers, also to another thread for the same pages; `EUCLEAN` when its map
    /// makes no sense; `EIO` once the file system was revoked.
    #[cold]
    #[inline(never)]
    pub(super) fn populate<'p>(
        &self,
        inode: &Inode,
        body: &'p Pages,
        pages: PagesLock<'p>,
        needed: Needed,
        tries: &mut u64,
    ) -> Result<PagesLock<'p>> {
        let hold = match *tries < needed.tries() {
            true => Hold::Free,
            false => Hold::Locked,
        };
        if *tries > 0 {
            self.alive()?;
        }
        *tries += 1;
        if inode.is_mapped() {
            self.bring_pages(inode, body, pages, needed, hold)
        } else {
            self.bring_map(inode, body, pages, hold)
        }
    }

    /// Brings all that is needed without giving the lock back: the last resort of a caller that
    /// needs two files at a time, or reads what others change all the time.
    ///
    /// # Errors
    /// As [`populate`](Self::populate).
    pub(super) fn bring_locked<'p>(
        &self,
        inode: &Inode,
        body: &'p Pages,
        mut pages: PagesLock<'p>,
        bytes: Range<u64>,
    ) -> Result<PagesLock<'p>> {
        while let Some(needed) = self.missing(inode, &pages, bytes.clone()) {
            pages = self.populate(inode, body, pages, needed, &mut { u64::MAX - 1 })?;
        }
        Ok(pages)
    }

    fn bring_pages<'p>(
        &self,
        inode: &Inode,
        body: &'p Pages,
        mut pages: PagesLock<'p>,
        mut needed: Needed,
        hold: Hold,
    ) -> Result<PagesLock<'p>> {
        loop {
            let start = match pages.next_missing(needed.pages.clone()) {
                None => return Ok(pages),
                Some(Missing::InFlight(flight, cuts)) if hold == Hold::Free => {
                    drop(pages);
                    flight.wait(cuts)?;
                    return Ok(body.lock());
                }
                Some(Missing::InFlight(..)) => pages.next_absent(needed.pages.clone()),
                Some(Missing::Absent(run)) => Some(run),
            }
            .map_or(needed.pages.start, |run| run.start);
            let run = self.run_from(inode, &pages, start..needed.ahead, hold)?;
            let is_ahead = needed.pages.end < run.end;
            let (locked, brought) = self.bring_run(inode, body, pages, run, hold, is_ahead);
            pages = locked;
            match brought {
                // Perhaps only what is ahead cannot be read.
                Err(_) if is_ahead => needed.ahead = needed.pages.end,
                brought => return brought.map(|()| pages),
            }
        }
    }

    /// The first of these pages, which is absent, and those behind it that are read with it.
    fn run_from(
        &self,
        inode: &Inode,
        pages: &PagesLock<'_>,
        within: Range<u64>,
        hold: Hold,
    ) -> Result<Range<u64>> {
        let start = within.start;
        let size = inode.size().div_ceil(PAGE);
        let most = (start + BYTES_MAX / PAGE).min(size).min(within.end);
        if start >= most {
            // There is no such page; going on would not end.
            return Err(Errno::EUCLEAN);
        }
        let run = match pages.next_missing(start..most) {
            Some(Missing::Absent(run)) if hold == Hold::Free => Some(run),
            _ => pages.next_absent(start..most),
        };
        run.ok_or(Errno::EUCLEAN)
    }

    /// Reads absent pages that are not in flight, and publishes what is still absent then.
    /// `is_ahead`: others that wait for them are to look for themselves if they cannot be read.
    fn bring_run<'p>(
        &self,
        inode: &Inode,
        body: &'p Pages,
        mut pages: PagesLock<'p>,
        run: Range<u64>,
        hold: Hold,
        is_ahead: bool,
    ) -> (PagesLock<'p>, Result<()>) {
        let start = run.start * PAGE;
        let mut buf = vec![0; ((run.end * PAGE).min(inode.size()) - start) as usize];
        let _held = self.cache.hold(buf.len() as u64);
        if hold == Hold::Locked {
            let read = self.store.read_data(inode.ino(), start, &mut buf);
            let published = read.and_then(|()| {
                self.put_in(inode, &mut pages, start, &buf, std::slice::from_ref(&run))
            });
            return (pages, published);
        }
        let leading = Leading(pages.depart(run.clone()));
        drop(pages);
        let read = self.store.read_data(inode.ino(), start, &mut buf);
        let mut pages = body.lock();
        let left = pages.land(&leading.0);
        let done = match read {
            Ok(()) => self.put_in(inode, &mut pages, start, &buf, &left),
            // The file changed meanwhile, which may be why.
            Err(_) if leading.0.is_cut() => Ok(()),
            Err(error) => Err(error),
        };
        if !is_ahead {
            leading.0.end(done);
        }
        (pages, done)
    }

    /// Makes bytes that were read, from `start` on, the content of these pages among them, which
    /// are absent.
    fn put_in(
        &self,
        inode: &Inode,
        pages: &mut PagesLock<'_>,
        start: u64,
        buf: &[u8],
        runs: &[Range<u64>],
    ) -> Result<()> {
        let end = start + buf.len() as u64;
        let mut came_again = false;
        pages.stamp(self.reclaim.epochs.epoch(), Arrival::Ahead);
        for run in runs {
            let (from, to) = (run.start * PAGE, (run.end * PAGE).min(end));
            let bytes = &buf[(from - start) as usize..(to - start) as usize];
            pages.populate(from, bytes, self.loaded())?;
            came_again |= self.recall(inode.ino(), pages, run.clone());
        }
        if came_again {
            self.reclaim.content_ghosts.refaults.add(1);
        }
        if !runs.is_empty() {
            if pages.absent() == 0 {
                inode.completed();
            }
            pages.has_size(inode.size());
        }
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
}

/// Space for what the store holds already: it was taken when it was written.
struct Loaded;

impl holdfast_cache::Space for Loaded {
    fn reserve(&self, _pages: u64) -> Result<()> {
        Ok(())
    }

    fn release(&self, _pages: u64) {}
}
