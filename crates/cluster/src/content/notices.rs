//! Notices to the core that a file differs from what callers saw, or that bytes of it are lost.
//!
//! The core may lock the file to take a notice in, and a thread that holds this lock may wait for a
//! flush. So the thread of a flush only leaves the notice, and the thread `holdfast-notice` gives
//! it to the core.

use holdfast_core::store::Changes;
use holdfast_types::{Errno, Ino};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};

/// Notices that wait.
#[derive(Default)]
pub(super) struct Notices {
    changes: OnceLock<Weak<dyn Changes>>,
    queue: Arc<Queue>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    /// Files, and why bytes of them are lost, if some are.
    files: BTreeMap<Ino, Option<Errno>>,
    runs: bool,
    stopped: bool,
}

impl Notices {
    /// Sets the receiver.
    pub(super) fn attach(&self, changes: Weak<dyn Changes>) {
        // Called once.
        let _ = self.changes.set(changes);
    }

    /// The content of a file is another. `lost`: what was written is not among it.
    pub(super) fn add(&self, ino: Ino, lost: Option<Errno>) {
        let Some(changes) = self.changes.get() else {
            return;
        };
        let mut state = self.queue.state.lock();
        let reason = state.files.entry(ino).or_default();
        *reason = lost.or(*reason);
        self.queue.more.notify_one();
        if !state.runs {
            let (queue, changes) = (Arc::clone(&self.queue), Weak::clone(changes));
            let thread = std::thread::Builder::new().name("holdfast-notice".into());
            // Without a thread the notice waits for the next one.
            state.runs = thread.spawn(move || queue.run(&changes)).is_ok();
        }
    }
}

impl Drop for Notices {
    fn drop(&mut self) {
        self.queue.state.lock().stopped = true;
        self.queue.more.notify_all();
    }
}

impl Queue {
    fn run(&self, changes: &Weak<dyn Changes>) {
        loop {
            let mut state = self.state.lock();
            let (ino, lost) = loop {
                if state.stopped {
                    return;
                }
                match state.files.pop_first() {
                    Some(notice) => break notice,
                    None => self.more.wait(&mut state),
                }
            };
            drop(state);
            let Some(changes) = changes.upgrade() else {
                return;
            };
            if let Some(reason) = lost {
                changes.lost(ino, reason);
            }
            changes.inode(ino, true);
        }
    }
}
