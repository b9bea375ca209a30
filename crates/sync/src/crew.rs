//! Work that falls into parts, on as many threads as there are processors.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// How many processors the calling thread may use; at least one. Asking the system reads files: it
/// takes a while.
#[must_use]
pub fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Does `work` once for each part, on the calling thread and as many others as make `threads` with
/// it; never more than there are parts, or processors that the caller may use. Whoever is done with one part takes the next.
/// Other threads are started for this call: it is for work of milliseconds.
///
/// # Panics
/// If `work` does, on whichever thread.
pub fn divide<T: Send>(parts: Vec<T>, threads: usize, work: impl Fn(T) + Sync) {
    let wanted = threads.min(parts.len());
    let threads = if wanted > 1 {
        wanted.min(processors())
    } else {
        1
    };
    if threads == 1 {
        return parts.into_iter().for_each(work);
    }
    let left = Mutex::new(parts.into_iter());
    let next = || left.lock().next();
    let take_part = || {
        while let Some(part) = next() {
            work(part);
        }
    };
    let ended = AtomicUsize::new(0);
    let help = || {
        take_part();
        ended.fetch_add(1, Ordering::Release);
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            let helper = thread::Builder::new().name("holdfast-helper".into());
            if helper.spawn_scoped(scope, help).is_err() {
                // The system has no thread to spare: those who are there do it all.
                break;
            }
        }
        take_part();
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
