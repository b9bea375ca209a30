//! A registered shrinker, and how much it has to scan.
//!
//! A *reclaim* is as many passes as it takes to reach the low mark, each for twice as much as the
//! one before. A *pass* scans a share of the objects ([`arithmetic`](super::arithmetic)), in
//! batches, and defers the rest.
//!
//! *Locking.* `turn` is taken with no lock held, by threads outside any store, or for shrinkers
//! that need none. Locks that shrinkers take lie below.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};

use super::arithmetic::{Debt, Share, share};
use super::backoff::Backoff;
use super::context::Context;
use super::deferral::Deferral;
use super::shrinker::{Count, Load, Request, Scan, Shrinker};
use super::trace::{Step, Trace};

/// A reclaim scans each object about so many times.
const ROUNDS_MAX: u64 = 8;

/// The result of a call for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shrunk {
    /// No more was held than the mark.
    Enough,
    /// Nothing was scanned: another thread reclaims, or the last reclaims were useless, or the
    /// context does not allow it and the work is deferred.
    Left,
    /// The excess was freed.
    Reached,
    /// Less than the excess could be freed.
    Short,
}

/// What a shrinker has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Passes.
    pub passes: u64,
    /// Objects that were requested.
    pub scanned: u64,
    /// Objects that were freed.
    pub freed: u64,
    /// Objects that are deferred now.
    pub deferred: u64,
    /// Time that threads spent in it.
    pub nanoseconds: u64,
    /// The part of that time which the following thread spent, outside any operation.
    pub nanoseconds_followed: u64,
}

/// A shrinker that is registered, as long as this is kept.
pub struct Registered<S: Shrinker> {
    shrinker: S,
    owner: Weak<S::Owner>,
    number: u32,
    deferral: Deferral,
    /// One reclaim at a time.
    turn: Mutex<Backoff>,
    passes: AtomicU64,
    scanned: AtomicU64,
    freed: AtomicU64,
    nanoseconds: AtomicU64,
    nanoseconds_followed: AtomicU64,
    trace: Arc<Trace>,
}

impl<S: Shrinker> fmt::Debug for Registered<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registered")
            .field("name", &self.name())
            .field("totals", &self.totals())
            .finish_non_exhaustive()
    }
}

/// What one pass did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passed {
    /// Objects that there were.
    pub(super) items: u64,
    /// That were asked for.
    pub(super) scanned: u64,
    /// That went.
    pub(super) freed: u64,
    /// Nothing more can be had.
    pub(super) stopped: bool,
}

impl<S: Shrinker> Registered<S> {
    pub(super) fn new(shrinker: S, owner: Weak<S::Owner>, number: u32, trace: Arc<Trace>) -> Self {
        Self {
            shrinker,
            owner,
            number,
            deferral: Deferral::new(),
            turn: Mutex::default(),
            passes: AtomicU64::new(0),
            scanned: AtomicU64::new(0),
            freed: AtomicU64::new(0),
            nanoseconds: AtomicU64::new(0),
            nanoseconds_followed: AtomicU64::new(0),
            trace,
        }
    }

    /// Is a reclaim under way?
    pub fn is_busy(&self) -> bool {
        self.turn.is_locked()
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.shrinker.name()
    }

    /// What it has done so far.
    pub fn totals(&self) -> Totals {
        Totals {
            passes: self.passes.load(Relaxed),
            scanned: self.scanned.load(Relaxed),
            freed: self.freed.load(Relaxed),
            deferred: Debt::from_parts(self.deferral.owed()).objects(),
            nanoseconds: self.nanoseconds.load(Relaxed),
            nanoseconds_followed: self.nanoseconds_followed.load(Relaxed),
        }
    }

    /// Frees the excess, as far as possible. Called with no lock held, or within a store; then work
    /// that needs the store is deferred.
    pub fn shrink(&self, owner: &S::Owner) -> Shrunk {
        self.shrink_for(owner, false)
    }

    /// As [`shrink`](Self::shrink). `following`: called by the following thread.
    fn shrink_for(&self, owner: &S::Owner, following: bool) -> Shrunk {
        hop!();
        let load = self.shrinker.load(owner);
        if load.held <= load.wake {
            return Shrunk::Enough;
        }
        if self.must_wait() {
            // Does not take `turn`: its holder may wait for this thread.
            self.pass(owner, &load, load.excess(), &mut true);
            return Shrunk::Left;
        }
        let Some(mut backoff) = self.turn(&load) else {
            return Shrunk::Left;
        };
        // Another thread may have freed it meanwhile.
        let before = self.shrinker.load(owner);
        if before.held <= before.wake {
            return Shrunk::Enough;
        }
        if backoff.skips() {
            return Shrunk::Left;
        }
        let begun = Instant::now();
        let after = self.passes(owner, before);
        let was_of_use = self.shrinker.was_of_use(&before, &after);
        backoff.was_of_use(was_of_use);
        drop(backoff);
        self.shrinker.finish();
        let spent = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(spent, Relaxed);
        if following {
            self.nanoseconds_followed.fetch_add(spent, Relaxed);
        }
        match after.is_enough() {
            true => Shrunk::Reached,
            false => Shrunk::Short,
        }
    }

