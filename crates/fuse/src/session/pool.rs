//! The threads that serve one source of requests: a processor's queue, or `/dev/fuse`.
//!
//! A request is served by the thread that takes it, from its first byte to its reply, even if it
//! waits for a device, a commit or a lock. A wait delays no other request, because another thread
//! of the pool is ready. Waits are not predicted, and requests are not handed over; a pool without
//! a ready thread grows.
//!
//! # Invariants
//! `ready` counts the threads that wait for a request or commit a reply. While `ready == 0`, new
//! requests wait in the kernel, and one of these holds:
//! - `begun` grows: requests are being served, and each reply fetches the next;
//! - the [watch](super::watch) is awake, and adds a thread at its next look;
//! - the pool has its largest size.
//!
//! A wait for another request (`request_waits`) ends only when that is served: an unlock, perhaps
//! never, or a write of the kernel's. It raises the largest size of the pool by one, and starts
//! only if `threads > request_waits`: otherwise nothing could serve that request.
//!
//! # Locking
//! None: counters only.

use super::service::Service;
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

/// Most threads added at once.
const ADDED_MAX: usize = 8;
/// So often a wait for another request adds threads before it is refused: those that were added may
/// wait as well.
const ATTEMPTS_MAX: u32 = 8;
/// Polling interval while a thread starts.
const START_POLL: Duration = Duration::from_micros(50);

/// Starts threads of one kind.
pub(crate) trait SpawnWorker: Send + Sync {
    /// Starts one more thread of the pool, which calls [`WorkerPool::join`] and drops `starting`
    /// when ready.
    ///
    /// # Errors
    /// There is no memory or no thread; nothing was started.
    fn spawn_worker(&self, starting: StartingWorker) -> io::Result<()>;
}

/// The threads that serve one source of requests. Aligned, because each processor writes its own.
#[repr(align(128))]
pub(crate) struct WorkerPool {
    /// Its name in the log.
    pub(crate) name: String,
    ready: AtomicUsize,
    threads: AtomicUsize,
    /// Requests taken.
    begun: AtomicU64,
    /// `begun` at the last look; written by the watch only.
    seen: AtomicU64,
    /// Threads in a wait for another request: the unlock of a file, or a write.
    request_waits: AtomicUsize,
    /// Most threads without those.
    threads_max: usize,
    /// Threads that are starting.
    starting: AtomicUsize,
    /// Was a failure to start a thread logged?
    complained: AtomicBool,
    spawn_worker: Box<dyn SpawnWorker>,
    pub(crate) service: Arc<Service>,
}

/// A starting thread. It is counted until this is dropped: after [`WorkerPool::join`], or when the
/// thread fails to start.
pub(crate) struct StartingWorker {
    pub(crate) pool: Arc<WorkerPool>,
}

impl StartingWorker {
    pub(super) fn new(pool: &Arc<WorkerPool>) -> Self {
        pool.starting.fetch_add(1, Ordering::SeqCst);
        Self { pool: pool.clone() }
    }
}

impl Drop for StartingWorker {
    fn drop(&mut self) {
        self.pool.starting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl WorkerPool {
    pub(crate) fn new(
        name: String,
        threads_max: usize,
        spawn_worker: Box<dyn SpawnWorker>,
        service: &Arc<Service>,
    ) -> Arc<Self> {
        Arc::new(Self {
            name,
            ready: AtomicUsize::new(0),
            threads: AtomicUsize::new(0),
            begun: AtomicU64::new(0),
            seen: AtomicU64::new(0),
            request_waits: AtomicUsize::new(0),
            threads_max,
            starting: AtomicUsize::new(0),
            complained: AtomicBool::new(false),
            spawn_worker,
            service: service.clone(),
        })
    }

    /// The calling thread is ready for its first request. It belongs to the pool until the session
    /// ends.
    pub(crate) fn join(&self) {
        self.threads.fetch_add(1, Ordering::SeqCst);
        self.ready.fetch_add(1, Ordering::SeqCst);
    }

    /// The calling thread has taken a request.
    pub(crate) fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
        // SeqCst: pairs with the last look of a watch that is about to sleep.
        if self.ready.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.service.wakeup.wake();
        }
    }

    /// The calling thread commits a reply, and is ready after that.
    pub(crate) fn end(&self) {
        self.ready.fetch_add(1, Ordering::SeqCst);
    }

    /// How many threads there are.
    pub(crate) fn threads(&self) -> usize {
        self.threads.load(Ordering::Relaxed)
    }

    /// How many requests were taken so far, if no thread is ready or starting. While this stays the
    /// same number, none of those requests is answered.
    pub(super) fn begun_while_busy(&self) -> Option<u64> {
        let begun = self.begun.load(Ordering::Relaxed);
        (!self.has_somebody()).then_some(begun)
    }

    fn is_full(&self) -> bool {
        let waiting = self.request_waits.load(Ordering::SeqCst);
        let threads = self.threads() + self.starting.load(Ordering::SeqCst);
        threads >= self.threads_max.saturating_add(waiting)
    }

