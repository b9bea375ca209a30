//! The threads that write and commit by the timer, and checkpoint before the journal is full.
//!
//! One commits and checkpoints, and waits for flushes. The other writes everything to the device's
//! cache, without a flush, so that a killed process loses little.
//!
//! A thread that finds nothing to do twice in a row sleeps without a deadline, until the next
//! change wakes it. So an idle volume causes no wake-ups.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use holdfast_core::shrinkers::within_store;
use holdfast_core::store::Lsn;
use parking_lot::{Condvar, Mutex};

use super::Inner;
use super::checkpoint::checkpoint;
use super::commit::{Promptness, commits_every, make_durable, rests, write_behind, writes_every};
use super::node_counts::read_the_rest;
use crate::error::{Error, Result};

#[derive(Debug)]
pub(super) struct Worker {
    signals: Arc<Signals>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// How soon changes are written and flushed.
    pub(super) promptness: Promptness,
}

#[derive(Debug, Default)]
struct Signals {
    state: Mutex<State>,
    wake_first: Condvar,
    /// Wakes the second thread.
    wake_second: Condvar,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// A checkpoint is requested.
    checkpoint: bool,
    /// A commit is requested. Cleared when one is done; a caller that needs another asks again.
    commit: bool,
    stop: bool,
    /// Counts the changes that woke an idle thread.
    changes: u64,
}

impl Worker {
    /// Starts the threads. `every`: the time within which changes are committed.
    ///
    /// # Errors
    /// [`Error::Thread`]: without them no commit would be made by the timer.
    pub(super) fn start(inner: &Arc<Inner>, every: Option<Duration>) -> Result<Self> {
        let writes = inner.journal.can_write();
        let worker = Self {
            signals: Arc::default(),
            threads: Mutex::default(),
            promptness: Promptness::of(every, writes),
        };
        let signals = Arc::clone(&worker.signals);
        inner.journal.when_roused(move || signals.rouse());
        worker.spawn("holdfast-volume", inner, move |store, signals| {
            // A failure stops the store, which reports it.
            let _ = read_the_rest(store);
            signals.commit_in_time(store, every);
        })?;
        if let Some(every) = writes_every(every, writes) {
            worker.spawn("holdfast-write", inner, move |store, signals| {
                signals.write_in_time(store, every);
            })?;
        }
        Ok(worker)
    }

    fn spawn(
        &self,
        name: &'static str,
        inner: &Arc<Inner>,
        loops: impl Fn(&Inner, &Signals) + Send + 'static,
    ) -> Result<()> {
        let (store, signals) = (Arc::clone(inner), Arc::clone(&self.signals));
        let work = move || {
            let _within = within_store();
            // The loop ends when told to, or by a panic. That stops the store, as the timer is
            // gone.
            let _ = store.stop.whole("the work of the volume's threads", || {
                loops(&store, &signals);
                Ok(())
            });
        };
        let thread = std::thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(work).map_err(Error::Thread)?;
        self.threads.lock().push(thread);
        Ok(())
    }

    /// Requests a checkpoint.
    pub(super) fn ask_to_checkpoint(&self) {
        let mut state = self.signals.state.lock();
        if !state.checkpoint {
            state.checkpoint = true;
            self.signals.wake_first.notify_one();
        }
    }

    /// Requests a commit.
    pub(super) fn ask_to_commit(&self) {
        let mut state = self.signals.state.lock();
        if !state.commit {
            state.commit = true;
            self.signals.wake_first.notify_one();
        }
    }

    /// Ends the threads and joins them.
    pub(super) fn stop(&self) {
        self.signals.state.lock().stop = true;
        self.signals.wake_first.notify_one();
        self.signals.wake_second.notify_one();
        for thread in std::mem::take(&mut *self.threads.lock()) {
            let _ = thread.join();
        }
    }
}

/// The LSN at which a thread last found nothing to do.
#[derive(Debug, Default)]
struct Quiet(Option<Lsn>);

impl Quiet {
    /// Is there again nothing to do, and was no commit made in between? A commit moves the LSN.
    fn lasts(&mut self, store: &Inner) -> bool {
        let cut = store.journal.before_next_cut();
        self.0.replace(cut) == Some(cut)
    }
}

impl Signals {
    /// Wakes both threads.
    fn rouse(&self) {
        self.state.lock().changes += 1;
        self.wake_first.notify_one();
        self.wake_second.notify_one();
    }

    /// Loop of the first thread: commits by the timer and on request.
    fn commit_in_time(&self, store: &Inner, every: Option<Duration>) {
        let due_after = |now| every.map(|every| now + commits_every(every));
        let (mut due, mut quiet) = (due_after(Instant::now()), Quiet::default());
        loop {
            let state = self.wait(due, None);
            if state.stop {
                return;
            }
            let now = Instant::now();
            let is_time = due.is_some_and(|due| due <= now);
            // A failure stops the store, and the next call reports it.
            if state.checkpoint || state.commit || is_time && !rests(store, true) {
                let _ = match state.checkpoint {
                    true => checkpoint(store),
                    false => make_durable(store, None),
                };
                self.committed();
                due = due_after(now);
            } else {
                if is_time {
                    if quiet.lasts(store) {
                        self.wait(None, Some(state.changes));
                    }
                    due = due_after(Instant::now());
                }
                continue;
            }
            store.pool.look_at_host_in_time(store.reader.blocks());
            store.stop.progress.step();
        }
    }

    /// Loop of the second thread: writes by the timer.
    fn write_in_time(&self, store: &Inner, every: Duration) {
        let mut quiet = Quiet::default();
        loop {
            let due = Instant::now() + every;
            let mut state = self.state.lock();
            while !state.stop && !self.wake_second.wait_until(&mut state, due).timed_out() {}
            let changes = state.changes;
            if state.stop {
                return;
            }
            drop(state);
            if !rests(store, false) {
                // A failure stops the store.
                let _ = write_behind(store);
                store.pool.look_at_host_in_time(store.reader.blocks());
                store.stop.progress.step();
            } else if quiet.lasts(store) {
                let mut state = self.state.lock();
                while !state.stop && state.changes == changes {
                    self.wake_second.wait(&mut state);
                }
            }
        }
    }

    /// Waits until something is requested or `due`; with `changes`, until their count differs.
    fn wait(&self, due: Option<Instant>, changes: Option<u64>) -> State {
        let mut state = self.state.lock();
        let is_asked = |state: &State| state.checkpoint || state.commit || state.stop;
        while !is_asked(&state) && changes.is_none_or(|changes| state.changes == changes) {
            match due {
                Some(due) if self.wake_first.wait_until(&mut state, due).timed_out() => break,
                Some(_) => {}
                None => self.wake_first.wait(&mut state),
            }
        }
        let found = *state;
        if changes.is_none() {
            state.checkpoint = false;
        }
        found
    }

    /// A commit was made, alone or by a checkpoint.
    fn committed(&self) {
        self.state.lock().commit = false;
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop();
    }
}
