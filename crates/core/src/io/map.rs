//! The map of a file: its ranges with space, and their size, without its content.

use std::ops::Range;

use holdfast_cache::{MAX_SIZE, Pages, PagesLock};

use crate::core::Core;
use crate::inode::{Inode, Numbered as _, WHOLE};
use crate::io::pages::{Hold, PAGE, loaded_account};
use crate::types::{Errno, Ino, Result};

/// The ranges of a file with space, as its store returned them.
#[derive(Default)]
struct Layout {
    /// Ranges with space, and whether they were written.
    runs: Vec<(Range<u64>, bool)>,
    /// For a small file, the written content, range by range, up to the file's end.
    data: Vec<u8>,
}

/// Loads the map of a file, and its content if the file is small. When the pages are locked
/// again, the file may have changed or may still be unmapped: the caller looks again.
///
/// # Errors
/// Those of the store; `EUCLEAN` when its map is invalid.
pub(super) fn load_map<'p>(
    core: &Core,
    inode: &Inode,
    body: &'p Pages,
    mut pages: PagesLock<'p>,
    hold: Hold,
) -> Result<PagesLock<'p>> {
    let (ino, size) = (inode.ino(), inode.size());
    if hold == Hold::Locked {
        let layout = lay_out(core, ino, size)?;
        install_map(core, inode, &mut pages, size, layout)?;
        return Ok(pages);
    }
    let noted = match core.unmapped.begin_map(ino) {
        Ok(noted) => noted,
        Err((flight, cuts)) => {
            drop(pages);
            flight.wait(cuts)?;
            return Ok(body.lock());
        }
    };
    drop(pages);
    let layout = lay_out(core, ino, size);
    let mut pages = body.lock();
    if noted.flight.is_cut() || inode.size() != size {
        return Ok(pages);
    }
    let installed = layout.and_then(|layout| install_map(core, inode, &mut pages, size, layout));
    noted.end(installed);
    installed.map(|()| pages)
}

/// Applies the map to all of a file.
fn install_map(
    core: &Core,
    inode: &Inode,
    pages: &mut PagesLock<'_>,
    size: u64,
    layout: Layout,
) -> Result<()> {
    core.unmapped.cut(inode.ino());
    if let Err(error) = take_in_layout(core, pages, size, layout) {
        pages.clear(loaded_account(core));
        return Err(error);
    }
    if pages.unloaded() > 0 {
        inode.partial();
    } else {
        inode.completed();
    }
    match core.coherence.is_some() {
        // The map need not show all space: some may be preallocated, or compressed.
        true => inode.keep_reported_space(),
        false => inode.takes_its_pages(),
    }
    pages.has_size(size);
    if size <= WHOLE {
        let (ghosts, there) = (&core.reclaim.content_ghosts, core.cache.pages());
        let refaulted = ghosts.take(inode.ino().0, there);
        inode.mark_content_loaded(&core.reclaim.epochs, refaulted);
    }
    Ok(())
}

fn take_in_layout(core: &Core, pages: &mut PagesLock<'_>, size: u64, layout: Layout) -> Result<()> {
    let mut data = &layout.data[..];
    for (run, written) in layout.runs {
        let end = run.end.min(size);
        if !written {
            pages.allocate(run.start, run.end - run.start, loaded_account(core))?;
        } else if end <= run.start {
            // Beyond the end, never read.
        } else if size > WHOLE {
            let touched = run.start / PAGE..end.div_ceil(PAGE);
            pages.mark_unloaded(touched, loaded_account(core))?;
        } else {
            let (bytes, later) = data.split_at((end - run.start) as usize);
            pages.write(run.start, bytes, loaded_account(core))?;
            data = later;
        }
    }
    Ok(())
}

/// Reads the map of a file from the store, and the content of a small file.
fn lay_out(core: &Core, ino: Ino, size: u64) -> Result<Layout> {
    let mut layout = Layout::default();
    each_run(core, ino, |run, written| {
        let end = run.end.min(size);
        if written && run.start < end && size <= WHOLE {
            let before = layout.data.len();
            layout.data.resize(before + (end - run.start) as usize, 0);
            core.store
                .read_data(ino, run.start, &mut layout.data[before..])?;
        }
        layout.runs.push((run, written));
        Ok(())
    })?;
    Ok(layout)
}

/// Calls `visit` for each range of a file with space, with whether it was written.
fn each_run(
    core: &Core,
    ino: Ino,
    mut visit: impl FnMut(Range<u64>, bool) -> Result<()>,
) -> Result<()> {
    let mut offset = 0;
    while offset < MAX_SIZE
        && let Some(run) = core.store.next_space(ino, offset)?
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
pub(crate) fn stored_pages(core: &Core, ino: Ino) -> Result<u64> {
    let (mut counted, mut pages) = (0, 0);
    each_run(core, ino, |run, _| {
        // Two runs can share a page.
        let last = run.end.div_ceil(PAGE);
        pages += last.saturating_sub(counted.max(run.start / PAGE));
        counted = last;
        Ok(())
    })?;
    Ok(pages)
}
