//! Pages of files that are forgotten.
//!
//! A file without holes that is small goes as a whole, and nothing is kept of it; of any other it is
//! kept where it has data. Content may take what inodes and names leave of the limit, which is half of
//! it at least.

use holdfast_cache::PAGE_SIZE;
use holdfast_sync::epoch;

use super::{Patience, lock, passed};
use crate::file_system::Core;
use crate::inode::{Inode, Look, Numbered as _, Part, Set, WHOLE};
use crate::inodes::{InodeWalk, Visit};
use crate::node::Node;
use crate::types::Ino;

/// Pages forgotten in a row.
const RUN: u64 = 64;
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

/// Where the hand stands.
#[derive(Debug, Default)]
pub(super) struct Hand {
    walk: InodeWalk,
    /// The file it is at, and the page in there.
    at: Option<(Ino, u64)>,
    patience: Patience,
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
    pub(super) fn relieve(&self) {
        let whole = self.reclaim.limit();
        let limit = whole - self.metadata_bytes().min(whole / 2);
        let held = self.cache.bytes();
        let slack = (limit / 16).min(SLACK_MAX);
        // Before the limit is reached: each thread that adds pages goes on for a step before it looks.
        let enough = limit - slack;
        // What did not reach the store after it failed is here alone.
        if held <= enough || self.failure.is_latched() {
            return;
        }
        let Some(mut hand) = lock(&self.reclaim.content, held, limit) else {
            return;
        };
        let enough = enough - slack;
        if hand.patience.waits() {
            return;
        }
        // Each set in turn, the second twice, and then all: what is left then nobody can forget.
        let mut rounds = 0;
        while rounds < SETS.len() && self.cache.bytes() > enough {
            rounds += usize::from(self.turn(&mut hand, enough, SETS[rounds]));
        }
        hand.patience.was_of_use(self.cache.bytes() < held);
        drop(hand);
        epoch::flush();
    }

    /// Goes on until there is room or the round is over, and says whether it is.
    fn turn(&self, hand: &mut Hand, enough: u64, set: Option<Set>) -> bool {
        if let Some((ino, page)) = hand.at.take()
            && let Some(inode) = self.index.get(ino.0)
        {
            let node = Node::new(inode);
            hand.at = self.forget_from(node.inode(), page, Some(enough));
            self.put(node);
            if hand.at.is_some() {
                return false;
            }
        }
        let Hand { walk, at, .. } = hand;
        let is_to_go = |inode: &Inode| {
            let idle = |set| inode.look(Part::Body, set, &self.reclaim.epochs) == Look::Idle;
            inode.regular().is_ok_and(|pages| !pages.is_empty())
                && (inode.size() > WHOLE || set.is_none_or(idle))
        };
        let walked = self.walk_inodes_if(walk, is_to_go, &mut |node| {
            *at = self.forget_from(node.inode(), 0, Some(enough));
            let go_on = at.is_none() && self.cache.bytes() > enough;
            Ok(if go_on { Visit::Continue } else { Visit::Stop })
        });
        debug_assert!(walked.is_ok(), "nobody failed");
        let round = walk.is_done();
        if round {
            *walk = InodeWalk::new();
        }
        round
    }

    /// Forgets pages of a file from this one on, until no more than `enough` is held, if that is given;
    /// says where it stopped, if not at the end.
    fn forget_from(&self, inode: &Inode, mut page: u64, enough: Option<u64>) -> Option<(Ino, u64)> {
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
            return None;
        }
        inode.partial();
        let mut stopped = None;
        while let Some(next) = pages.next_present(page).filter(|next| *next < whole) {
            if enough.is_some_and(|enough| self.cache.bytes() <= enough) {
                stopped = Some((inode.ino(), next));
                break;
            }
            page = (next + RUN).min(whole);
            pages.forget(next..page, self.loaded());
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
            self.forget_from(node.inode(), 0, None);
            Ok(Visit::Continue)
        });
        debug_assert!(walked.is_ok(), "nobody failed");
    }
}
