//! Work that falls into parts, on as many threads as there are processors.

use crate::hand;
use crate::idle_policy::without_idle_policy;
use crate::loan::lend;
use parking_lot::Mutex;
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

/// Does `work` once for each part, on the calling thread and as many others as make `threads` with
/// it; never more than there are parts, or processors that the caller may use. Whoever is done with one part takes the next.
/// One other thread is at hand, more are started for this call: it is for work of milliseconds.
///
/// # Panics
/// If `work` does, on whichever thread.
pub fn divide<T: Send>(parts: Vec<T>, threads: usize, work: impl Fn(T) + Sync) {
    let threads = threads.min(parts.len());
    let left = Mutex::new(parts.into_iter());
    let next = || left.lock().next();
    together(threads, || {
        while let Some(part) = next() {
            work(part);
        }
    });
}

/// Does `work` on the calling thread, and on as many others as make `threads` with it, never more than processors that the
/// caller may use. None of them need come: `work` ends when there is nothing left to do.
///
/// # Panics
/// If `work` does, on whichever thread.
pub(crate) fn together(threads: usize, work: impl Fn() + Sync) {
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
        let at_hand = usize::from(hand::reach().is_some());
        let start_others = || {
            for _ in 1 + at_hand..threads {
                let helper = thread::Builder::new().name("holdfast-helper".into());
                if without_idle_policy(|| helper.spawn_scoped(scope, help)).is_err() {
                    // The system has no thread to spare: those who are there do it all.
                    break;
                }
            }
            work();
        };
        if at_hand == 0 {
            start_others();
        } else {
            lend(&help, hand::send, start_others);
        }
    });
    // The scope has waited for them, but a thread sanitizer does not see how: this it sees.
    let ended = ended.load(Ordering::Acquire);
    debug_assert!(ended < threads, "more helpers than were started");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::time::{Duration, Instant};

    #[test]
    fn every_part_is_done_once_whatever_the_threads() {
        for threads in [0, 1, 2, 1000] {
            let done = Mutex::new(Vec::new());
            divide((0..100).collect(), threads, |part| done.lock().push(part));
            let mut done = done.into_inner();
            done.sort_unstable();
            assert_eq!(done, (0..100).collect::<Vec<_>>());
        }
        divide(Vec::<u8>::new(), 8, |_| unreachable!("there is none"));
    }

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
        divide(vec![1, 2, 3], 1, {
            let caller = thread::current().id();
            move |_| assert_eq!(thread::current().id(), caller)
        });
    }

    #[test]
    fn others_help_where_there_are_processors() {
        let met = Mutex::new(HashSet::new());
        let wanted = processors().min(2);
        let begun = Instant::now();
        divide((0..1000).collect(), 2, |_: u32| {
            met.lock().insert(thread::current().id());
            // Until the other one has come.
            while met.lock().len() < wanted && begun.elapsed() < Duration::from_secs(60) {
                thread::yield_now();
            }
        });
        assert_eq!(met.into_inner().len(), wanted);
    }
}
