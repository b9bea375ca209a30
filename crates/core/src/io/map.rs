//! What is known of a file without its bytes: where it takes space, and how much.

use std::ops::Range;

use holdfast_cache::{MAX_SIZE, Pages, PagesLock};

use super::populate::{Hold, PAGE, TRIES};
use crate::file_system::Core;
use crate::inode::{Inode, Numbered as _, WHOLE};
use crate::types::{Errno, Ino, Result};

/// Where a file takes space, as its store answered.
#[derive(Default)]
struct Layout {
    /// Bytes that take space, and whether they were written.
    runs: Vec<(Range<u64>, bool)>,
    /// Of a small file: what was written, run by run, up to the file's end.
    data: Vec<u8>,
}

impl Core {
    /// Has the map of a file brought, and its bytes if they are few. The file may have changed when
    /// the pages are locked again, or may not be mapped: the caller looks again.
    ///
    /// # Errors
    /// What the store answers; `EUCLEAN` when its map makes no sense.
    pub(super) fn bring_map<'p>(
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

    /// Says of all of a file where it takes space.
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

    fn take_in_layout(&self, pages: &mut PagesLock<'_>, size: u64, layout: Layout) -> Result<()> {
        let mut data = &layout.data[..];
        for (run, written) in layout.runs {
            let end = run.end.min(size);
            if !written {
                pages.allocate(run.start, run.end - run.start, self.loaded())?;
            } else if end <= run.start {
                // Nobody reads it.
            } else if size > WHOLE {
                let touched = run.start / PAGE..end.div_ceil(PAGE);
                pages.put_aside(touched, self.loaded())?;
            } else {
                let (bytes, later) = data.split_at((end - run.start) as usize);
                pages.write(run.start, bytes, self.loaded())?;
                data = later;
            }
        }
        Ok(())
    }

    /// Asks the store where a file takes space, and for what it has, if that is little.
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

    /// Makes sure that it is known how much space a file takes, before its attributes are told.
    /// Where the record that it was loaded with did not say it, the store is asked.
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
        let body = inode.regular()?;
        let is_full = || {
            // Nearly every file, with one question.
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

    /// Has it space from this byte on, or may it have, if that cannot be told?
    fn has_space_behind(&self, inode: &Inode, end: u64) -> bool {
        let behind = || self.store.next_space(inode.ino(), end);
        inode.may_have_extra_attrs() && behind().map_or(true, |run| run.is_some())
    }

    /// Asks the store about a file that is not mapped, with the pages free, and locks them then:
    /// the answer is that of a moment. `None`: nothing is `wanted` any more, as it is once the file
    /// is mapped.
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
        // Others change it all the time.
        let pages = body.lock();
        wanted().then(|| (pages, ask()))
    }
}
