//! How much memory a process takes: one number, over everything that its file systems keep.
//!
//! What takes memory is a *member*: a file system for what its store can bring back, a volume for what it has still to
//! write and for the nodes of its trees. Members count what they hold, by [`Class`], and keep to the limit that they are
//! given; what can be freed at any time has [shrinkers](Memory::shrinkers). The limit is the budget less what nobody counts: the program itself, stacks, what the allocator has
//! lost between blocks. A process that holds nothing else ([`Memory::follow`]) finds it by what is resident; in others it is
//! taken for nothing.
//!
//! Threads that add something [look](Memory::look) whenever they have added a part of the limit. While anything moves, a
//! process that is followed looks ten times a second as well, and frees what is too much: not every change adds
//! to what its thread could free.
//!
//! *Locking.* `state` is taken with nothing held but what a thread holds that looks: it does so with nothing locked. Below it
//! are only the locks in which members count. Memory is freed with nothing held.

mod class;
mod feedback;
mod follow;
pub mod host;
mod resident;
mod wakeup;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use crate::frame;
use parking_lot::Mutex;

use crate::reclaim::Registry;

pub use class::{Class, Usage};
use feedback::Feedback;
pub use follow::ReclaimThread;
use resident::Resident;
use wakeup::Wakeup;

/// With so much memory large pages are welcome.
pub const AMPLE: u64 = 1 << 30;
/// What a process takes at least, unless it is told otherwise.
const LEAST: u64 = 32 << 20;
/// So often it is asked again how much memory there is, at most.
const ASK_EVERY: Duration = Duration::from_secs(10);
/// So often the allocator is asked to return what it has, at most.
const TRIM_EVERY: Duration = Duration::from_secs(1);

/// What takes memory.
pub trait Member: Send + Sync {
    /// What it holds.
    fn usage(&self) -> Usage;

    /// The limit of all members, and of that what may be taken by what this one could free at any time.
    fn limit(&self, all: u64, own: u64);
}

/// The memory of a process, and what its members make of it.
#[derive(Debug)]
pub struct Memory {
    budget: AtomicU64,
    limit: AtomicU64,
    state: Mutex<State>,
    wakeup: Wakeup,
    shrinkers: Registry,
}

#[derive(Default)]
struct State {
    /// The budget that was asked for; else what the host has decides.
    given: Option<u64>,
    /// The least that the host decides for.
    least: u64,
    asked: Option<Instant>,
    members: Vec<Weak<dyn Member>>,
    followed: Option<Followed>,
    seen: Seen,
}

/// What is known of a process that holds nothing but file systems.
#[derive(Debug)]
struct Followed {
    resident: Resident,
    feedback: Feedback,
    /// Has the allocator return what it has.
    trim: fn(),
    trimmed: Option<Instant>,
}

/// What a look found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Bytes that the process may take.
    pub budget: u64,
    /// What its members may take of that.
    pub limit: u64,
    /// What they took.
    pub usage: Usage,
    /// What was resident, where that is measured.
    pub resident: Option<u64>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("given", &self.given)
            .field("members", &self.members.len())
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}

