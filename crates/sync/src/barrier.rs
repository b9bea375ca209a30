//! A fence on every running thread of the process, from one of them: membarrier(2), or where that was refused after it had
//! worked (a filter of system calls came), a [walk] over the processors.
//!
//! It lets those who do something all the time go without a fence, at the expense of those who do
//! something seldom (as in P. E. McKenney's sys_membarrier for user-space RCU).

mod walk;

use crate::idle_policy::without_idle_policy;
use rustix::thread::{MembarrierCommand, membarrier};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Once, OnceLock};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// Threads are interrupted no more often than once in this time, unless it must be.
const INTERVAL: Duration = Duration::from_millis(1);

/// A walk that failed is not tried again before this time has passed.
const WALK_INTERVAL: Duration = Duration::from_secs(1);

/// It worked once and then failed: no thread begins to rely on it from now on. Those that do already are fenced by the slower
/// way.
static BROKEN: AtomicBool = AtomicBool::new(false);

/// What the kernel answered.
static REGISTERED: OnceLock<bool> = OnceLock::new();

/// Has the kernel got it, and may this process use it? `false` until that is known: to a process of
/// several threads the kernel answers only when all processors have been through it, which can take a
/// quarter of a second, and nobody shall wait for that.
#[inline]
pub(crate) fn is_available() -> bool {
    match REGISTERED.get() {
        Some(registered) => *registered && !BROKEN.load(Ordering::Relaxed),
        None => {
            ask();
            false
        }
    }
}

/// Asks the kernel, if nobody has: at once as long as there is no other thread, since then it does not
/// wait for anything.
pub(crate) fn prepare() {
    if REGISTERED.get().is_none() {
        if is_alone() {
            answer();
        } else {
            ask();
        }
    }
}

/// Is there no thread but this one, for sure?
fn is_alone() -> bool {
    // Each is a directory there, and so are the entries `.` and `..`.
    fs::metadata("/proc/self/task").is_ok_and(|tasks| tasks.nlink() == 3)
}

/// Asks the kernel, once, in a thread of its own.
#[cold]
fn ask() {
    static ASKED: Once = Once::new();
    ASKED.call_once(|| {
        let thread = thread::Builder::new().name("holdfast-barrier".to_owned());
        // Where there are no threads, there is nobody to wait for either.
        if without_idle_policy(|| thread.spawn(answer)).is_err() {
            answer();
        }
    });
}

/// Where an interpreter runs the program (Miri) there is no such call.
fn answer() {
    let register =
        || !cfg!(miri) && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok();
    REGISTERED.get_or_init(register);
}

/// Fences every thread of the process: what each did before some moment within this call is seen by
/// the caller, and each sees after that moment what the caller did before. `false`: it could not.
pub(crate) fn everywhere() -> bool {
    // For the caller itself, too.
    fence(Ordering::SeqCst);
    let mut fenced = is_available() && membarrier(MembarrierCommand::PrivateExpedited).is_ok();
    if !fenced && REGISTERED.get() == Some(&true) {
        BROKEN.store(true, Ordering::Relaxed);
        fenced = walk_everywhere();
    }
    fence(Ordering::SeqCst);
    fenced
}

/// As [`everywhere`], by the slower way, unless that failed just now.
fn walk_everywhere() -> bool {
    static FAILED: Pace = Pace::new(WALK_INTERVAL);
    let now = since_begin() + WALK_INTERVAL;
    if !FAILED.would_allow(now) {
        return false;
    }
    let walked = walk::visit_processors();
    if !walked {
        FAILED.allows(now);
    }
    walked
}

/// Since the first call.
fn since_begin() -> Duration {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    BEGUN.get_or_init(Instant::now).elapsed()
}

/// Is it long enough since the last time that this said so?
pub(crate) fn is_due() -> bool {
    static PACE: Pace = Pace::new(INTERVAL);
    // Never 0: the first time is due.
    PACE.allows(since_begin() + INTERVAL)
}

/// Something that is done seldom.
struct Pace {
    /// When it was done last, in nanoseconds.
    last: AtomicU64,
    interval: Duration,
}

impl Pace {
    const fn new(interval: Duration) -> Self {
        Self {
            last: AtomicU64::new(0),
            interval,
        }
    }

    fn is_due(&self, last: u64, now: Duration) -> bool {
        now.saturating_sub(Duration::from_nanos(last)) >= self.interval
    }

    /// May it be done again? It is asked only.
    fn would_allow(&self, now: Duration) -> bool {
        self.is_due(self.last.load(Ordering::Relaxed), now)
    }

    /// May it be done again? Of several threads that ask at the same time one is told so.
    fn allows(&self, now: Duration) -> bool {
        let last = self.last.load(Ordering::Relaxed);
        let nanoseconds = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let order = Ordering::Relaxed;
        let exchanged = || self.last.compare_exchange(last, nanoseconds, order, order);
        self.is_due(last, now) && exchanged().is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_due_when_an_interval_has_passed() {
        let pace = Pace::new(INTERVAL);
        let told = (1..=50).map(|tenths| pace.allows(INTERVAL * tenths / 10));
        assert_eq!(told.filter(|&told| told).count(), 5);
        assert!(!pace.allows(INTERVAL), "clocks of two threads may differ");
    }

    #[test]
    fn where_it_is_available_it_works() {
        answer();
        assert!(!is_available() || everywhere());
    }
}
