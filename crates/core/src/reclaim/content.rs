//! Pages of files that are forgotten.
//!
//! A file without holes that is small goes as a whole, and nothing is kept of it; of any other it is
//! kept where it has data. Content may take what inodes and names leave of the limit, and its part of it at least
//! (see [`balance`](super::balance)).

use std::cell::Cell;

use holdfast_cache::PAGE_SIZE;
use holdfast_cache::reclaim::{Count, Load, Request, Scan, Shrinker};
use holdfast_sync::epoch;
use parking_lot::Mutex;

use super::passed;
use crate::file_system::Core;
use crate::inode::{Inode, Look, Numbered as _, Part, Set, WHOLE};
use crate::inodes::{InodeWalk, Visit};
use crate::node::Node;
use crate::types::Ino;

/// Pages forgotten in a row, and before it is asked again whether it is enough.
const RUN: u64 = 64;
/// Inodes that a walk may take into use before it visits one.
const LEAF: u64 = 64;
/// Bytes between two looks, at most.
const STEP_MAX: u64 = 1 << 20;
/// Bytes that one look frees beyond what is too much.
const SLACK_MAX: u64 = 4 << 20;

/// Whose pages go, round by round; the first may be the rest of one. A large file is not used as a whole: its pages go in any.
const SETS: [Option<Set>; 5] = [
    Some(Set::Probation),
    Some(Set::Probation),
    Some(Set::Main),
    Some(Set::Main),
    None,
];

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

/// Which files a walk takes into use: no more of a leaf of the index than have as many pages as are to go, if they are all there.
struct Taking {
    /// Pages that are to go.
    left: Cell<u64>,
    /// Those that are not to be had of the files taken so far.
    room: Cell<u64>,
    leaf: Cell<Option<u64>>,
}

impl Taking {
    fn new(left: u64) -> Self {
        Self {
            left: Cell::new(left),
            room: Cell::new(left),
            leaf: Cell::new(None),
        }
    }

    fn has_room(&self, inode: &Inode) -> bool {
        let leaf = Some(inode.ino().0 / LEAF);
        if self.leaf.replace(leaf) != leaf {
            self.room.set(self.left.get());
        }
        self.room.get() > 0
    }

    /// It is taken.
    fn count(&self, inode: &Inode) -> bool {
        let pages = inode.size().div_ceil(PAGE_SIZE as u64).max(1);
        self.room.set(self.room.get().saturating_sub(pages));
        true
    }
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
            self.relieve();
        }
    }

    #[cold]
    fn relieve(&self) {
        if let Some(shrinkers) = self.reclaim.shrinkers.get() {
            self.weigh_sides();
            // What content takes of its part inodes and names have to leave first.
            shrinkers.metadata.relieve(self);
            shrinkers.content.relieve(self);
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
        let take = Taking::new(*left);
        let is_to_go = |inode: &Inode| {
            let idle = |set| inode.look(Part::Content, set, &self.reclaim.epochs) == Look::Idle;
            take.has_room(inode)
                && inode.regular().is_ok_and(|pages| !pages.is_empty())
                && (inode.size() > WHOLE || set.is_none_or(idle))
                && take.count(inode)
        };
        let walked = self.walk_inodes_if(walk, is_to_go, &mut |node| {
            *at = self.forget_from(node.inode(), 0, left, set);
            take.left.set(*left);
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
        pages.begin();
        if size <= WHOLE && (pages.frames(), pages.pages()) == (whole, whole) {
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
        inode.partial();
        let mut stopped = None;
        while let Some(next) = pages.next_present(page).filter(|next| *next < whole) {
            if *left == 0 {
                stopped = Some((inode.ino(), next));
                break;
            }
            page = (next + RUN.min(*left)).min(whole);
            let before = pages.frames();
            pages.forget(next..page, self.loaded());
            *left = left.saturating_sub(before.saturating_sub(pages.frames()));
        }
        pages.has_size(size);
        stopped
    }

    /// Forgets the pages of all files that this walk meets.
    pub(crate) fn forget_all(&self, mut walk: InodeWalk) {
        if self.pinned || self.failure.is_latched() {
            return;
        }
        let has_pages = |inode: &Inode| inode.regular().is_ok_and(|pages| !pages.is_empty());
        let walked = self.walk_inodes_if(&mut walk, has_pages, &mut |node| {
            self.forget_from(node.inode(), 0, &mut { u64::MAX }, None);
            Ok(Visit::Continue)
        });
        debug_assert!(walked.is_ok(), "nobody failed");
    }
}
