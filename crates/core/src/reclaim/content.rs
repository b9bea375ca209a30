//! Pages of files that are forgotten.
//!
//! A file without holes that is small goes as a whole, and nothing is kept of it; of any other it is
//! kept where it has data. Content may take what inodes and names leave of the limit, and its part of it at least
//! (see [`balance`](super::balance)).

use std::cell::Cell;
use std::ops::Range;

use holdfast_cache::reclaim::{Count, Load, Request, Scan, Shrinker};
use holdfast_cache::{PAGE_SIZE, PagesLock, Set};
use holdfast_sync::epoch;
use parking_lot::Mutex;

use super::passed;
use crate::file_system::Core;
use crate::inode::{Inode, Look, Numbered as _, Part, WHOLE};
use crate::inodes::{InodeWalk, Take, Visit};
use crate::node::Node;
use crate::types::Ino;

/// Pages forgotten in a row, and before it is asked again whether it is enough: a group of them.
const RUN: u64 = 64;
/// Bytes between two looks, at most.
const STEP_MAX: u64 = 1 << 20;
/// Bytes that one look frees beyond what is too much.
const SLACK_MAX: u64 = 4 << 20;

/// What goes, round by round; the first may be the rest of one: small files, and pages of large ones; of files in part in memory
/// without marks in any.
const SETS: [Option<Set>; 5] = [
    Some(Set::Probation),
    Some(Set::Probation),
    Some(Set::Main),
    Some(Set::Main),
    None,
];

/// By what a page that went is known: that of another file may have the same, rarely.
pub(crate) fn page_key(ino: Ino, page: u64) -> u64 {
    ino.0.rotate_left(u64::BITS / 2) ^ !page
}

/// Frees pages.
#[derive(Debug, Default)]
pub(crate) struct Content {
    hand: Mutex<Hand>,
}

/// Where the hand stands.
#[derive(Debug, Default)]
struct Hand {
    walk: InodeWalk,
    /// The file it is at, and the page in there.
    at: Option<(Ino, u64)>,
    /// Rounds of this reclaim that are over.
    rounds: usize,
}

impl Shrinker for Content {
    type Owner = Core;

