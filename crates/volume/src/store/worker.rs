//! The thread that commits in time, and folds before the journal is full.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::Inner;
use super::timer::Timer;

/// The thread, and what it waits for.
#[derive(Debug)]
pub(super) struct Worker {
    bell: Arc<Bell>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Bell {
    state: Mutex<State>,
    rung: Condvar,
    /// Was asked for pages to be written early?
    early: AtomicBool,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// Is a checkpoint wanted?
    fold: bool,
    /// Or a commit, before its time? Until it is done: whoever still needs one asks again.
    commit: bool,
    /// Or that pages are written early? Until it is done.
    early: bool,
    stop: bool,
}

impl Worker {
    /// Starts it. `every`: so long after a change it commits, at most.
    pub(super) fn start(inner: &Arc<Inner>, every: Option<Duration>) -> Self {
        let bell = Arc::new(Bell::default());
        let (store, ringing) = (Arc::clone(inner), Arc::clone(&bell));
        let next = move || every.map(|every| Timer::new(every, Instant::now()));
        let work = move || {
            let mut timer = next();
            loop {
                let state = ringing.wait(timer.as_ref().map(Timer::due));
                if state.stop {
                    return;
                }
                let wanted = state.fold || state.commit;
                let is_time =
                    |timer: &mut Timer| timer.is_time(Instant::now(), store.waiting().0 > 0);
                let due = !wanted && timer.as_mut().is_some_and(is_time);
                // What fails stops the store: whoever comes next is told.
                if !wanted && !due {
                    if state.early {
                        // What cannot be written now a commit writes, or tells why not.
                        let _ = store.write_early();
                        ringing.went_early();
                        store.progress.step();
                    }
                    continue;
                }
                let _ = if state.fold {
                    store.checkpoint()
                } else {
                    store.make_durable(None)
                };
                ringing.committed();
                store.progress.step();
                timer = next();
            }
        };
        let thread = std::thread::Builder::new()
            .name("holdfast-volume".to_owned())
            .spawn(work)
            .ok();
        Self {
            bell,
            thread: Mutex::new(thread),
        }
    }

    /// Asks for a checkpoint.
    pub(super) fn ask_to_fold(&self) {
        let mut state = self.bell.state.lock();
        if !state.fold {
            state.fold = true;
            self.bell.rung.notify_one();
        }
    }

    /// Asks for a commit.
    pub(super) fn ask_to_commit(&self) {
        let mut state = self.bell.state.lock();
        if !state.commit {
            state.commit = true;
            self.bell.rung.notify_one();
        }
    }

    /// Asks for pages to be written early.
    pub(super) fn ask_to_write_early(&self) {
        // Relaxed: a hint. Whoever writes asks again and again until it is done.
        if !self.bell.early.load(Ordering::Relaxed) {
            self.bell.early.store(true, Ordering::Relaxed);
            self.bell.state.lock().early = true;
            self.bell.rung.notify_one();
        }
    }

    /// Ends it, and waits for that.
    pub(super) fn stop(&self) {
        self.bell.state.lock().stop = true;
        self.bell.rung.notify_one();
        if let Some(thread) = self.thread.lock().take() {
            let _ = thread.join();
        }
    }
}

impl Bell {
    fn wait(&self, due: Option<Instant>) -> State {
        let mut state = self.state.lock();
        if !state.fold && !state.commit && !state.early && !state.stop {
            match due {
                Some(due) => {
                    self.rung.wait_until(&mut state, due);
                }
                None => self.rung.wait(&mut state),
            }
        }
        let found = *state;
        state.fold = false;
        found
    }

    /// Pages were written early.
    fn went_early(&self) {
        self.state.lock().early = false;
        self.early.store(false, Ordering::Relaxed);
    }

    /// A commit was made, alone or with a checkpoint.
    fn committed(&self) {
        self.state.lock().commit = false;
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop();
    }
}