    /// Must the work be deferred in this context?
    fn must_wait(&self) -> bool {
        self.shrinker.needs_store() && Context::now() == Context::WithinStore
    }

    /// Takes the shrinker's lock: `try_lock` up to `load.wait`, blocking above it. A caller that
    /// does not get it defers nothing, because the holder goes on until the low mark.
    fn turn(&self, load: &Load) -> Option<MutexGuard<'_, Backoff>> {
        match load.held > load.wait {
            true => Some(self.turn.lock()),
            false => self.turn.try_lock(),
        }
    }

    /// Passes until the low mark is reached or nothing can be freed; returns the load after that.
    fn passes(&self, owner: &S::Owner, before: Load) -> Load {
        hop!();
        let mut wanted = before.excess();
        let (mut load, mut first, mut scanned) = (before, true, 0);
        while let Some(passed) = self.pass(owner, &load, wanted, &mut first) {
            load = self.shrinker.load(owner);
            scanned += passed.scanned;
            if load.is_enough() || passed.stopped || scanned / ROUNDS_MAX >= passed.items {
                break;
            }
            // In the end that is more than is held, so each pass scans everything.
            wanted = wanted.saturating_mul(2).max(1);
        }
        load
    }

    /// One pass for `wanted` bytes. `None`: nothing can be freed. `first`: no request of this
    /// reclaim was made yet.
    pub(super) fn pass(
        &self,
        owner: &S::Owner,
        load: &Load,
        wanted: u64,
        first: &mut bool,
    ) -> Option<Passed> {
        hop!();
        let items = match self.shrinker.count(owner) {
            Count::Empty | Count::Objects(0) => return None,
            Count::Objects(items) => items,
        };
        let (batch, context) = (self.shrinker.batch().max(1), Context::now());
        let deferred = Debt::from_parts(self.deferral.take());
        let pressure = load.pressure(wanted);
        let seeks = self.shrinker.seeks();
        let Share { delta, total } = share(deferred, pressure, (seeks, batch), items);
        let name = (self.shrinker.name(), self.number);
        let start = Step::Start {
            deferred: deferred.objects(),
            context,
            pressure,
            items,
            delta,
            total: total.objects(),
        };
        self.trace.record(name, start);
        let mut rest = total;
        let mut passed = Passed {
            items,
            scanned: 0,
            freed: 0,
            stopped: false,
        };
        while rest.objects() >= batch.min(items) {
            let objects = rest.objects().min(batch);
            let request = Request {
                context,
                objects,
                first: *first,
            };
            let scan = match self.must_wait() {
                true => Scan::Stop,
                false => self.shrinker.scan(owner, request),
            };
            let Scan::Freed(freed) = scan else {
                passed.stopped = true;
                break;
            };
            *first = false;
            passed.scanned += objects;
            passed.freed += freed;
            rest = rest.less(objects);
            if self.shrinker.load(owner).is_enough() {
                // This pass has done its own part, and the rest reduces what others deferred.
                rest = rest.min(deferred.less(passed.scanned));
                break;
            }
        }
        let most = Debt::of(items.saturating_mul(2)).parts();
        let owed = self.deferral.give_back(rest.parts(), most);
        let end = Step::End {
            deferred: deferred.objects(),
            owed: Debt::from_parts(owed).objects(),
            total: rest.objects(),
            freed: passed.freed,
        };
        self.trace.record(name, end);
        self.passes.fetch_add(1, Relaxed);
        self.scanned.fetch_add(passed.scanned, Relaxed);
        self.freed.fetch_add(passed.freed, Relaxed);
        Some(passed)
    }

    /// Defers `objects` more.
    #[cfg(test)]
    pub(super) fn owe(&self, objects: u64) {
        self.deferral.give_back(Debt::of(objects).parts(), u64::MAX);
    }
}

/// A shrinker with its owner type erased.
pub(super) trait Entry: Send + Sync {
    /// As [`Registered::shrink`] on the following thread, if the owner still exists.
    fn shrink(&self);

    fn totals(&self) -> (&'static str, Totals);
}

impl<S: Shrinker> Entry for Registered<S> {
    fn shrink(&self) {
        // The last reference to the owner may be dropped here, which needs all locks free.
        if let Some(owner) = self.owner.upgrade() {
            self.shrink_for(&owner, true);
        }
    }

    fn totals(&self) -> (&'static str, Totals) {
        (self.name(), self.totals())
    }
}
