//! Loading of a file's content on demand.
//!
//! Over a store that does not pin everything, an inode is loaded without its content. The content
//! is either unknown; or *mapped*: each page is known to be a hole, in memory or absent; or
//! *complete*: mapped, and no page is absent. Small files are loaded as a whole. For others the map
//! is loaded first, and then the pages that are read, with read-ahead for a sequential reader.
//!
//! *Invariant.* While the page lock is free, each page in memory equals the store's answer for it:
//! so any page may be dropped then.
//!
//! *Locking.* The pages are not locked during a request to the store. Missing pages are found under
//! the lock and marked as in flight. What was read is published under the lock, except where the
//! file changed meanwhile (see [`holdfast_cache::Flight`]). Then the caller looks again. The marks
//! change after a write section begins. So a page is a hole for a reader without the lock if it
//! sees no frame, then a complete file, and then that no write section has begun.

use crate::io::pages::{Hold, PAGE, TRIES, loaded_account};
use std::ops::Range;
use std::sync::Arc;

use holdfast_cache::{Arrival, Flight, Missing, Pages, PagesLock};

use crate::core::Core;
use crate::inode::{Inode, Numbered as _, WHOLE};
use crate::io::map::load_map;
use crate::reclaim::page_key;
use crate::types::{Errno, Ino, Result};

/// Bytes of one request to the store.
pub(super) const BYTES_MAX: u64 = 1 << 20;
/// The most pages of read-ahead for a sequential reader.
const READAHEAD_MAX: u64 = 255;
/// Pages of read-ahead for a reader that begins at the start of a file.
const READAHEAD_FIRST: u64 = 32;
/// Stores accept whole sectors without reading the page around them.
const SECTOR: u64 = 512;

/// Missing parts of what is needed.
#[derive(Clone, Debug)]
pub(crate) struct Needed {
    /// The needed pages. An unmapped file is mapped first.
    pages: Range<u64>,
    /// The end of the pages that are worth reading with them.
    readahead: u64,
}

impl Needed {
    fn pages(pages: Range<u64>) -> Self {
        let readahead = pages.end;
        Self { pages, readahead }
    }

    /// How often the request is made with the pages unlocked.
    pub(super) fn tries(&self) -> u64 {
        self.pages.end - self.pages.start + TRIES
    }
}

/// A flight that ends at the latest when this is dropped.
pub(super) struct Leading(pub(super) Arc<Flight>);

impl Drop for Leading {
    fn drop(&mut self) {
        self.0.end(Ok(()));
    }
}

/// Locks the pages of a file once `missing` returns `None`. It is called under the lock, and
/// may be called more than once: the pages are unlocked while the store is asked for what it
/// found.
///
/// # Errors
/// Those of `missing` and of the store; what was loaded before stays.
#[inline]
pub(super) fn lock_with<'p>(
    core: &Core,
    inode: &Inode,
    body: &'p Pages,
    mut missing: impl FnMut(&mut PagesLock<'p>) -> Result<Option<Needed>>,
) -> Result<PagesLock<'p>> {
    let mut pages = body.lock();
    let mut tries = 0;
    while let Some(needed) = missing(&mut pages)? {
        pages = populate_pages(core, inode, body, pages, needed, &mut tries)?;
    }
    Ok(pages)
}

/// Locks the pages of a file that is mapped.
///
/// # Errors
/// Those of the store; `EUCLEAN` when its map is invalid.
#[inline]
pub(super) fn lock_mapped<'p>(
    core: &Core,
    inode: &Inode,
    body: &'p Pages,
) -> Result<PagesLock<'p>> {
    lock_with(core, inode, body, |_| Ok(map_missing(inode)))
}

/// The map of a file, if it is missing.
#[inline]
pub(super) fn map_missing(inode: &Inode) -> Option<Needed> {
    (!inode.is_mapped()).then(|| Needed::pages(0..0))
}

/// The map, or the absent pages of this range.
#[inline]
pub(super) fn missing_pages(
    inode: &Inode,
    pages: &PagesLock<'_>,
    bytes: Range<u64>,
) -> Option<Needed> {
    if inode.is_complete() {
        return None;
    }
    let within = bytes.start / PAGE..bytes.end.div_ceil(PAGE);
    let is_missing = !inode.is_mapped() || pages.next_unloaded(within.clone()).is_some();
    is_missing.then(|| Needed::pages(within))
}

