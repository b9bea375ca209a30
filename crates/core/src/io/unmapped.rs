//! Questions about a file that is not mapped.

use crate::core::Core;
use crate::inode::{Inode, Numbered as _};
use crate::io::pages::TRIES;
use crate::io::populate::lock_mapped;
use crate::types::Result;
use holdfast_cache::{Pages, PagesLock};

/// Makes sure that the block count of a file is known, before its attributes are returned. If
/// the record that it was loaded with does not contain it, the store is asked.
///
/// # Errors
/// Those of the store; attributes then derive the block count from the size.
#[inline]
pub(crate) fn load_block_count(core: &Core, inode: &Inode) -> Result<()> {
    match inode.has_known_space() {
        true => Ok(()),
        // A host that does not allow reading a file still returns its attributes.
        false if core.coherence.is_some() => load_block_count_now(core, inode).or(Ok(())),
        false => load_block_count_now(core, inode),
    }
}

#[cold]
fn load_block_count_now(core: &Core, inode: &Inode) -> Result<()> {
    let body = inode.regular()?;
    let is_full = || {
        // One request suffices for nearly every file.
        let run = core.store.next_space(inode.ino(), 0)?;
        Ok(run.is_some_and(|run| {
            run.start == 0
                && run.written
                && run.len >= inode.size()
                && !has_space_behind(core, inode, run.len)
        }))
    };
    match ask_unlocked(core, inode, body, || !inode.has_known_space(), is_full) {
        None => Ok(()),
        Some((_pages, Ok(true))) => {
            inode.full();
            Ok(())
        }
        Some((_, Err(error))) => Err(error),
        Some((pages, Ok(false))) => {
            drop(pages);
            lock_mapped(core, inode, body).map(drop)
        }
    }
}

/// Has the file space from this byte on, or may it have some because the store cannot say?
fn has_space_behind(core: &Core, inode: &Inode, end: u64) -> bool {
    let behind = || core.store.next_space(inode.ino(), end);
    inode.may_have_extra_attrs() && behind().map_or(true, |run| run.is_some())
}

/// Asks the store about a file that is not mapped, with the pages unlocked, and locks them
/// again. The file did not change during the request. `None`: nothing is `wanted` any more, as
/// after the file was mapped.
pub(super) fn ask_unlocked<'p, R>(
    core: &Core,
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
        let noted = core.unmapped.begin_ask(inode.ino());
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
