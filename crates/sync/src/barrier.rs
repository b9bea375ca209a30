//! A fence on every running thread of the process, from one of them: membarrier(2).
//!
//! It lets those who do something all the time go without a fence, at the expense of those who do
//! something seldom (as in P. E. McKenney's sys_membarrier for user-space RCU).

use crate::idle_policy::without_idle_policy;
use rustix::thread::{MembarrierCommand, membarrier};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Once, OnceLock};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// Threads are interrupted no more often than once in this time, unless it must be.
const INTERVAL: Duration = Duration::from_millis(1);

/// It worked once and then failed: nobody relies on it from now on.
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
    let fenced = is_available() && membarrier(MembarrierCommand::PrivateExpedited).is_ok();
    if !fenced && REGISTERED.get().is_some() {
        BROKEN.store(true, Ordering::Relaxed);
    }
    fence(Ordering::SeqCst);
    fenced
}

/// Is it long enough since the last time that this said so?
pub(crate) fn is_due() -> bool {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    static PACE: Pace = Pace(AtomicU64::new(0));
    // Never 0: the first time is due.
    PACE.allows(BEGUN.get_or_init(Instant::now).elapsed() + INTERVAL)
}

/// The last time that something was done which is done seldom, in nanoseconds.
struct Pace(AtomicU64);

impl Pace {
    /// May it be done again? Of several who ask at the same time one is told so.
    fn allows(&self, now: Duration) -> bool {
        let last = self.0.load(Ordering::Relaxed);
        let due = now.saturating_sub(Duration::from_nanos(last)) >= INTERVAL;
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let order = Ordering::Relaxed;
        due && self.0.compare_exchange(last, now, order, order).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_due_when_an_interval_has_passed() {
        let pace = Pace(AtomicU64::new(0));
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