/// Like [`missing_pages`], for a reader of this range: with read-ahead if it seems to
/// be sequential.
pub(super) fn missing_to_read(
    inode: &Inode,
    pages: &PagesLock<'_>,
    bytes: Range<u64>,
) -> Option<Needed> {
    let end = bytes.end.min(inode.size());
    let mut needed = missing_pages(inode, pages, bytes.start..end.max(bytes.start))?;
    let first = needed.pages.start;
    let readahead = match first {
        0 => READAHEAD_FIRST,
        _ => pages.resident_before(first, READAHEAD_MAX),
    };
    needed.readahead = needed.pages.end.saturating_add(readahead);
    Some(needed)
}

/// The map, or an absent page that is only partly overwritten by consecutive buffers of these
/// lengths from `offset` on.
#[inline]
pub(super) fn missing_edges(
    inode: &Inode,
    pages: &PagesLock<'_>,
    offset: u64,
    lens: impl Iterator<Item = usize>,
) -> Option<Needed> {
    if inode.is_complete() {
        return None;
    }
    if !inode.is_mapped() {
        return map_missing(inode);
    }
    let mut edge = offset;
    std::iter::once(0).chain(lens).find_map(|len| {
        edge = edge.saturating_add(len as u64);
        match edge.is_multiple_of(PAGE) {
            true => None,
            false => missing_pages(inode, pages, edge..edge + 1),
        }
    })
}

/// Can these bytes be written without loading anything? A write bypasses memory if it covers
/// whole sectors of one absent page. The page stays absent: the store merges both for a reader
/// of the page.
///
/// Otherwise small random writes to a large file would read each page first, and evict another
/// one for it. A page that is being read is waited for instead: its readers would have to start
/// again.
pub(super) fn goes_past(inode: &Inode, pages: &PagesLock<'_>, bytes: Range<u64>) -> bool {
    if !inode.is_mapped() || inode.is_complete() {
        return false;
    }
    let page = bytes.start / PAGE;
    let sectors = bytes.start.is_multiple_of(SECTOR) && bytes.end.is_multiple_of(SECTOR);
    let part = bytes.end - bytes.start < PAGE && bytes.end <= (page + 1) * PAGE;
    let size = inode.size();
    if !sectors || !part || bytes.end > size || size <= WHOLE {
        return false;
    }
    pages.next_unloaded(page..page + 1).is_some() && !pages.is_in_flight(page)
}

/// Loads a part of what is needed, or waits for another thread that does. The file may have
/// changed when the pages are locked again. `tries`: how often the caller came here before.
///
/// # Errors
/// Those of the store, also those of another thread's request for the same pages; `EUCLEAN`
/// when its map is invalid; `EIO` once the file system was revoked.
#[cold]
#[inline(never)]
pub(super) fn populate_pages<'p>(
    core: &Core,
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
        core.alive()?;
    }
    *tries += 1;
    if inode.is_mapped() {
        fill_pages(core, inode, body, pages, needed, hold)
    } else {
        load_map(core, inode, body, pages, hold)
    }
}

/// Loads all that is needed without unlocking the pages. It is the last resort of a caller that
/// needs two files at a time, or of a reader of a file that others change all the time.
///
/// # Errors
/// Those of [`populate_pages`].
pub(super) fn fill_locked<'p>(
    core: &Core,
    inode: &Inode,
    body: &'p Pages,
    mut pages: PagesLock<'p>,
    bytes: Range<u64>,
) -> Result<PagesLock<'p>> {
    while let Some(needed) = missing_pages(inode, &pages, bytes.clone()) {
        pages = populate_pages(core, inode, body, pages, needed, &mut { u64::MAX - 1 })?;
    }
    Ok(pages)
}

