//! Threads for what may block: made on demand, bounded in number, gone when idle.

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
    work: Condvar,
    gone: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    threads: usize,
    idle: usize,
    closed: bool,
}

impl Workers {
    pub(crate) fn new(name: &'static str, limit: usize) -> Self {
        let shared = Shared {
            name,
            limit: limit.max(1),
            processors: sched_getaffinity(None).ok(),
            state: Mutex::default(),
            work: Condvar::new(),
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
        // Idle threads already have the queued jobs to themselves.
        let free = state.idle > state.queue.len();
        if !free && state.threads >= self.shared.limit && !may_queue {
            return Err(job);
        }
        state.queue.push_back(job);
        if free {
            self.shared.work.notify_one();
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
        self.shared.work.notify_all();
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
            state.idle += 1;
            let timed_out = self.work.wait_for(&mut state, IDLE).timed_out();
            state.idle -= 1;
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
