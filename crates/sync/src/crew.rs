//! Work on as many threads as there are processors.

use crate::idle_policy::without_idle_policy;
use rustix::thread::sched_getaffinity;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// How many processors the calling thread may use; at least one. The first time it reads what control groups allow the
/// process, which takes as long as freeing some ten thousand inodes; later it asks for the thread's own alone.
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

/// What groups allow, of a thread that may use `own` processors, and `all` as far as they allow it.
fn share_of_groups(own: usize, all: usize) -> usize {
    // As many as its own: they allow more, as far as one can see.
    if all < own { all } else { usize::MAX }
}

/// Does `work` on the calling thread, and on as many others as make `threads` with it: never more than processors that the
/// caller may use. `work` may run on fewer threads, and ends when nothing is left to do. The other threads are started for
/// this call: it is for work of milliseconds.
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
                // The system has no thread to spare: those that run do all of it.
                break;
            }
        }
        work();
    });
    // The scope has waited for them, but a thread sanitizer does not see how: this it sees.
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
            // Until the other one has come.
            while met.lock().len() < wanted && begun.elapsed() < Duration::from_secs(60) {
                thread::yield_now();
            }
        });
        assert_eq!(met.into_inner().len(), wanted);
    }
}
