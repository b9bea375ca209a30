//! Threads for what may block: made on demand, bounded in number, gone when idle.
//!
//! The one that became idle last works first. What it has at hand (caches, memory of the allocator) is used
//! again, and the others, which a burst of requests made, find no work and go.

use parking_lot::{Condvar, Mutex};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::{collections::VecDeque, sync::Arc, thread, time::Duration};

/// How long a worker waits for work before it goes.
const IDLE: Duration = Duration::from_secs(10);

/// Called on a worker with `true`, or by whoever could not bring it to one with `false`.
pub(crate) type Job = Box<dyn FnOnce(bool) + Send>;

/// A crew of workers.
#[derive(Clone)]
pub(crate) struct Workers {
    shared: Arc<Shared>,
}

struct Shared {
    name: &'static str,
    limit: usize,
    /// Where workers may run: a thread pinned to its processor must not hand that down to them.
    processors: Option<CpuSet>,
    /// Guards the queue and the counts of threads.
    state: Mutex<State>,
    gone: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    threads: usize,
    /// What wakes those who wait for work, in the order in which they began to.
    idle: Vec<Arc<Condvar>>,
    closed: bool,
}

impl Workers {
    pub(crate) fn new(name: &'static str, limit: usize) -> Self {
        let shared = Shared {
            name,
            limit: limit.max(1),
            processors: sched_getaffinity(None).ok(),
            state: Mutex::default(),
            gone: Condvar::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Runs the job on a worker, after others if all are busy; gives it back when closed.
    pub(crate) fn queue(&self, job: Job) -> Result<(), Job> {
        self.submit(job, true)
    }

    /// Runs the job on a worker that is free now, or gives it back: for jobs that wait for
    /// others of their kind and so must not queue behind them.
    pub(crate) fn run_now(&self, job: Job) -> Result<(), Job> {
        self.submit(job, false)
    }

    fn submit(&self, job: Job, may_queue: bool) -> Result<(), Job> {
        let mut state = self.shared.state.lock();
        if state.closed {
            return Err(job);
        }
        let idle = state.idle.pop();
        if idle.is_none() && state.threads >= self.shared.limit && !may_queue {
            return Err(job);
        }
        state.queue.push_back(job);
        if let Some(idle) = idle {
            idle.notify_one();
        } else if state.threads < self.shared.limit {
            let shared = self.shared.clone();
            let spawned = thread::Builder::new()
                .name(self.shared.name.into())
                .spawn(move || shared.run());
            match spawned {
                Ok(_) => state.threads += 1,
                // Others will come to it; without others it must not stay behind.
                Err(_) if state.threads > 0 && may_queue => {}
                Err(_) => return state.queue.pop_back().map_or(Ok(()), Err),
            }
        }
        Ok(())
    }

    /// Takes no more jobs, and waits until those under way are done.
    pub(crate) fn close(&self) {
        let mut state = self.shared.state.lock();
        state.closed = true;
        for idle in &state.idle {
            idle.notify_one();
        }
        while state.threads > 0 {
            self.shared.gone.wait(&mut state);
        }
    }
}

impl Shared {
    fn run(&self) {
        if let Some(processors) = &self.processors {
            // Refused, the worker stays where its maker was: slower, not wrong.
            let _ = sched_setaffinity(None, processors);
        }
        let bell = Arc::new(Condvar::new());
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.queue.pop_front() {
                drop(state);
                job(true);
                state = self.state.lock();
                continue;
            }
            if state.closed {
                break;
            }
            state.idle.push(bell.clone());
            let timed_out = bell.wait_for(&mut state, IDLE).timed_out();
            // Whoever woke it has taken it from the others; nobody did if the time is over.
            state.idle.retain(|other| !Arc::ptr_eq(other, &bell));
            if timed_out && state.queue.is_empty() {
                break;
            }
        }
        state.threads -= 1;
        self.gone.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{
        Barrier,
        atomic::{AtomicUsize, Ordering},
    };

    #[test]
    fn jobs_queue_behind_a_full_crew_and_all_run() {
        let workers = Workers::new("test", 2);
        let done = Arc::new(AtomicUsize::new(0));
        for _ in 0..100 {
            let done = done.clone();
            let job = Box::new(move |_: bool| {
                done.fetch_add(1, Ordering::SeqCst);
            });
            assert!(workers.queue(job).is_ok());
        }
        workers.close();
        assert_eq!(done.load(Ordering::SeqCst), 100);
        assert!(workers.run_now(Box::new(|_| ())).is_err());
    }

    #[test]
    fn a_crew_that_has_time_leaves_it_to_the_one_who_was_idle_last() {
        let workers = Workers::new("test", 8);
        let barrier = Arc::new(Barrier::new(9));
        for _ in 0..8 {
            let inside = barrier.clone();
            let job = Box::new(move |_: bool| {
                inside.wait();
            });
            assert!(workers.queue(job).is_ok());
        }
        barrier.wait();
        let wait_until_all_are_idle = || {
            while workers.shared.state.lock().idle.len() < 8 {
                thread::yield_now();
            }
        };
        let who = Arc::new(Mutex::new(Vec::new()));
        for _ in 0..50 {
            wait_until_all_are_idle();
            let who = who.clone();
            let job = Box::new(move |_: bool| who.lock().push(thread::current().id()));
            assert!(workers.queue(job).is_ok());
        }
        // The end wakes them all.
        wait_until_all_are_idle();
        workers.close();
        let who = who.lock();
        assert!(who.len() == 50 && who.iter().all(|id| *id == who[0]));
    }

    #[test]
    fn a_job_that_must_not_queue_is_given_back_by_a_full_crew() {
        let workers = Workers::new("test", 1);
        let barrier = Arc::new(Barrier::new(2));
        let inside = barrier.clone();
        assert!(
            workers
                .run_now(Box::new(move |_| {
                    inside.wait();
                }))
                .is_ok()
        );
        assert!(workers.run_now(Box::new(|_| ())).is_err());
        barrier.wait();
        workers.close();
    }
}
