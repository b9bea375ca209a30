//! Inodes that go, with their names. Files stay that have holes, or space without data: a store
//! may keep few bytes without telling, and what is behind the end nobody asks for. A directory in which names are looked for is used.
//!
//! Those that an observer holds by their numbers (a kernel, of a mount) are asked back, and doomed: they go with its last
//! use, unless somebody asks for them before.

use holdfast_sync::{Held, epoch};

use super::{INODE_BYTES, NAME_BYTES, Patience, lock, passed};
use crate::directory::Place;
use crate::file_system::Core;
use crate::inode::{Inode, Numbered as _, Object, Set};
use crate::inodes::{InodeWalk, Visit};
use crate::types::Ino;

/// Inodes and names between two looks, at most.
const STEP_MAX: u64 = 4096;
/// A step takes this part of the limit.
const STEP_PART: u64 = 256;
/// Inodes that are let go before it is asked again whether it is enough.
const BATCH: u64 = 1024;
/// Inodes that are asked back at once, at most.
const ASKED_MAX: usize = 16_384;

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
    /// Bytes of what was asked back by the last look: they are on their way.
    asked: u64,
    patience: Patience,
}

/// What is asked back.
#[derive(Debug, Default)]
struct Asked {
    inodes: Vec<Ino>,
    /// How many of them were asked for before.
    again: usize,
}

impl Asked {
    fn ask(&mut self, inode: &Held<Object>) {
        self.again += usize::from(inode.is_doomed());
        // Its end, if it was given back just now, is whose round comes next.
        drop(inode.doom());
        self.inodes.push(inode.ino());
    }

    /// What they take in memory, about.
    fn bytes(&self) -> u64 {
        self.inodes.len() as u64 * (INODE_BYTES + NAME_BYTES)
    }

    /// Will most of them be given back, for all that is known?
    fn is_promising(&self) -> bool {
        2 * self.again < self.inodes.len()
    }
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
        if passed(before, self.added_so_far(), step) {
            self.reclaim.epochs.pass(step, self.index.len());
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
        let mut asked = Asked::default();
        let leaving = std::mem::take(&mut hand.asked);
        while self
            .metadata_bytes()
            .saturating_sub(leaving + asked.bytes())
            > enough
            && asked.inodes.len() < ASKED_MAX
            && let Some(set) = self.set_to_give(left)
        {
            let of = set as usize;
            let next = self.evict_some(hand.at[of], BATCH, set, |inode| {
                if self.is_observed() {
                    asked.ask(inode);
                }
            });
            left[of] -= u32::from(next.is_none());
            hand.at[of] = next.unwrap_or(0);
        }
        let going = leaving + asked.bytes();
        let stays = self.metadata_bytes().saturating_sub(going);
        // Elsewhere there is little to find, and all inodes to look at.
        if stays > enough && self.name_bytes() > enough / 4 {
            self.relieve_directories(enough + going);
        }
        let gone = held.saturating_sub(self.metadata_bytes());
        hand.patience
            .was_of_use(gone > held / 64 || leaving > 0 || asked.is_promising());
        if asked.is_promising() {
            hand.asked = asked.bytes();
        }
        drop(hand);
        self.ask_back(&asked.inodes);
        epoch::flush();
    }

    /// Lets go of the names of large directories, until inodes and names take no more than this.
    pub(super) fn relieve_directories(&self, enough: u64) {
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
