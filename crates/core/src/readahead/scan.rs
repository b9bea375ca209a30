//! The demand loads of one directory: their order, and what was read ahead in it.
//!
//! *Invariants.* While `pending` is set, a load of this directory reads ahead: no other load does
//! until the result of the first is known or it has expired. `strays` counts the demand loads since
//! the last one that was next in the window.

use std::sync::Arc;

use super::policy::{
    BATCH, FIRST, FIRST_SORTED, IDLE, IN_LISTING, IN_SMALL, IN_SORTED, Millis, NEAR, Rest, SAMPLE,
    SMALL, SOON, STRAYS, is_used,
};
use crate::types::Ino;

/// An inode that is not in memory, and the name of its lookup.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand<'n> {
    pub(crate) dir: Ino,
    pub(crate) name: &'n [u8],
    pub(crate) cookie: u64,
    pub(crate) ino: Ino,
    /// The number of names in the directory.
    pub(crate) names: u64,
}

impl Demand<'_> {
    fn is_hidden(&self) -> bool {
        is_hidden(self.name)
    }
}

/// Do listings leave this name out by default?
pub(crate) fn is_hidden(name: &[u8]) -> bool {
    name.first() == Some(&b'.')
}

/// The key of a sorted order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Number,
    Name,
}

/// The order of the inodes to read ahead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The order of listings, from the demand on; with the hidden names?
    Listing { hidden: bool },
    /// All names of the directory.
    All,
    /// A sorted order that has to be computed. The demand loads ascend in it: their number, and the
    /// first of them.
    Sort(By, Ino, u32),
    /// The same, sorted, from this index on.
    Sorted(Arc<[Ino]>, usize),
}

/// What to read ahead with a demand load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Advice {
    pub(crate) order: Order,
    /// The most inodes beside the demanded one.
    pub(crate) len: usize,
    /// Identifies this advice in [`Scans::brought`](super::Scans::brought).
    pub(crate) ticket: u64,
}

/// The end of a window.
#[derive(Clone, Debug)]
pub(crate) enum Reach {
    /// The name with the cookie `end`; `next` is the cookie of the first name after it with an
    /// inode that is not in memory.
    Listing {
        hidden: bool,
        end: u64,
        next: Option<u64>,
    },
    All,
    /// This index, exclusive.
    Sorted(Arc<[Ino]>, usize),
    /// The order could not be followed.
    Nothing,
}

/// The index of an inode in an order, if `loads` demand loads from `first` up to it left out at
/// most every other inode.
pub(crate) fn place_of(order: &[Ino], first: Ino, ino: Ino, loads: u32) -> Option<usize> {
    let place = |of: Ino| order.iter().position(|ino| *ino == of);
    let (from, at) = (place(first)?, place(ino)?);
    let passed = at.checked_sub(from)?;
    (passed <= 2 * loads as usize).then_some(at)
}

/// The result of a read-ahead.
#[derive(Clone, Debug)]
pub(crate) struct Brought {
    /// In the order of the window.
    pub(crate) inos: Vec<Ino>,
    pub(crate) reach: Reach,
}

/// Is an inode with this number in memory, and still unused? `None`: it is not in memory.
pub(super) type IsUnmet<'u> = &'u dyn Fn(Ino) -> Option<bool>;

#[derive(Debug)]
struct Window {
    reach: Reach,
    len: usize,
    /// Some inodes of its first half: concurrent threads have not reached the others yet.
    sample: Vec<Ino>,
    last_used: Millis,
}

impl Window {
    fn goes_on(&self, demand: &Demand<'_>) -> bool {
        match &self.reach {
            Reach::Listing { end, next, .. } => {
                // Or a little further: the next name may have been removed.
                *next == Some(demand.cookie)
                    || (1..=NEAR).contains(&demand.cookie.saturating_sub(*end))
            }
            Reach::Sorted(order, next) => {
                let behind = order.iter().skip(*next).take(NEAR as usize);
                behind.into_iter().any(|ino| *ino == demand.ino)
            }
            Reach::All | Reach::Nothing => false,
        }
    }

    fn was_used(&self, is_unused_readahead: IsUnmet<'_>) -> bool {
        let known = self
            .sample
            .iter()
            .filter_map(|ino| is_unused_readahead(*ino));
        let (unmet, met): (Vec<bool>, Vec<bool>) = known.partition(|unmet| *unmet);
        is_used(met.len(), unmet.len())
    }
}

/// The consequence of a demand load while there is a window.
enum Next {
    Window(Order, usize),
    Alone,
    /// The same as without a window.
    Open,
}

/// The length of a streak of ascending demand loads, and the first of them.
#[derive(Clone, Copy, Debug)]
struct Streak {
    len: u32,
    first: Ino,
}

impl Default for Streak {
    fn default() -> Self {
        Self {
            len: 0,
            first: Ino(0),
        }
    }
}

impl Streak {
    fn note(&mut self, ascends: bool, ino: Ino) {
        *self = match ascends {
            true => Self {
                len: self.len.saturating_add(1),
                ..*self
            },
            false => Self { len: 1, first: ino },
        };
    }
}

/// The state of one directory's demand loads.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) dir: Option<Ino>,
    pub(super) last_used: Millis,
    /// Set by the begin of a listing until the next demand load: the cookies of its first name, and
    /// of its first name that is not hidden.
    pub(super) listed: Option<[u64; 2]>,
    /// The last demand load.
    last: Option<(u64, Ino)>,
    last_name: Vec<u8>,
    by_listing: Streak,
    by_number: Streak,
    by_name: Streak,
    /// Demand loads within `SOON`, and its beginning.
    soon: (u32, Millis),
    window: Option<Window>,
    pending: Option<(u64, Millis)>,
    strays: u32,
    rest: Rest,
}

