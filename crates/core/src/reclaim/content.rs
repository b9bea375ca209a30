//! Reclaim of pages of files.
//!
//! A small file without holes is evicted as a whole, and nothing about it is kept. For any other
//! file the map of its data is kept. Content may use what metadata leaves of the limit, and at
//! least its share (see [`balance`](super::balance)).

use crate::reclaim::ghosts::page_key;
use crate::reclaim::shrinkers::{Content, PageClock};
use std::cell::Cell;
use std::ops::Range;

use holdfast_cache::reclaim::{Count, Load, Request, Scan, Shrinker};
use holdfast_cache::{PAGE_SIZE, PagesLock, Set};
use holdfast_sync::epoch;

use crate::core::Core;
use crate::inode::{Inode, Numbered as _, Part, Scanned, WHOLE};
use crate::inodes::free::put_node;
use crate::inodes::walk::walk_inodes_if;
use crate::inodes::{InodeWalk, Take, Visit};
use crate::io::pages::loaded_account;
use crate::node::Node;
use crate::reclaim::state::passed;
use crate::reclaim::usage::{balance_sides, content_max};
use crate::types::Ino;

/// Pages that are forgotten between two checks: a group of them.
const RUN: u64 = 64;
/// The most bytes that are added between two checks.
const STEP_MAX: u64 = 1 << 20;
/// The most bytes that a pass frees below the limit.
const SLACK_MAX: u64 = 4 << 20;

/// The scan order: probation twice, main twice, then all files without regard to reference bits. A
/// set holds small files and pages of large ones. The first round may start in mid-walk. Partial
/// small files have no reference bits.
const SETS: [Option<Set>; 5] = [
    Some(Set::Probation),
    Some(Set::Probation),
    Some(Set::Main),
    Some(Set::Main),
    None,
];

impl Shrinker for Content {
    type Owner = Core;

    fn name(&self) -> &'static str {
        "content"
    }

    fn batch(&self) -> u64 {
        RUN
    }

    /// The last reference of an inode may be dropped here, and its eviction may write to the store.
    fn needs_store(&self) -> bool {
        true
    }

    fn load(&self, core: &Core) -> Load {
        let limit = content_max(core);
        let slack = (limit / 16).min(SLACK_MAX);
        Load {
            held: core.cache.bytes(),
            // Below the limit: each thread that adds pages adds up to a step before it checks.
            wake: limit - slack,
            stop: limit - slack - slack,
            wait: limit.saturating_add(limit / 32),
        }
    }

    fn count(&self, core: &Core) -> Count {
        // After a failure of the store, unwritten pages are only in memory.
        match core.cache.pages() {
            0 => Count::Empty,
            _ if core.failure.is_latched() => Count::Empty,
            pages => Count::Objects(pages),
        }
    }

    fn scan(&self, core: &Core, request: Request) -> Scan {
        let mut clock_hand = self.clock_hand.lock();
        if request.first {
            clock_hand.rounds = 0;
        }
        let mut left = request.objects;
        // Each set in turn, and then all: pages that are left then cannot be forgotten.
        while left > 0 {
            let Some(&set) = SETS.get(clock_hand.rounds) else {
                break;
            };
            let round = turn_clock(core, &mut clock_hand, &mut left, set);
            clock_hand.rounds += usize::from(round);
        }
        match request.objects - left {
            0 => Scan::Stop,
            gone => Scan::Freed(gone),
        }
    }

    fn finish(&self) {
        epoch::flush();
    }
}

/// The value that [`shrink_content_since`] needs from before pages
/// are added.
#[inline]
pub(crate) fn cached_pages(core: &Core) -> i64 {
    core.cache.own_bytes()
}

/// Frees memory, if this thread has added pages since [`cached_pages`] and there are
/// too many. The caller holds no lock.
#[inline]
pub(crate) fn shrink_content_since(core: &Core, before: i64) {
    // Without shrinkers nothing can be evicted.
    if core.reclaim.shrinkers.get().is_none() {
        return;
    }
    let step = (core.reclaim.limit() / 64).min(STEP_MAX);
    let came = passed(before, core.cache.own_bytes(), step);
    if came > 0 {
        let pages = came.div_ceil(PAGE_SIZE as u64);
        core.reclaim.epochs.pass(pages, core.cache.pages());
        core.reclaim.memory.look();
        shrink_content(core);
    }
}

#[cold]
fn shrink_content(core: &Core) {
    if let Some(shrinkers) = core.reclaim.shrinkers.get() {
        balance_sides(core);
        // Metadata above its share has to leave first.
        shrinkers.metadata.shrink(core);
        shrinkers.content.shrink(core);
    }
}

