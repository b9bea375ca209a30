//! A memory fence on every running thread of the process, issued by one of them. It is
//! membarrier(2). If that is refused after it had worked (a seccomp filter came), it is a [walk]
//! over the processors.
//! came).
//!
//! It moves the cost of ordering from a frequent operation (a pin, which needs no fence then) to a
//! rare one (advancing the epoch). The idea is McKenney's sys_membarrier for user-space RCU.

mod walk;

use crate::idle_policy::without_idle_policy;
use rustix::thread::{MembarrierCommand, membarrier};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Once, OnceLock};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// Running threads are interrupted at most once in this time, unless the caller insists.
const INTERVAL: Duration = Duration::from_millis(1);

/// A walk that failed is not tried again before this time has passed.
const WALK_INTERVAL: Duration = Duration::from_secs(1);

/// membarrier worked once and then failed. No thread begins to rely on it any more; threads that do
/// already are fenced by the walk.
static BROKEN: AtomicBool = AtomicBool::new(false);

/// What the kernel answered to the registration.
static REGISTERED: OnceLock<bool> = OnceLock::new();

/// Does the kernel have membarrier, and may this process use it? `false` until that is known.
/// Callers do not wait for the answer: with several threads the kernel gives it only after a grace
/// period of all processors, up to a quarter of a second.
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

/// Asks the kernel, unless that was done. Asks on the calling thread if it is the only one, since
/// the kernel then answers at once.
pub(crate) fn prepare() {
    if REGISTERED.get().is_none() {
        if is_alone() {
            answer();
        } else {
            ask();
        }
    }
}

/// Is this certainly the only thread?
fn is_alone() -> bool {
    // Each thread is a directory there; `.` and `..` make the other two links.
    fs::metadata("/proc/self/task").is_ok_and(|tasks| tasks.nlink() == 3)
}

/// Asks the kernel, once, on a thread of its own.
#[cold]
fn ask() {
    static ASKED: Once = Once::new();
    ASKED.call_once(|| {
        let thread = thread::Builder::new().name("holdfast-barrier".to_owned());
        // If no thread can be spawned, asking here delays only this one.
        if without_idle_policy(|| thread.spawn(answer)).is_err() {
            answer();
        }
    });
}

/// Under Miri the call does not exist.
fn answer() {
    let register =
        || !cfg!(miri) && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok();
    REGISTERED.get_or_init(register);
}

/// Fences every thread of the process; `false` if that was impossible. At some moment within this
/// call, the caller sees what each thread did before. From then on, each thread sees what the
/// caller did before.
pub(crate) fn everywhere() -> bool {
    // For the calling thread itself.
    fence(Ordering::SeqCst);
    let mut fenced = is_available() && membarrier(MembarrierCommand::PrivateExpedited).is_ok();
    if !fenced && REGISTERED.get() == Some(&true) {
        BROKEN.store(true, Ordering::Relaxed);
        fenced = walk_everywhere();
    }
    fence(Ordering::SeqCst);
    fenced
}

/// As [`everywhere`], by the walk; refused for [`WALK_INTERVAL`] after a failure.
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

/// Time since the first call.
fn since_begin() -> Duration {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    BEGUN.get_or_init(Instant::now).elapsed()
}

/// Has [`INTERVAL`] passed since this last returned `true`?
pub(crate) fn is_due() -> bool {
    static PACE: Pace = Pace::new(INTERVAL);
    // Never 0: the first time is due.
    PACE.allows(since_begin() + INTERVAL)
}

/// A limit on how often something is done.
struct Pace {
    /// When it was last done, in nanoseconds.
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

    /// May it be done again? Does not count as doing it.
    fn would_allow(&self, now: Duration) -> bool {
        self.is_due(self.last.load(Ordering::Relaxed), now)
    }

    /// May it be done again? Of several threads that ask at once, one gets `true`.
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