impl Memory {
    /// The memory of this process.
    pub fn of_process() -> &'static Arc<Self> {
        static PROCESS: OnceLock<Arc<Memory>> = OnceLock::new();
        PROCESS.get_or_init(|| Arc::new(Self::with(None)))
    }

    /// A memory apart from the process's, of so many bytes.
    #[must_use]
    pub fn apart(budget: u64) -> Arc<Self> {
        Arc::new(Self::with(Some(budget)))
    }

    fn with(given: Option<u64>) -> Self {
        let memory = Self {
            budget: AtomicU64::new(0),
            limit: AtomicU64::new(0),
            state: Mutex::new(State {
                given,
                least: LEAST,
                ..State::default()
            }),
            wakeup: Wakeup::new(),
            shrinkers: Registry::default(),
        };
        memory.look();
        memory
    }

    /// Changes the budget. `None`: a quarter of the machine's memory, or half of what its control groups leave this
    /// process where that is less, and 32 MiB at least.
    pub fn set(&self, budget: Option<u64>) {
        {
            let mut state = self.state.lock();
            state.given = budget;
            state.asked = None;
        }
        self.look();
    }

    /// What the process may take, in bytes; `u64::MAX` for all there is.
    #[must_use]
    pub fn budget(&self) -> u64 {
        self.budget.load(Relaxed)
    }

    /// What its members may take of that.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit.load(Relaxed)
    }

    /// Counts what this one holds from now on, for as long as it lives.
    pub fn join(&self, member: Weak<dyn Member>) {
        self.state.lock().members.push(member);
        self.look();
    }

    /// What the last look found.
    #[must_use]
    pub fn seen(&self) -> Seen {
        self.state.lock().seen
    }

    /// Something was added: the thread that follows memory looks, by and by.
    #[inline]
    pub fn moved(&self) {
        self.wakeup.moved();
    }

    /// Looks how much there is, and tells members how much they may have. Does nothing while another thread looks.
    pub fn look(&self) {
        self.moved();
        let Some(mut state) = self.state.try_lock() else {
            return;
        };
        let members = state.live();
        let now = Instant::now();
        let budget = self.budget_now(&mut state, now);
        let each: Vec<Usage> = members.iter().map(|member| member.usage()).collect();
        let usage = each.iter().copied().fold(Usage::NONE, |sum, it| sum + it);
        let usage = state.with_garbage(usage);
        let (limit, resident) = state.limit(usage.total(), budget, now);
        self.limit.store(limit, Relaxed);
        state.seen = Seen {
            budget,
            limit,
            usage,
            resident,
        };
        let caches = limit.saturating_sub(usage.fixed()).max(limit / 8);
        for (member, held) in members.iter().zip(&each) {
            member.limit(limit, share(caches, usage, *held, members.len()));
        }
        // The last use of a member may end here, and then it does with nothing locked.
        drop(state);
        drop(members);
    }

    /// What frees memory of its members.
    #[must_use]
    pub fn shrinkers(&self) -> &Registry {
        &self.shrinkers
    }

    fn budget_now(&self, state: &mut State, now: Instant) -> u64 {
        let is_known = |asked| now.saturating_duration_since(asked) < ASK_EVERY;
        if let Some(given) = state.given {
            self.budget.store(given, Relaxed);
        } else if !state.asked.is_some_and(is_known) {
            state.asked = Some(now);
            let budget = usual(host::machine(), host::control_groups()).max(state.least);
            self.budget.store(budget, Relaxed);
        }
        self.budget.load(Relaxed)
    }
}

impl State {
    fn live(&mut self) -> Vec<Arc<dyn Member>> {
        self.members.retain(|member| member.strong_count() > 0);
        self.members.iter().filter_map(Weak::upgrade).collect()
    }

    /// Adds the frames that are in no file, where all of the process's are known.
    fn with_garbage(&self, usage: Usage) -> Usage {
        if self.followed.is_none() {
            return usage;
        }
        let elsewhere = frame::allocated().saturating_sub(usage.of(Class::Content));
        let waiting = usage.of(Class::Waiting).min(elsewhere);
        usage
            .set(Class::Waiting, waiting)
            .with(Class::Garbage, elsewhere - waiting)
    }

    /// What may be counted, and what is resident.
    fn limit(&mut self, counted: u64, budget: u64, now: Instant) -> (u64, Option<u64>) {
        let Some(followed) = &mut self.followed else {
            return (unfollowed(budget), None);
        };
        let Some(resident) = followed.resident.bytes() else {
            return (unfollowed(budget), None);
        };
        let limit = followed.feedback.limit(budget, counted, resident, now);
        let lately = |at| now.saturating_duration_since(at) < TRIM_EVERY;
        if resident > budget && !followed.trimmed.is_some_and(lately) {
            followed.trimmed = Some(now);
            (followed.trim)();
        }
        (limit, Some(resident))
    }
}

/// What a process takes that was not told.
fn usual(machine: u64, control_groups: Option<u64>) -> u64 {
    let groups = control_groups.map_or(u64::MAX, |bytes| bytes / 2);
    (machine / 4).min(groups)
}

/// What may be counted where nobody knows what is resident.
fn unfollowed(budget: u64) -> u64 {
    budget - budget / 64
}

/// What a member may hold of what can be freed at any time: what the others leave, and half of its part at least.
fn share(caches: u64, all: Usage, own: Usage, members: usize) -> u64 {
    let others = all.reclaimable() - own.reclaimable();
    caches
        .saturating_sub(others)
        .max(caches / (2 * members as u64))
}

#[cfg(test)]
mod tests;
