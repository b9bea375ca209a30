//! The work queue: directories to list, and slices of names to stat.
//!
//! Slices come first, and their number is bounded: a worker that finds the queue full stats the
//! names itself. Directories are taken last in, first out, so that their number is bounded by the
//! siblings on the path down.

use parking_lot::{Condvar, Mutex};
use rustix::fd::OwnedFd;
use std::{collections::VecDeque, path::PathBuf, sync::Arc, time::Duration};

/// Most queued slices for each worker.
const SLICES: usize = 4;

/// A directory to list.
pub(super) struct Dir {
    /// Path below the top.
    pub(super) path: PathBuf,
    /// Depth below the top.
    pub(super) depth: usize,
}

/// Names of one directory.
pub(super) struct Slice {
    pub(super) dir: Arc<OwnedFd>,
    pub(super) path: Arc<PathBuf>,
    pub(super) depth: usize,
    pub(super) names: Vec<Vec<u8>>,
}

/// A work item.
pub(super) enum Work {
    List(Dir),
    Ask(Slice),
}

#[derive(Default)]
struct State {
    dirs: Vec<Dir>,
    slices: VecDeque<Slice>,
    /// Workers with an item, which may add more.
    busy: usize,
    /// No more items are handed out.
    ended: bool,
}

impl State {
    fn is_done(&self) -> bool {
        self.busy == 0 && (self.ended || self.dirs.is_empty() && self.slices.is_empty())
    }

    fn next(&mut self) -> Option<Work> {
        if self.ended {
            return None;
        }
        let slice = self.slices.pop_front().map(Work::Ask);
        slice.or_else(|| self.dirs.pop().map(Work::List))
    }
}

/// Shared by all workers.
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    slices_max: usize,
}

impl Queue {
    /// A queue with the top directory.
    pub(super) fn new(workers: usize) -> Self {
        let top = Dir {
            path: PathBuf::new(),
            depth: 0,
        };
        Self {
            state: Mutex::new(State {
                dirs: vec![top],
                ..State::default()
            }),
            changed: Condvar::new(),
            slices_max: workers * SLICES,
        }
    }

    /// The next item, once there is one; `None`: there will be no more. `was_busy`: the worker's
    /// last
    /// item is done.
    pub(super) fn take(&self, was_busy: bool) -> Option<Work> {
        let mut state = self.state.lock();
        if was_busy {
            state.busy -= 1;
        }
        loop {
            if state.is_done() || state.ended {
                self.changed.notify_all();
                return None;
            }
            if let Some(work) = state.next() {
                state.busy += 1;
                return Some(work);
            }
            self.changed.wait(&mut state);
        }
    }

    /// Adds directories.
    pub(super) fn add(&self, dirs: impl IntoIterator<Item = Dir>) {
        self.state.lock().dirs.extend(dirs);
        self.changed.notify_all();
    }

    /// Adds a slice; returns it if the queue is full.
    pub(super) fn offer(&self, slice: Slice) -> Result<(), Slice> {
        let mut state = self.state.lock();
        if state.slices.len() >= self.slices_max {
            return Err(slice);
        }
        state.slices.push_back(slice);
        self.changed.notify_all();
        Ok(())
    }

    /// Hands out no more items.
    pub(super) fn end(&self) {
        self.state.lock().ended = true;
        self.changed.notify_all();
    }

    /// Waits until all is done, for `timeout` at most; returns whether it is.
    pub(super) fn wait_for_end(&self, timeout: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.is_done() {
            self.changed.wait_for(&mut state, timeout);
        }
        state.is_done()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_when_nobody_has_anything_and_nothing_waits() {
        let queue = Queue::new(1);
        let Some(Work::List(top)) = queue.take(false) else {
            panic!("the top comes first");
        };
        assert_eq!((top.path, top.depth), (PathBuf::new(), 0));
        assert!(!queue.wait_for_end(Duration::ZERO), "it may find more");
        queue.add([Dir {
            path: "a".into(),
            depth: 1,
        }]);
        assert!(matches!(queue.take(true), Some(Work::List(_))));
        assert!(queue.take(true).is_none());
        assert!(queue.wait_for_end(Duration::ZERO));
    }

    #[test]
    fn slices_come_before_directories_and_are_bounded() {
        let queue = Queue::new(1);
        let dir = Arc::new(OwnedFd::from(std::fs::File::open("/").unwrap()));
        let slice = || Slice {
            dir: Arc::clone(&dir),
            path: Arc::default(),
            depth: 0,
            names: Vec::new(),
        };
        let offered = (0..100).filter(|_| queue.offer(slice()).is_ok()).count();
        assert_eq!(offered, SLICES);
        assert!(matches!(queue.take(false), Some(Work::Ask(_))));
        queue.end();
        assert!(queue.take(true).is_none());
    }
}
