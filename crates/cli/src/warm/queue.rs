//! What is to be done: directories to be listed, and slices of names to be asked for.
//!
//! Slices come first, and are bounded: a worker that finds no room for one asks for its names itself. Of directories the
//! latest comes first, so that as many wait as a tree has siblings on the way down.

use parking_lot::{Condvar, Mutex};
use rustix::fd::OwnedFd;
use std::{collections::VecDeque, path::PathBuf, sync::Arc, time::Duration};

/// Slices for each worker that may wait.
const SLICES: usize = 4;
/// How long a worker that is not needed waits before it looks again.
const REST: Duration = Duration::from_millis(50);

/// A directory that waits.
pub(super) struct Dir {
    /// Below the top.
    pub(super) path: PathBuf,
    /// Directories between it and the top.
    pub(super) depth: usize,
}

/// Names of one directory.
pub(super) struct Slice {
    pub(super) dir: Arc<OwnedFd>,
    pub(super) path: Arc<PathBuf>,
    pub(super) depth: usize,
    pub(super) names: Vec<Vec<u8>>,
}

/// What a worker is given.
pub(super) enum Work {
    List(Dir),
    Ask(Slice),
}

#[derive(Default)]
struct State {
    dirs: Vec<Dir>,
    slices: VecDeque<Slice>,
    /// Workers that have something, which may lead to more.
    busy: usize,
    /// Nothing more is to be begun.
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
    /// With the top as the first thing to be done.
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

    /// The next thing to be done, once there is one and the worker is needed; `None`: nothing will come any more. What
    /// was taken before is done with that.
    pub(super) fn take(&self, was_busy: bool, is_needed: impl Fn() -> bool) -> Option<Work> {
        let mut state = self.state.lock();
        if was_busy {
            state.busy -= 1;
        }
        loop {
            if state.is_done() || state.ended {
                self.changed.notify_all();
                return None;
            }
            if is_needed()
                && let Some(work) = state.next()
            {
                state.busy += 1;
                return Some(work);
            }
            self.changed.wait_for(&mut state, REST);
        }
    }

    /// Directories that were found.
    pub(super) fn add(&self, dirs: impl IntoIterator<Item = Dir>) {
        self.state.lock().dirs.extend(dirs);
        self.changed.notify_one();
    }

    /// Gives a slice to the next idle worker; it comes back if too many wait.
    pub(super) fn offer(&self, slice: Slice) -> Result<(), Slice> {
        let mut state = self.state.lock();
        if state.slices.len() >= self.slices_max {
            return Err(slice);
        }
        state.slices.push_back(slice);
        self.changed.notify_one();
        Ok(())
    }

    /// Begins nothing more.
    pub(super) fn end(&self) {
        self.state.lock().ended = true;
        self.changed.notify_all();
    }

    /// Is all done, at the latest after so long?
    pub(super) fn wait_for_end(&self, patience: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.is_done() {
            self.changed.wait_for(&mut state, patience);
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
        let always = || true;
        let Some(Work::List(top)) = queue.take(false, always) else {
            panic!("the top comes first");
        };
        assert_eq!((top.path, top.depth), (PathBuf::new(), 0));
        assert!(!queue.wait_for_end(Duration::ZERO), "it may find more");
        queue.add([Dir {
            path: "a".into(),
            depth: 1,
        }]);
        assert!(matches!(queue.take(true, always), Some(Work::List(_))));
        assert!(queue.take(true, always).is_none());
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
        assert!(matches!(queue.take(false, || true), Some(Work::Ask(_))));
        queue.end();
        assert!(queue.take(true, || true).is_none());
    }
}