    fn name(&self) -> &'static str {
        "content"
    }

    fn batch(&self) -> u64 {
        RUN
    }

    /// An inode that goes with its last use here may have an end to be told of.
    fn needs_store(&self) -> bool {
        true
    }

    fn load(&self, core: &Core) -> Load {
        let limit = core.content_max();
        let slack = (limit / 16).min(SLACK_MAX);
        Load {
            held: core.cache.bytes(),
            // Before the limit is reached: each thread that adds pages goes on for a step before it looks.
            wake: limit - slack,
            stop: limit - slack - slack,
            wait: limit.saturating_add(limit / 32),
        }
    }

    fn count(&self, core: &Core) -> Count {
        // What did not reach the store after it failed is here alone.
        match core.cache.pages() {
            0 => Count::Empty,
            _ if core.failure.is_latched() => Count::Empty,
            pages => Count::Objects(pages),
        }
    }

    fn scan(&self, core: &Core, request: Request) -> Scan {
        let mut hand = self.hand.lock();
        if request.first {
            hand.rounds = 0;
        }
        let mut left = request.objects;
        // Each set in turn, and then all: what is left then nobody can forget.
        while left > 0 {
            let Some(&set) = SETS.get(hand.rounds) else {
                break;
            };
            let round = core.turn(&mut hand, &mut left, set);
            hand.rounds += usize::from(round);
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

impl Core {
    /// What [`relieve_since`](Self::relieve_since) needs from before pages are added.
    #[inline]
    pub(crate) fn cached(&self) -> i64 {
        match self.pinned {
            true => 0,
            false => self.cache.own_bytes(),
        }
    }

    /// Frees memory, if this thread has added pages since [`cached`](Self::cached) and there are too
    /// many. With nothing locked.
    #[inline]
    pub(crate) fn relieve_since(&self, before: i64) {
        if self.pinned {
            return;
        }
        let step = (self.reclaim.limit() / 64).min(STEP_MAX);
        let came = passed(before, self.cache.own_bytes(), step);
        if came > 0 {
            let pages = came.div_ceil(PAGE_SIZE as u64);
            self.reclaim.epochs.pass(pages, self.cache.pages());
            self.reclaim.memory.look();
            self.shrink();
        }
    }

    #[cold]
    fn shrink(&self) {
        if let Some(shrinkers) = self.reclaim.shrinkers.get() {
            self.weigh_sides();
            // What content takes of its part inodes and names have to leave first.
            shrinkers.metadata.shrink(self);
            shrinkers.content.shrink(self);
        }
    }

    /// Goes on until so many pages went or the round is over, and says whether it is.
    fn turn(&self, hand: &mut Hand, left: &mut u64, set: Option<Set>) -> bool {
        if let Some((ino, page)) = hand.at.take()
            && let Some(inode) = self.index.get(ino.0)
        {
            let node = Node::new(inode);
            hand.at = self.forget_from(node.inode(), page, left, set);
            self.put(node);
            if *left == 0 {
                return false;
            }
        }
        let Hand { walk, at, .. } = hand;
        // No more files are taken into use than have as many pages as are to go, if they are all there and unused.
        let room = Cell::new(*left);
        let is_to_go = |inode: &Inode| {
            let idle = |set| inode.look(Part::Content, set, &self.reclaim.epochs) == Look::Idle;
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
        let walked = self.walk_inodes_if(walk, is_to_go, &mut |node| {
            *at = self.forget_from(node.inode(), 0, left, set);
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

    /// Forgets pages of a file from this one on, as many as are `left`, and says where it stopped, if not at the end. `set`: the
    /// one that it was found in.
    fn forget_from(
        &self,
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
            pages.clear(self.loaded());
            inode.content_went();
            if set == Some(Set::Probation) {
                let most = self.reclaim.limit() / PAGE_SIZE as u64;
                self.reclaim.content_ghosts.note(inode.key(), whole, most);
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
                Some(set) => self.forget_unused(inode, &mut pages, next..whole, *left, set),
                None => {
                    let end = (next + RUN.min(*left)).min(whole);
                    pages.begin();
                    inode.partial();
                    (pages.forget(next..end, self.loaded()), end)
                }
            };
            *left = left.saturating_sub(gone);
        }
        pages.has_size(size);
        stopped
    }

    /// Forgets those of some pages that were not used again, in the first group of them. Returns how many went, and where the group ends.
    fn forget_unused(
        &self,
        inode: &Inode,
        pages: &mut PagesLock<'_>,
        within: Range<u64>,
        most: u64,
        set: Set,
    ) -> (u64, u64) {
        let end = (within.start / RUN + 1) * RUN;
        let unused = pages.look(within, set, self.reclaim.epochs.epoch(), most);
        if unused.count() > 0 {
            pages.begin();
            inode.partial();
            pages.forget_unused(&unused, self.loaded());
        }
        if set == Set::Probation {
            let most = self.reclaim.limit() / PAGE_SIZE as u64;
            let ghosts = &self.reclaim.content_ghosts;
            unused
                .pages()
                .for_each(|page| ghosts.note(page_key(inode.ino(), page), 1, most));
        }
        (unused.count(), end)
    }

    /// Forgets the pages of all files that this walk meets.
    pub(crate) fn forget_all(&self, mut walk: InodeWalk) {
        if self.pinned || self.failure.is_latched() {
            return;
        }
        let has_pages =
            |inode: &Inode| Take::from(inode.regular().is_ok_and(|pages| !pages.is_empty()));
        let walked = self.walk_inodes_if(&mut walk, has_pages, &mut |node| {
            self.forget_from(node.inode(), 0, &mut { u64::MAX }, None);
            Ok(Visit::Continue)
        });
        debug_assert!(walked.is_ok(), "nobody failed");
    }
}
