//! The map of a file: its ranges with space, and their size, without its content.

use std::ops::Range;

use holdfast_cache::{MAX_SIZE, Pages, PagesLock};

use super::populate::{Hold, PAGE, TRIES};
use crate::core::Core;
use crate::inode::{Inode, Numbered as _, WHOLE};
use crate::types::{Errno, Ino, Result};

/// The ranges of a file with space, as its store returned them.
#[derive(Default)]
struct Layout {
    /// Ranges with space, and whether they were written.
    runs: Vec<(Range<u64>, bool)>,
    /// For a small file, the written content, range by range, up to the file's end.
    data: Vec<u8>,
}

impl Core {
    /// Loads the map of a file, and its content if the file is small. When the pages are locked
    /// again, the file may have changed or may still be unmapped: the caller looks again.
    ///
    /// # Errors
    /// Those of the store; `EUCLEAN` when its map is invalid.
    pub(super) fn load_map<'p>(
        &self,
        inode: &Inode,
        body: &'p Pages,
        mut pages: PagesLock<'p>,
        hold: Hold,
    ) -> Result<PagesLock<'p>> {
        let (ino, size) = (inode.ino(), inode.size());
        if hold == Hold::Locked {
            let layout = self.lay_out(ino, size)?;
            self.install(inode, &mut pages, size, layout)?;
            return Ok(pages);
        }
        let noted = match self.unmapped.begin_map(ino) {
            Ok(noted) => noted,
            Err((flight, cuts)) => {
                drop(pages);
                flight.wait(cuts)?;
                return Ok(body.lock());
            }
        };
        drop(pages);
        let layout = self.lay_out(ino, size);
        let mut pages = body.lock();
        if noted.flight.is_cut() || inode.size() != size {
            return Ok(pages);
        }
        let installed = layout.and_then(|layout| self.install(inode, &mut pages, size, layout));
        noted.end(installed);
        installed.map(|()| pages)
    }

    /// Applies the map to all of a file.
    fn install(
        &self,
        inode: &Inode,
        pages: &mut PagesLock<'_>,
        size: u64,
        layout: Layout,
    ) -> Result<()> {
        self.unmapped.cut(inode.ino());
        if let Err(error) = self.take_in_layout(pages, size, layout) {
            pages.clear(self.loaded());
            return Err(error);
        }
        if pages.unloaded() > 0 {
            inode.partial();
        } else {
            inode.completed();
        }
        match self.coherence.is_some() {
            // The map need not show all space: some may be preallocated, or compressed.
            true => inode.keep_reported_space(),
            false => inode.takes_its_pages(),
        }
        pages.has_size(size);
        if size <= WHOLE {
            let (ghosts, there) = (&self.reclaim.content_ghosts, self.cache.pages());
            let refaulted = ghosts.take(inode.ino().0, there);
            inode.mark_content_loaded(&self.reclaim.epochs, refaulted);
        }
        Ok(())
    }

    fn take_in_layout(&self, pages: &mut PagesLock<'_>, size: u64, layout: Layout) -> Result<()> {
        let mut data = &layout.data[..];
        for (run, written) in layout.runs {
            let end = run.end.min(size);
            if !written {
                pages.allocate(run.start, run.end - run.start, self.loaded())?;
            } else if end <= run.start {
                // Beyond the end, never read.
            } else if size > WHOLE {
                let touched = run.start / PAGE..end.div_ceil(PAGE);
                pages.mark_unloaded(touched, self.loaded())?;
            } else {
                let (bytes, later) = data.split_at((end - run.start) as usize);
                pages.write(run.start, bytes, self.loaded())?;
                data = later;
            }
        }
        Ok(())
    }

    /// Reads the map of a file from the store, and the content of a small file.
    fn lay_out(&self, ino: Ino, size: u64) -> Result<Layout> {
        let mut layout = Layout::default();
        self.each_run(ino, |run, written| {
            let end = run.end.min(size);
            if written && run.start < end && size <= WHOLE {
                let before = layout.data.len();
                layout.data.resize(before + (end - run.start) as usize, 0);
                self.store
                    .read_data(ino, run.start, &mut layout.data[before..])?;
            }
            layout.runs.push((run, written));
            Ok(())
        })?;
        Ok(layout)
    }

    /// Calls `visit` for each range of a file with space, with whether it was written.
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
            // The end of the last page exceeds the largest offset.
            let end = run.start.saturating_add(run.len).min(MAX_SIZE);
            visit(run.start..end, run.written)?;
            offset = end;
        }
        Ok(())
    }

    /// Pages of space that a file takes in the store.
    ///
    /// # Errors
    /// Those of the store; `EUCLEAN` when its map is invalid.
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

    /// Makes sure that the block count of a file is known, before its attributes are returned. If
    /// the record that it was loaded with does not contain it, the store is asked.
    ///
    /// # Errors
    /// Those of the store; attributes then derive the block count from the size.
    #[inline]
    pub(crate) fn load_block_count(&self, inode: &Inode) -> Result<()> {
        match inode.has_known_space() {
            true => Ok(()),
            // A host that does not allow reading a file still returns its attributes.
            false if self.coherence.is_some() => self.load_block_count_now(inode).or(Ok(())),
            false => self.load_block_count_now(inode),
        }
    }

    #[cold]
    fn load_block_count_now(&self, inode: &Inode) -> Result<()> {
        let body = inode.regular()?;
        let is_full = || {
            // One request suffices for nearly every file.
            let run = self.store.next_space(inode.ino(), 0)?;
            Ok(run.is_some_and(|run| {
                run.start == 0
                    && run.written
                    && run.len >= inode.size()
                    && !self.has_space_behind(inode, run.len)
            }))
        };
        match self.ask(inode, body, || !inode.has_known_space(), is_full) {
            None => Ok(()),
            Some((_pages, Ok(true))) => {
                inode.full();
                Ok(())
            }
            Some((_, Err(error))) => Err(error),
            Some((pages, Ok(false))) => {
                drop(pages);
                self.lock_mapped(inode, body).map(drop)
            }
        }
    }

    /// Has the file space from this byte on, or may it have some because the store cannot say?
    fn has_space_behind(&self, inode: &Inode, end: u64) -> bool {
        let behind = || self.store.next_space(inode.ino(), end);
        inode.may_have_extra_attrs() && behind().map_or(true, |run| run.is_some())
    }

    /// Asks the store about a file that is not mapped, with the pages unlocked, and locks them
    /// again. The file did not change during the request. `None`: nothing is `wanted` any more, as
    /// after the file was mapped.
    pub(super) fn ask<'p, R>(
        &self,
        inode: &Inode,
        body: &'p Pages,
        wanted: impl Fn() -> bool,
        mut ask: impl FnMut() -> Result<R>,
    ) -> Option<(PagesLock<'p>, Result<R>)> {
        for _ in 0..TRIES {
            let pages = body.lock();
            if !wanted() {
                return None;
            }
            let noted = self.unmapped.begin_ask(inode.ino());
            drop(pages);
            let answer = ask();
            let pages = body.lock();
            if !noted.flight.is_cut() {
                return Some((pages, answer));
            }
        }
        // Others change the file all the time.
        let pages = body.lock();
        wanted().then(|| (pages, ask()))
    }
}
