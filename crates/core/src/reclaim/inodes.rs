//! Inodes that go, with their names. Files stay that have holes, or space without data: a store
//! may keep few bytes without telling, and what is behind the end nobody asks for. A directory in which names are looked for is used.
//!
//! Those that an observer holds by their numbers (a kernel, of a mount) go as others do: their uses are counted elsewhere while they are
//! away (see `ends.rs`). Only when these counts take too much are some of them asked back.

use holdfast_sync::epoch;

use super::{INODE_BYTES, NAME_BYTES, Patience, lock, passed};
use crate::directory::Place;
use crate::ends::Turn;
use crate::file_system::Core;
use crate::inode::{Inode, Set};
use crate::inodes::{InodeWalk, Visit};

/// Inodes and names between two looks, at most.
const STEP_MAX: u64 = 4096;
/// A step takes this part of the limit.
const STEP_PART: u64 = 256;
/// Inodes that are let go before it is asked again whether it is enough.
const BATCH: u64 = 1024;
/// Inodes that are asked back at once, about.
const ASKED: usize = 16_384;
/// What is remembered of inodes that are away may take this part of the limit.
const AWAY_PART: u64 = 16;

/// Of all inodes one in so many is on probation, at least, before a hand goes over the main set.
const PROBATION_PART: u64 = 10;
/// Rounds over each set that a look may make, the rest of one counted: in the main set one finds what was used, and another whether it
/// was since.
const ROUNDS: [u32; 2] = [2, 3];

/// Where the hands stand.
#[derive(Debug, Default)]
pub(super) struct Hand {
    /// The numbers to go on from: on probation, and in the main set.
    at: [u64; 2],
    patience: Patience,
}

/// What was asked back of an observer.
#[derive(Debug, Default)]
pub(super) struct Asking {
    turn: Turn,
    /// Inodes that were away when it was asked last, less half of those that were asked for: so few, and it was of use.
    hoped: Option<u64>,
    patience: Patience,
}

impl Core {
    /// What [`relieve_inodes_since`](Self::relieve_inodes_since) needs from before inodes or names are
    /// added.
    #[inline]
    pub(crate) fn added_so_far(&self) -> i64 {
        match self.pinned {
            true => 0,
            false => self.names.own().wrapping_add(self.index.own_len()),
        }
    }

    /// Lets inodes go that nobody uses, if this thread has added some, or names, since
    /// [`added_so_far`](Self::added_so_far) and there are too many. With nothing locked.
    #[inline]
    pub(crate) fn relieve_inodes_since(&self, before: i64) {
        if self.pinned {
            return;
        }
        let step = (self.reclaim.limit() / (STEP_PART * NAME_BYTES)).min(STEP_MAX);
        let came = passed(before, self.added_so_far(), step);
        if came > 0 {
            self.reclaim.epochs.pass(came, self.index.len());
            self.reclaim.memory.look();
            self.relieve_inodes();
        }
    }

    #[cold]
    pub(super) fn relieve_inodes(&self) {
        // Content gets the other half.
        let limit = self.reclaim.limit() / 2;
        let held = self.metadata_bytes();
        // What did not reach the store after it failed is here alone.
        if held <= limit || self.failure.is_latched() {
            return;
        }
        let Some(mut hand) = lock(&self.reclaim.inodes, held, limit) else {
            return;
        };
        // More than is added until the next look.
        let slack = 2 * STEP_MAX * (INODE_BYTES + NAME_BYTES);
        let enough = limit - (limit / 16).min(slack);
        if hand.patience.waits() {
            return;
        }
        let mut left = ROUNDS;
        while self.metadata_bytes() > enough
            && let Some(set) = self.set_to_give(left)
        {
            let of = set as usize;
            let next = self.evict_some(hand.at[of], BATCH, set);
            left[of] -= u32::from(next.is_none());
            hand.at[of] = next.unwrap_or(0);
        }
        // Elsewhere there is little to find, and all inodes to look at.
        if self.metadata_bytes() > enough && self.name_bytes() > enough / 4 {
            self.relieve_directories(enough);
        }
        let gone = held.saturating_sub(self.metadata_bytes());
        hand.patience.was_of_use(gone > held / 64);
        drop(hand);
        epoch::flush();
        self.ask_back_what_is_away();
    }

    /// Asks an observer for some of the inodes that it holds and that are away, if their counts take too much. Less often
    /// while less than half of what was asked for comes back.
    fn ask_back_what_is_away(&self) {
        let away = self.ends.away();
        if away.bytes <= self.reclaim.memory.limit() / AWAY_PART || !self.is_observed() {
            return;
        }
        let Some(mut asking) = self.reclaim.asking.try_lock() else {
            return;
        };
        if asking.patience.waits() {
            return;
        }
        let was_of_use = asking.hoped.is_none_or(|hoped| away.inodes <= hoped);
        asking.patience.was_of_use(was_of_use);
        let (inodes, turn) = self.ends.some(asking.turn, ASKED);
        asking.turn = turn;
        let half = inodes.len() as u64 / 2;
        asking.hoped = Some(away.inodes.saturating_sub(half));
        drop(asking);
        self.ask_back(&inodes);
    }

    /// Lets go of the names of large directories, until inodes and names take no more than this.
    pub(super) fn relieve_directories(&self, enough: u64) {
        if self.coherence.is_some() {
            // Its store is not asked for runs of names. They go with their directories.
            return;
        }
        let least = self.policy.whole_directory();
        let is_large = |inode: &Inode| {
            inode.directory().is_ok_and(|body| {
                body.names.place() == Place::Whole && body.names.in_catalog() > least
            })
        };
        let mut walk = InodeWalk::new();
        let walked = self.walk_inodes_if(&mut walk, is_large, &mut |node| {
            let mut names = node.inode().directory()?.names.write(node.inode());
            if names.place() == Place::Whole {
                self.make_partial(&mut names);
            }
            Ok(match self.metadata_bytes() > enough {
                true => Visit::Continue,
                false => Visit::Stop,
            })
        });
        debug_assert!(walked.is_ok(), "nobody failed");
    }

    /// The set that a hand is to go over, of those that have rounds left: what is on probation, unless there is little of it.
    fn set_to_give(&self, left: [u32; 2]) -> Option<Set> {
        let there = self.index.len();
        let main = u64::try_from(self.reclaim.main.sum()).unwrap_or(0);
        let is_short = there.saturating_sub(main) <= there / PROBATION_PART;
        let order = match is_short {
            true => [Set::Main, Set::Probation],
            false => [Set::Probation, Set::Main],
        };
        order.into_iter().find(|set| left[*set as usize] > 0)
    }
}