impl Scan {
    pub(super) fn of(dir: Ino) -> Self {
        Self {
            dir: Some(dir),
            ..Self::default()
        }
    }

    /// What to read ahead with a demand load of this directory.
    pub(super) fn decide(
        &mut self,
        demand: &Demand<'_>,
        now: Millis,
        is_unused_readahead: IsUnmet<'_>,
    ) -> Option<(Order, usize)> {
        self.last_used = now;
        let listed = self.listed.take();
        self.note(demand, now);
        let is_pending = |(_, since): (u64, Millis)| now.is_before(since, IDLE);
        if self.pending.is_some_and(is_pending) || self.rest.lasts(now) {
            return None;
        }
        let window = self.window.take();
        if let Some(window) = window.filter(|window| now.is_before(window.last_used, IDLE)) {
            match self.go_on(window, demand, now, is_unused_readahead) {
                Next::Window(order, len) => return Some((order, len)),
                Next::Alone => return None,
                Next::Open => {}
            }
        }
        self.open(demand, listed)
    }

    fn note(&mut self, demand: &Demand<'_>, now: Millis) {
        let follows =
            |(cookie, _): (u64, Ino)| (1..=NEAR).contains(&demand.cookie.saturating_sub(cookie));
        let ascends = |(_, ino): (u64, Ino)| ino < demand.ino;
        let ino = demand.ino;
        self.by_listing.note(self.last.is_some_and(follows), ino);
        self.by_number.note(self.last.is_some_and(ascends), ino);
        let by_name = self.last.is_some() && *self.last_name < *demand.name;
        self.by_name.note(by_name, ino);
        self.last = Some((demand.cookie, ino));
        self.last_name.clear();
        self.last_name.extend_from_slice(demand.name);
        self.soon = match self.soon {
            (count, since) if now.is_before(since, SOON) => (count + 1, since),
            _ => (1, now),
        };
    }

    fn go_on(
        &mut self,
        mut window: Window,
        demand: &Demand<'_>,
        now: Millis,
        is_unused_readahead: IsUnmet<'_>,
    ) -> Next {
        if window.goes_on(demand) {
            self.strays = 0;
            if !window.was_used(is_unused_readahead) {
                return self.stop(now);
            }
            self.rest.forgive();
            let len = (2 * window.len).min(BATCH);
            return match window.reach {
                Reach::Listing { .. } if demand.names <= SMALL => Next::Window(Order::All, len),
                Reach::Listing { hidden, .. } => Next::Window(Order::Listing { hidden }, len),
                Reach::Sorted(order, next) => Next::Window(Order::Sorted(order, next), len),
                Reach::All | Reach::Nothing => Next::Alone,
            };
        }
        window.last_used = now;
        // Inodes that were evicted are asked for again.
        if matches!(window.reach, Reach::All) && window.was_used(is_unused_readahead) {
            return Next::Open;
        }
        match &mut window.reach {
            // Hidden names are used too: this one was left out, which is no sign of another order.
            Reach::Listing { hidden, .. } if demand.is_hidden() && !*hidden => {
                *hidden = true;
                self.window = Some(window);
                return Next::Alone;
            }
            _ => {}
        }
        self.strays += 1;
        if self.strays >= STRAYS {
            return self.stop(now);
        }
        if self.by_listing.len >= IN_LISTING {
            return Next::Open;
        }
        self.window = Some(window);
        Next::Alone
    }

    /// The first window, if the demand loads have an order.
    fn open(&mut self, demand: &Demand<'_>, listed: Option<[u64; 2]>) -> Option<(Order, usize)> {
        let hidden = demand.is_hidden();
        let is_first = listed.is_some_and(|first| first.contains(&demand.cookie));
        let is_small = demand.names <= SMALL;
        if is_first {
            return Some((Order::Listing { hidden }, FIRST));
        }
        if is_small && self.soon.0 >= IN_SMALL {
            self.soon.0 = 0;
            return Some((Order::All, SMALL as usize));
        }
        if self.by_listing.len >= IN_LISTING {
            return Some((Order::Listing { hidden }, FIRST));
        }
        let sorted = [(By::Number, self.by_number), (By::Name, self.by_name)];
        let sorted = sorted.into_iter().find(|(_, it)| it.len >= IN_SORTED);
        let (by, streak) = sorted.filter(|_| !is_small)?;
        Some((Order::Sort(by, streak.first, streak.len), FIRST_SORTED))
    }

    fn stop(&mut self, now: Millis) -> Next {
        self.rest.begin(now);
        self.window = None;
        self.strays = 0;
        Next::Alone
    }

    /// A read-ahead by this advice begins.
    pub(super) fn begin(&mut self, ticket: u64, now: Millis) {
        self.pending = Some((ticket, now));
    }

    /// The result of that read-ahead, which had a limit of `len`.
    pub(super) fn brought(&mut self, ticket: u64, len: usize, brought: Brought, now: Millis) {
        if self.pending.take_if(|(its, _)| *its == ticket).is_none() {
            return;
        }
        if let Reach::Nothing = brought.reach {
            self.stop(now);
            return;
        }
        let half = brought.inos.len().div_ceil(2);
        let step = half.div_ceil(SAMPLE).max(1);
        let sample = brought.inos.iter().take(half).step_by(step);
        self.window = Some(Window {
            reach: brought.reach,
            len,
            sample: sample.copied().collect(),
            last_used: now,
        });
    }
}

#[cfg(test)]
mod tests;
