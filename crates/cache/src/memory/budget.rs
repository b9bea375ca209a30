//! The budget of a process, and the limits that its members get of it.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::class::{Class, Usage};
use super::feedback::Feedback;
use super::host;
use super::resident::Resident;
use super::wakeup::Wakeup;
use crate::frame;
use crate::reclaim::Registry;

/// From this budget on large pages are worth their memory.
pub const AMPLE: u64 = 1 << 30;
/// The least budget of a process, unless one is set.
const LEAST: u64 = 32 << 20;
/// The host's memory is read at most once in this time.
const ASK_EVERY: Duration = Duration::from_secs(10);
/// The allocator is asked to return memory at most once in this time.
const TRIM_EVERY: Duration = Duration::from_secs(1);

/// A holder of memory.
pub trait Member: Send + Sync {
    /// What it holds.
    fn usage(&self) -> Usage;

    /// Sets the limit of all members, and the part of it that this member's reclaimable classes may
    /// take.
    fn limit(&self, all: u64, own: u64);
}

/// The memory of a process, and its members.
#[derive(Debug)]
pub struct Memory {
    budget: AtomicU64,
    limit: AtomicU64,
    state: Mutex<State>,
    pub(super) wakeup: Wakeup,
    shrinkers: Registry,
}

#[derive(Default)]
struct State {
    /// The budget that was set; otherwise the host decides.
    given: Option<u64>,
    /// The least budget that the host decides.
    least: u64,
    asked: Option<Instant>,
    members: Vec<Weak<dyn Member>>,
    followed: Option<Followed>,
    seen: Seen,
}

/// State of a process that holds nothing but file systems.
#[derive(Debug)]
struct Followed {
    resident: Resident,
    feedback: Feedback,
    /// Makes the allocator return its free memory.
    trim: fn(),
    trimmed: Option<Instant>,
}

/// The result of a look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Bytes that the process may take.
    pub budget: u64,
    /// Bytes that its members may take of that.
    pub limit: u64,
    /// Bytes that they hold.
    pub usage: Usage,
    /// Resident bytes, if they are measured.
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

    /// A memory of `budget` bytes, independent of the process's.
    #[must_use]
    pub fn separate(budget: u64) -> Arc<Self> {
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

    /// Changes the budget. `None`: a quarter of the machine's memory, or half of its control
    /// groups' limit if that is less, and at least 32 MiB.
    pub fn set(&self, budget: Option<u64>) {
        {
            let mut state = self.state.lock();
            state.given = budget;
            state.asked = None;
        }
        self.look();
    }

    /// Bytes that the process may take; `u64::MAX` for all there is.
    #[must_use]
    pub fn budget(&self) -> u64 {
        self.budget.load(Relaxed)
    }

    /// Bytes that its members may take of that.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit.load(Relaxed)
    }

    /// Counts what this member holds from now on, as long as it lives.
    pub fn join(&self, member: Weak<dyn Member>) {
        self.state.lock().members.push(member);
        self.look();
    }

    /// The result of the last look.
    #[must_use]
    pub fn seen(&self) -> Seen {
        self.state.lock().seen
    }

    /// Notes that memory was added, so that the following thread looks soon.
    #[inline]
    pub fn moved(&self) {
        self.wakeup.moved();
    }

    /// Measures the resident memory of the process from now on. The budget is that of all of it,
    /// and at least `least` bytes unless one was set.
    pub(super) fn measure(&self, least: u64, trim: fn()) -> io::Result<()> {
        {
            let mut state = self.state.lock();
            state.least = least;
            state.asked = None;
            state.followed = Some(Followed {
                resident: Resident::open()?,
                feedback: Feedback::default(),
                trim,
                trimmed: None,
            });
        }
        self.look();
        Ok(())
    }

    /// Measures it no more.
    pub(super) fn unfollow(&self) {
        self.state.lock().followed = None;
    }

    /// Computes the limits and gives them to the members. Does nothing while another thread looks.
    pub fn look(&self) {
        hop!();
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
        // The last reference to a member may be dropped here, which needs all locks free.
        drop(state);
        drop(members);
    }

    /// The shrinkers that free its members' memory.
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

    /// Adds the frames that are in no file, if all frames of the process are known.
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

    /// The limit of counted memory, and the resident bytes.
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

/// The budget of a process for which none is set.
fn usual(machine: u64, control_groups: Option<u64>) -> u64 {
    let groups = control_groups.map_or(u64::MAX, |bytes| bytes / 2);
    (machine / 4).min(groups)
}

/// The limit of counted memory if resident memory is unknown.
fn unfollowed(budget: u64) -> u64 {
    budget - budget / 64
}

/// What a member may hold in reclaimable classes: what the others leave, and at least half of its
/// share.
fn share(caches: u64, all: Usage, own: Usage, members: usize) -> u64 {
    let others = all.reclaimable() - own.reclaimable();
    caches
        .saturating_sub(others)
        .max(caches / (2 * members as u64))
}

#[cfg(test)]
mod tests;