    fn has_somebody(&self) -> bool {
        self.ready.load(Ordering::SeqCst) + self.starting.load(Ordering::SeqCst) > 0
    }

    /// Called by the watch: a pool without a ready thread that took no request since the last call
    /// grows. Returns whether it must be looked at again.
    pub(super) fn look(self: &Arc<Self>) -> bool {
        let begun = self.begun.load(Ordering::Relaxed);
        let stalled = self.seen.swap(begun, Ordering::Relaxed) == begun;
        if self.has_somebody() || self.is_full() {
            return false;
        }
        if stalled {
            self.grow();
        }
        true
    }

    /// Is there a thread that waits for no other request: ready, or serving one that ends by
    /// itself? If not, the pool grows. A starting thread may fail, so it does not count before it
    /// has joined; the answer waits for that.
    pub(super) fn has_another(self: &Arc<Self>) -> bool {
        let mut attempts = 0..ATTEMPTS_MAX;
        loop {
            // Loaded before `threads`: `join` precedes the drop of `StartingWorker`.
            let starting = self.starting.load(Ordering::SeqCst);
            if self.threads.load(Ordering::SeqCst) > self.request_waits.load(Ordering::SeqCst) {
                return true;
            }
            // The thread that was ready may have begun a wait itself, and not have grown the pool.
            if starting == 0 && (attempts.next().is_none() || !self.grow()) {
                return false;
            }
            thread::sleep(START_POLL);
        }
    }

    /// Ensures that a thread is ready or starting, if possible, before the calling thread serves a
    /// long request.
    pub(super) fn stand_in(self: &Arc<Self>) {
        if !self.has_somebody() {
            self.grow();
        }
    }

    /// Adds half as many threads as there are: each of them waits, so more will. Returns whether
    /// one was started.
    fn grow(self: &Arc<Self>) -> bool {
        for added in 0..(self.threads() / 2).clamp(1, ADDED_MAX) {
            if self.is_full() {
                return added > 0;
            }
            if let Err(error) = self.spawn_worker.spawn_worker(StartingWorker::new(self)) {
                if !self.complained.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        pool = self.name,
                        threads = self.threads(),
                        %error,
                        "no further thread is to be had: requests wait for those there are"
                    );
                }
                return added > 0;
            }
        }
        true
    }
}

/// A wait of a thread for another request: an unlock, perhaps forever, or a write of the kernel's.
pub(super) struct RequestWait {
    pool: Arc<WorkerPool>,
}

impl RequestWait {
    /// Counts one more; `None` if the limit is reached.
    pub(super) fn new(pool: &Arc<WorkerPool>) -> Option<Self> {
        let service = &pool.service;
        pool.request_waits.fetch_add(1, Ordering::SeqCst);
        let before = service.request_waits.fetch_add(1, Ordering::SeqCst);
        let wait = Self { pool: pool.clone() };
        (before < service.request_waits_max).then_some(wait)
    }
}

