//! Files that wait for the database, and the thread `holdfast-dirty` that brings them there.
//!
//! A file goes one second after its last change, five seconds after its first, as soon as it fills
//! a pack, and as soon as half of the limit of dirty bytes is reached. At the limit writers wait.

use super::dirty::{FILES, Signal};
use super::file::State;
use super::files::Files;
use holdfast_core::interrupt::is_interrupted;
use holdfast_types::{Errno, Result};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// A file waits at most so long after its last change, and after its first.
const REST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(5);

impl Files {
    /// Starts the thread, if it does not run.
    pub(super) fn start_writeback(self: &Arc<Self>) -> std::io::Result<()> {
        let signal = Arc::clone(&self.dirty.signal);
        if std::mem::replace(&mut signal.state.lock().runs, true) {
            return Ok(());
        }
        let files = Arc::downgrade(self);
        let thread = std::thread::Builder::new().name("holdfast-dirty".into());
        thread.spawn(move || run(&files, &signal)).map(drop)
    }

    /// Waits while too much waits for the database. Bytes are about to be added.
    ///
    /// # Errors
    /// `EIO`: nothing could be stored for a long time. `EINTR`: the caller was ended.
    pub(super) fn throttle(&self, bytes: u64) -> Result<()> {
        let dirty = &self.dirty;
        let limit = self.limits.dirty();
        let held = || dirty.bytes.load(Relaxed);
        if bytes == 0 || held() <= limit / 2 {
            return Ok(());
        }
        dirty.hurry();
        // The object store may be tried twice without success.
        let until = || Instant::now() + 2 * self.options.retry + REST;
        let (mut seen, mut end) = (dirty.successes.load(Relaxed), until());
        let mut state = dirty.signal.state.lock();
        while held() > limit {
            state.urgent = true;
            dirty.signal.wake.notify_one();
            dirty.signal.room.wait_for(&mut state, REST);
            if is_interrupted() {
                return Err(Errno::EINTR);
            }
            let now = dirty.successes.load(Relaxed);
            if now != seen {
                (seen, end) = (now, until());
            } else if Instant::now() > end {
                return Err(Errno::EIO);
            }
        }
        Ok(())
    }

    /// Flushes files that are due; returns when the next one is.
    fn write_back(&self, urgent: bool) -> Option<Instant> {
        let now = Instant::now();
        let (mut due, mut next) = (Vec::new(), None::<Instant>);
        for file in self.dirty.files() {
            let state = file.state.lock();
            let Some(at) = due_at(&state, urgent, self.limits.pack()) else {
                continue;
            };
            let first = state.waiting.as_ref().map_or(now, |it| it.first);
            drop(state);
            match at <= now {
                true => due.push((first, file)),
                false => next = Some(next.map_or(at, |next| next.min(at))),
            }
        }
        due.sort_unstable_by_key(|(first, _)| *first);
        for some in due.chunks(FILES) {
            let flights = some
                .iter()
                .filter_map(|(_, file)| self.depart(file, false).ok()?);
            let flights = flights.collect();
            // After a failure the changes of the file wait still.
            self.send_all(flights);
            if urgent && self.dirty.bytes.load(Relaxed) <= self.limits.dirty() / 4 {
                break;
            }
        }
        match due.is_empty() {
            true => next,
            false => Some(Instant::now()),
        }
    }
}

/// When is a file to be flushed? `None`: nothing of it waits, or it is on its way.
fn due_at(state: &State, urgent: bool, pack: u64) -> Option<Instant> {
    let waiting = state.waiting.as_ref()?;
    if state.flushing {
        return None;
    }
    let at = match urgent || waiting.memory() >= pack {
        true => waiting.first,
        false => (waiting.last + REST).min(waiting.first + LONGEST),
    };
    Some(state.retry_at.map_or(at, |retry| retry.max(at)))
}

fn run(files: &Weak<Files>, signal: &Signal) {
    let mut next = None;
    loop {
        let mut state = signal.state.lock();
        while !state.stopped && !state.urgent && !state.more {
            match next {
                None => signal.wake.wait(&mut state),
                Some(at) => {
                    if signal.wake.wait_until(&mut state, at).timed_out() {
                        break;
                    }
                }
            }
        }
        if state.stopped {
            return;
        }
        let urgent = std::mem::take(&mut state.urgent);
        state.more = false;
        drop(state);
        let Some(files) = files.upgrade() else {
            return;
        };
        next = files.write_back(urgent);
        // A file that another thread flushes, or that changes now, is looked at later.
        if next.is_none() && !files.dirty.is_empty() {
            next = Some(Instant::now() + REST);
        }
    }
}
