//! The life of a thread that serves all of a process: there is one while anybody uses it.
//!
//! What users and thread say to each other stands beside a [`Service`] under one lock of theirs, so that it is plain
//! data here. A thread serves as long as it is its turn, so that one which has not ended yet and the next do not mix.
//!
//! A child after fork(2) has the data and not the thread. There nobody serves, and nobody is waited for: the handle is of
//! a thread of the parent's.

use crate::idle_policy::without_idle_policy;
use rustix::process::{Pid, getpid};
use std::io;
use std::mem;
use std::thread::{self, JoinHandle};

/// Users of a thread, and the thread.
#[derive(Debug)]
pub(crate) struct Service {
    users: usize,
    /// The number of the thread that serves; another one ends.
    turn: u64,
    thread: Option<Serving>,
}

#[derive(Debug)]
struct Serving {
    handle: JoinHandle<()>,
    process: Pid,
}

/// The last user has gone: what is left to be done without the lock.
#[derive(Debug)]
#[must_use = "the thread is still at work"]
pub(crate) struct Farewell(Option<Serving>);

impl Service {
    /// Nobody uses it.
    pub(crate) const fn new() -> Self {
        Self {
            users: 0,
            turn: 0,
            thread: None,
        }
    }

    /// One user more. True: the first, who is to [start](Self::start) the thread.
    pub(crate) fn enter(&mut self) -> bool {
        self.users += 1;
        self.users == 1
    }

    /// Starts the thread, with the number of its turn. If there can be none, nobody serves.
    pub(crate) fn start(&mut self, name: &str, serve: impl FnOnce(u64) + Send + 'static) {
        self.turn += 1;
        let turn = self.turn;
        let started = thread::Builder::new().name(name.to_owned());
        let started: io::Result<_> = without_idle_policy(|| started.spawn(move || serve(turn)));
        self.thread = started.ok().map(|handle| Serving {
            handle,
            process: getpid(),
        });
    }

    /// One user less. If it was the last the thread's turn is over; it has to be told, and to be waited for.
    pub(crate) fn leave(&mut self) -> Option<Farewell> {
        self.users -= 1;
        if self.users > 0 {
            return None;
        }
        self.turn += 1;
        Some(Farewell(mem::take(&mut self.thread)))
    }

    /// Does anybody use it?
    pub(crate) fn is_used(&self) -> bool {
        self.users > 0
    }

    /// Is there a thread, of this process?
    pub(crate) fn is_served(&self) -> bool {
        let thread = self.thread.as_ref();
        thread.is_some_and(|it| it.process == getpid())
    }

    /// Is it this one's turn?
    pub(crate) fn is_turn(&self, turn: u64) -> bool {
        self.turn == turn
    }
}

impl Farewell {
    /// Waits until the thread has ended; one that says farewell to itself ends by itself.
    pub(crate) fn wait(self) {
        match self.split() {
            (Some(own), _) if own.thread().id() != thread::current().id() => {
                // Nothing is to be done if it has failed.
                let _ = own.join();
            }
            // Not even to be detached: the system would look for it among this process's threads.
            (_, foreign) => mem::forget(foreign),
        }
    }

    /// The thread, if it is one of this process; and if it is not.
    fn split(self) -> (Option<JoinHandle<()>>, Option<JoinHandle<()>>) {
        match self.0 {
            Some(Serving { handle, process }) if process == getpid() => (Some(handle), None),
            Some(Serving { handle, .. }) => (None, Some(handle)),
            None => (None, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::{Condvar, Mutex};
    use std::sync::Arc;

    type Shared = Arc<(Mutex<Service>, Condvar)>;

    /// A service whose thread does nothing.
    fn started() -> Shared {
        let shared: Shared = Arc::new((Mutex::new(Service::new()), Condvar::new()));
        let (service, theirs) = (&shared.0, Arc::clone(&shared));
        let mut service = service.lock();
        assert!(service.enter() && !service.is_served());
        service.start("service-test", move |turn| {
            let mut service = theirs.0.lock();
            while service.is_turn(turn) {
                theirs.1.wait(&mut service);
            }
        });
        assert!(!service.enter());
        drop(service);
        shared
    }

    fn leave(shared: &Shared) -> Option<Farewell> {
        let farewell = shared.0.lock().leave();
        shared.1.notify_all();
        farewell
    }

    #[test]
    fn the_thread_ends_with_its_last_user_and_can_be_had_again() {
        let shared = started();
        assert!(leave(&shared).is_none() && shared.0.lock().is_served());
        leave(&shared).expect("the last").wait();
        assert_eq!(Arc::strong_count(&shared), 1, "the thread has ended");
        let mut service = shared.0.lock();
        assert!(!service.is_used() && !service.is_served());
        assert!(service.enter());
    }

    #[test]
    fn nobody_waits_for_a_thread_of_another_process() {
        let shared = started();
        let mut service = shared.0.lock();
        let thread = service.thread.as_mut().expect("a thread");
        thread.process = rustix::process::getppid().expect("a parent");
        assert!(!service.is_served());
        assert!(service.leave().is_none());
        let (own, foreign) = service.leave().expect("the last").split();
        assert!(own.is_none(), "whoever waits in a child hangs");
        drop(service);
        shared.1.notify_all();
        // It is this process's, all the same.
        foreign.expect("a thread").join().expect("no panic");
    }
}