/// Continues until `left` pages were freed or the round is over; returns whether it is.
fn turn_clock(core: &Core, clock_hand: &mut PageClock, left: &mut u64, set: Option<Set>) -> bool {
    if let Some((ino, page)) = clock_hand.at.take()
        && let Some(inode) = core.index.get(ino.0)
    {
        let node = Node::new(inode);
        clock_hand.at = forget_from(core, node.inode(), page, left, set);
        put_node(core, node);
        if *left == 0 {
            return false;
        }
    }
    let PageClock { walk, at, .. } = clock_hand;
    // The walk references no more files than have `left` pages together, if all were in memory
    // and unused.
    let room = Cell::new(*left);
    let is_to_go = |inode: &Inode| {
        let idle = |set| inode.scan(Part::Content, set, &core.reclaim.epochs) == Scanned::Idle;
        let has_pages = inode.regular().is_ok_and(|pages| !pages.is_empty());
        if !has_pages || inode.size() <= WHOLE && !set.is_none_or(idle) {
            return Take::No;
        }
        let pages = inode.size().div_ceil(PAGE_SIZE as u64).max(1);
        room.set(room.get().saturating_sub(pages));
        match room.get() {
            0 => Take::Last,
            _ => Take::Yes,
        }
    };
    let walked = walk_inodes_if(core, walk, is_to_go, &mut |node| {
        *at = forget_from(core, node.inode(), 0, left, set);
        room.set(*left);
        let go_on = at.is_none() && *left > 0;
        Ok(if go_on { Visit::Continue } else { Visit::Stop })
    });
    debug_assert!(walked.is_ok(), "nobody failed");
    let round = walk.is_done();
    if round {
        *walk = InodeWalk::new();
    }
    round
}

/// Forgets pages of a file from `page` on, at most `left`; returns where it stopped, if not at
/// the end. `set`: the set in which the file was found.
fn forget_from(
    core: &Core,
    inode: &Inode,
    mut page: u64,
    left: &mut u64,
    set: Option<Set>,
) -> Option<(Ino, u64)> {
    let pages = inode.regular().ok()?;
    let mut pages = pages.lock();
    let size = inode.size();
    let whole = size.div_ceil(PAGE_SIZE as u64);
    if !inode.is_mapped() || pages.frames() == 0 {
        return None;
    }
    if size <= WHOLE && (pages.frames(), pages.pages()) == (whole, whole) {
        pages.begin();
        inode.unmapped();
        pages.clear(loaded_account(core));
        inode.clear_content_marks();
        if set == Some(Set::Probation) {
            let most = core.reclaim.limit() / PAGE_SIZE as u64;
            core.reclaim.content_ghosts.note(inode.key(), whole, most);
        }
        *left = left.saturating_sub(whole);
        return None;
    }
    let mut stopped = None;
    while let Some(next) = pages.next_present(page).filter(|next| *next < whole) {
        if *left == 0 {
            stopped = Some((inode.ino(), next));
            break;
        }
        let gone;
        // The pages of a small file have no marks.
        (gone, page) = match set.filter(|_| size > WHOLE) {
            Some(set) => forget_unused(core, inode, &mut pages, next..whole, *left, set),
            None => {
                let end = (next + RUN.min(*left)).min(whole);
                pages.begin();
                inode.partial();
                (pages.forget(next..end, loaded_account(core)), end)
            }
        };
        *left = left.saturating_sub(gone);
    }
    pages.has_size(size);
    stopped
}

/// Forgets the pages of this range, within its first group, that were not referenced again.
/// Returns their number, and the end of the group.
fn forget_unused(
    core: &Core,
    inode: &Inode,
    pages: &mut PagesLock<'_>,
    within: Range<u64>,
    most: u64,
    set: Set,
) -> (u64, u64) {
    let end = (within.start / RUN + 1) * RUN;
    let unused = pages.look(within, set, core.reclaim.epochs.epoch(), most);
    if unused.count() > 0 {
        pages.begin();
        inode.partial();
        pages.forget_unused(&unused, loaded_account(core));
    }
    if set == Set::Probation {
        let most = core.reclaim.limit() / PAGE_SIZE as u64;
        let ghosts = &core.reclaim.content_ghosts;
        unused
            .pages()
            .for_each(|page| ghosts.note(page_key(inode.ino(), page), 1, most));
    }
    (unused.count(), end)
}

/// Forgets the pages of all files that this walk visits.
pub(crate) fn forget_all(core: &Core, mut walk: InodeWalk) {
    if core.failure.is_latched() {
        return;
    }
    let has_pages =
        |inode: &Inode| Take::from(inode.regular().is_ok_and(|pages| !pages.is_empty()));
    let walked = walk_inodes_if(core, &mut walk, has_pages, &mut |node| {
        forget_from(core, node.inode(), 0, &mut { u64::MAX }, None);
        Ok(Visit::Continue)
    });
    debug_assert!(walked.is_ok(), "nobody failed");
}