impl Drop for RequestWait {
    fn drop(&mut self) {
        let service = &self.pool.service;
        service.request_waits.fetch_sub(1, Ordering::SeqCst);
        self.pool.request_waits.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::session::service::tests::service;
    use parking_lot::Mutex;

    /// Holds starting threads until the test lets them join; fails while there is no memory.
    #[derive(Default)]
    pub(in crate::session) struct Agency {
        hired: Mutex<Vec<StartingWorker>>,
        no_memory: AtomicBool,
    }

    impl SpawnWorker for Arc<Agency> {
        fn spawn_worker(&self, starting: StartingWorker) -> io::Result<()> {
            if self.no_memory.load(Ordering::SeqCst) {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
            self.hired.lock().push(starting);
            Ok(())
        }
    }

    impl Agency {
        /// Starting threads join; returns their number.
        fn arrive(&self) -> usize {
            let hired = std::mem::take(&mut *self.hired.lock());
            hired.iter().for_each(|starting| starting.pool.join());
            hired.len()
        }
    }

    /// Asks for a ready thread; returns whether one is ready or starting.
    fn stands_in(pool: &Arc<WorkerPool>) -> bool {
        pool.stand_in();
        pool.has_somebody()
    }

    pub(in crate::session) fn pool(
        threads: usize,
        threads_max: usize,
    ) -> (Arc<WorkerPool>, Arc<Agency>) {
        let agency = Arc::new(Agency::default());
        let spawn_worker = Box::new(agency.clone());
        let pool = WorkerPool::new("test".into(), threads_max, spawn_worker, &service());
        (0..threads).for_each(|_| pool.join());
        (pool, agency)
    }

    #[test]
    fn a_wait_for_another_request_begins_beside_one_that_is_at_work_and_not_where_all_wait() {
        let (pool, agency) = pool(2, 1);
        pool.begin();
        pool.begin();
        agency.no_memory.store(true, Ordering::SeqCst);
        let first = RequestWait::new(&pool).unwrap();
        assert!(!stands_in(&pool), "nobody is ready, nor to be had");
        assert!(pool.has_another(), "the other one ends by itself");
        let second = RequestWait::new(&pool).unwrap();
        assert!(!stands_in(&pool) && !pool.has_another());
        agency.no_memory.store(false, Ordering::SeqCst);
        assert!(stands_in(&pool), "each wait lets in one more");
        drop((first, second));
        assert_eq!(agency.arrive(), 1);
    }

    #[test]
    fn no_wait_begins_because_of_a_thread_that_fails_to_start() {
        let (pool, agency) = pool(1, 100);
        pool.begin();
        let _wait = RequestWait::new(&pool).unwrap();
        assert!(stands_in(&pool), "one is on the way");
        thread::scope(|scope| {
            let another = scope.spawn(|| pool.has_another());
            thread::sleep(Duration::from_millis(5));
            agency.no_memory.store(true, Ordering::SeqCst);
            agency.hired.lock().clear();
            assert!(!another.join().unwrap());
        });
    }

    #[test]
    fn a_wait_begins_though_the_thread_that_was_ready_waits_as_well() {
        let (pool, agency) = pool(2, 100);
        pool.begin();
        let _first = RequestWait::new(&pool).unwrap();
        assert!(stands_in(&pool), "the other is ready");
        // The other counts its own wait, and has not added a thread yet.
        pool.begin();
        let _second = RequestWait::new(&pool).unwrap();
        thread::scope(|scope| {
            let another = scope.spawn(|| pool.has_another());
            while agency.arrive() == 0 && !another.is_finished() {
                thread::yield_now();
            }
            assert!(another.join().unwrap());
        });
    }

    #[test]
    fn a_wait_begins_once_the_thread_on_the_way_has_joined() {
        let (pool, agency) = pool(1, 100);
        pool.begin();
        let _wait = RequestWait::new(&pool).unwrap();
        assert!(stands_in(&pool), "one is on the way");
        thread::scope(|scope| {
            let another = scope.spawn(|| pool.has_another());
            thread::sleep(Duration::from_millis(5));
            assert_eq!(agency.arrive(), 1);
            assert!(another.join().unwrap());
        });
    }

    #[test]
    fn a_crew_grows_when_all_wait_and_not_while_requests_are_served() {
        let (pool, agency) = pool(2, 100);
        pool.begin();
        assert!(!pool.look(), "one is ready");
        pool.begin();
        assert!(pool.look(), "something was begun since the last look");
        pool.end();
        pool.begin();
        assert!(pool.look(), "and again");
        assert_eq!(agency.arrive(), 0);
        assert!(pool.look());
        assert!(!pool.look(), "somebody is on the way");
        assert_eq!(agency.arrive(), 1);
        assert_eq!(pool.threads(), 3);
    }

    #[test]
    fn a_crew_whose_threads_all_meet_a_wait_grows_by_half_at_a_time_and_to_its_limit() {
        let (pool, agency) = pool(2, 30);
        let mut looks = 0;
        while pool.threads() < 30 {
            while pool.ready.load(Ordering::SeqCst) > 0 {
                pool.begin();
            }
            pool.look();
            agency.arrive();
            looks += 1;
        }
        assert!(looks < 30, "{looks} looks");
        while pool.ready.load(Ordering::SeqCst) > 0 {
            pool.begin();
        }
        for _ in 0..3 {
            assert!(!pool.look(), "nothing can be done");
        }
        assert_eq!(agency.arrive(), 0);
        // One more thread for each wait that may last forever.
        let wait = RequestWait::new(&pool).unwrap();
        assert!(stands_in(&pool));
        assert_eq!(agency.arrive(), 1);
        drop(wait);
    }

    #[test]
    fn what_surely_lasts_has_somebody_stand_in_first() {
        let (pool, agency) = pool(2, 100);
        pool.begin();
        assert!(stands_in(&pool));
        assert_eq!(agency.arrive(), 0, "the other is ready");
        pool.begin();
        assert!(stands_in(&pool));
        assert!(stands_in(&pool), "one on the way is enough");
        assert_eq!(agency.arrive(), 1);
    }

    #[test]
    fn without_a_thread_to_be_had_nobody_stands_in_and_nothing_is_left_behind() {
        let (pool, agency) = pool(1, 100);
        agency.no_memory.store(true, Ordering::SeqCst);
        pool.begin();
        assert!(!stands_in(&pool));
        assert_eq!(pool.starting.load(Ordering::SeqCst), 0);
        agency.no_memory.store(false, Ordering::SeqCst);
        assert!(stands_in(&pool), "it is tried again");
        assert_eq!(agency.arrive(), 1);
    }

    #[test]
    fn only_so_many_wait_for_locks_and_each_gives_its_place_back() {
        let (pool, _) = pool(1, 100);
        let max = pool.service.request_waits_max;
        let waits: Vec<_> = (0..max).map(|_| RequestWait::new(&pool).unwrap()).collect();
        assert!(RequestWait::new(&pool).is_none());
        drop(waits);
        assert!(RequestWait::new(&pool).is_some());
        assert_eq!(pool.request_waits.load(Ordering::SeqCst), 0);
    }
}