fn fill_pages<'p>(
    core: &Core,
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
            Some(Missing::InFlight(..)) => pages.next_unloaded(needed.pages.clone()),
            Some(Missing::Unloaded(run)) => Some(run),
        }
        .map_or(needed.pages.start, |run| run.start);
        let run = run_from(inode, &pages, start..needed.readahead, hold)?;
        let is_prefetch = needed.pages.end < run.end;
        let (locked, brought) = fill_run(core, inode, body, pages, run, hold, is_prefetch);
        pages = locked;
        match brought {
            // Perhaps only the read-ahead failed.
            Err(_) if is_prefetch => needed.readahead = needed.pages.end,
            brought => return brought.map(|()| pages),
        }
    }
}

/// The first of these pages, which is absent, and those behind it that are read with it.
fn run_from(
    inode: &Inode,
    pages: &PagesLock<'_>,
    within: Range<u64>,
    hold: Hold,
) -> Result<Range<u64>> {
    let start = within.start;
    let size = inode.size().div_ceil(PAGE);
    let most = (start + BYTES_MAX / PAGE).min(size).min(within.end);
    if start >= most {
        // There is no such page; the loop would not end.
        return Err(Errno::EUCLEAN);
    }
    let run = match pages.next_missing(start..most) {
        Some(Missing::Unloaded(run)) if hold == Hold::Free => Some(run),
        _ => pages.next_unloaded(start..most),
    };
    run.ok_or(Errno::EUCLEAN)
}

/// Reads absent pages that are not in flight, and publishes those that are still absent
/// afterwards. `is_prefetch`: on an error, threads that wait for these pages read them again.
fn fill_run<'p>(
    core: &Core,
    inode: &Inode,
    body: &'p Pages,
    mut pages: PagesLock<'p>,
    run: Range<u64>,
    hold: Hold,
    is_prefetch: bool,
) -> (PagesLock<'p>, Result<()>) {
    let start = run.start * PAGE;
    let mut buf = vec![0; ((run.end * PAGE).min(inode.size()) - start) as usize];
    let _held = core.cache.hold(buf.len() as u64);
    if hold == Hold::Locked {
        let read = core.store.read_data(inode.ino(), start, &mut buf);
        let published = read.and_then(|()| {
            put_in(
                core,
                inode,
                &mut pages,
                start,
                &buf,
                std::slice::from_ref(&run),
            )
        });
        return (pages, published);
    }
    let leading = Leading(pages.depart(run.clone()));
    drop(pages);
    let read = core.store.read_data(inode.ino(), start, &mut buf);
    let mut pages = body.lock();
    let left = pages.land(&leading.0);
    let done = match read {
        Ok(()) => put_in(core, inode, &mut pages, start, &buf, &left),
        // The file changed meanwhile, which may be the reason.
        Err(_) if leading.0.is_cut() => Ok(()),
        Err(error) => Err(error),
    };
    if !is_prefetch {
        leading.0.end(done);
    }
    (pages, done)
}

/// Publishes bytes that were read, from `start` on, as the content of these absent pages.
fn put_in(
    core: &Core,
    inode: &Inode,
    pages: &mut PagesLock<'_>,
    start: u64,
    buf: &[u8],
    runs: &[Range<u64>],
) -> Result<()> {
    let end = start + buf.len() as u64;
    let mut refaulted = false;
    pages.set_arrival(core.reclaim.epochs.epoch(), Arrival::Prefetched);
    for run in runs {
        let (from, to) = (run.start * PAGE, (run.end * PAGE).min(end));
        let bytes = &buf[(from - start) as usize..(to - start) as usize];
        pages.populate(from, bytes, loaded_account(core))?;
        refaulted |= recall(core, inode.ino(), pages, run.clone());
    }
    if refaulted {
        core.reclaim.content_ghosts.refaults.add(1);
    }
    if !runs.is_empty() {
        if pages.unloaded() == 0 {
            inode.completed();
        }
        pages.has_size(inode.size());
    }
    Ok(())
}

/// Marks those of these pages that were evicted too early as refaults. Were there any?
fn recall(core: &Core, ino: Ino, pages: &mut PagesLock<'_>, came: Range<u64>) -> bool {
    let (ghosts, there) = (&core.reclaim.content_ghosts, core.cache.pages());
    let mut any = false;
    for page in came {
        if ghosts.recall(page_key(ino, page), there) {
            pages.mark_used(page);
            any = true;
        }
    }
    any
}
