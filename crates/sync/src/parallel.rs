//! Work on as many threads as there are processors.

use crate::idle_policy::without_idle_policy;
use rustix::thread::sched_getaffinity;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// How many processors the calling thread may use; at least one. The first call reads the limits of
/// control groups, which takes as long as freeing some ten thousand inodes. Later calls ask only
/// for the thread's own affinity.
#[must_use]
pub fn processors() -> usize {
    static SHARE: OnceLock<usize> = OnceLock::new();
    let all = || thread::available_parallelism().map_or(1, usize::from);
    let Ok(own) = sched_getaffinity(None) else {
        // More processors than fit into a set.
        return all();
    };
    let own = own.count() as usize;
    let share = SHARE.get_or_init(|| share_of_groups(own, all()));
    own.min(*share).max(1)
}

/// The limit from control groups, if `all` is below the `own` processors of the calling thread.
fn share_of_groups(own: usize, all: usize) -> usize {
    // Equal counts: the groups set no limit that shows.
    if all < own { all } else { usize::MAX }
}

/// Runs `work` on the calling thread and on helpers, on `threads` threads together, but never more
/// than the processors that the caller may use. `work` may run on fewer threads, and returns when
/// nothing is left to do. Helpers are started for this call, so it suits work of milliseconds.
///
/// # Panics
/// If `work` does, on any of the threads.
pub fn together(threads: usize, work: impl Fn() + Sync) {
    let threads = if threads > 1 {
        threads.min(processors())
    } else {
        1
    };
    if threads == 1 {
        return work();
    }
    let ended = AtomicUsize::new(0);
    let help = || {
        work();
        ended.fetch_add(1, Ordering::Release);
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            let helper = thread::Builder::new().name("holdfast-helper".into());
            if without_idle_policy(|| helper.spawn_scoped(scope, help)).is_err() {
                // The system has no thread to spare: the running ones do all the work.
                break;
            }
        }
        work();
    });
    // The scope has joined the helpers, but a thread sanitizer does not see how; it sees this pair.
    let ended = ended.load(Ordering::Acquire);
    debug_assert!(ended < threads, "more helpers than were started");
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use std::collections::HashSet;
    use std::time::{Duration, Instant};

    #[test]
    fn a_thread_that_is_bound_to_fewer_processors_has_fewer() {
        assert_eq!(
            (share_of_groups(8, 3), share_of_groups(8, 8)),
            (3, usize::MAX)
        );
        let before = processors();
        let bound = thread::spawn(|| {
            let mut set = sched_getaffinity(None).unwrap();
            let first = (0..rustix::thread::CpuSet::MAX_CPU).find(|cpu| set.is_set(*cpu));
            set.clear();
            set.set(first.unwrap());
            rustix::thread::sched_setaffinity(None, &set).unwrap();
            processors()
        });
        assert_eq!(bound.join().unwrap(), 1);
        assert_eq!(processors(), before);
        assert_eq!(before, thread::available_parallelism().unwrap().get());
    }

    #[test]
    fn one_thread_is_the_callers() {
        let caller = thread::current().id();
        together(1, || assert_eq!(thread::current().id(), caller));
    }

    #[test]
    fn others_help_where_there_are_processors() {
        let met = Mutex::new(HashSet::new());
        let wanted = processors().min(2);
        let begun = Instant::now();
        together(2, || {
            met.lock().insert(thread::current().id());
            // Until the other one has arrived.
            while met.lock().len() < wanted && begun.elapsed() < Duration::from_secs(60) {
                thread::yield_now();
            }
        });
        assert_eq!(met.into_inner().len(), wanted);
    }
}
