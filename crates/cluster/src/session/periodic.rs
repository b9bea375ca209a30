//! A thread that does the same from time to time.

use parking_lot::{Condvar, Mutex};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The owner of a thread. When it is dropped, the thread ends as soon as its present round does.
pub(crate) struct Periodic(Arc<Signal>);

#[derive(Default)]
struct Signal {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    stop: bool,
    /// The next round begins at once.
    hurry: bool,
}

impl Periodic {
    /// Starts a thread. `round` returns the time until the next one.
    ///
    /// # Errors
    /// Those of starting a thread.
    pub(crate) fn start(
        name: &str,
        mut round: impl FnMut() -> Duration + Send + 'static,
    ) -> io::Result<Self> {
        let signal = Arc::new(Signal::default());
        let shared = Arc::clone(&signal);
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.spawn(move || {
            loop {
                let until = Instant::now() + round();
                let mut state = shared.state.lock();
                while !state.stop
                    && !state.hurry
                    && !shared.wake.wait_until(&mut state, until).timed_out()
                {}
                if state.stop {
                    return;
                }
                state.hurry = false;
            }
        })?;
        Ok(Self(signal))
    }

    /// A function that lets the next round begin at once.
    pub(crate) fn waker(&self) -> Arc<dyn Fn() + Send + Sync> {
        let signal = Arc::clone(&self.0);
        Arc::new(move || {
            signal.state.lock().hurry = true;
            signal.wake.notify_all();
        })
    }
}

impl Drop for Periodic {
    fn drop(&mut self) {
        self.0.state.lock().stop = true;
        self.0.wake.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_waker_begins_a_round() {
        let (sender, receiver) = channel();
        let thread = Periodic::start("rounds", move || {
            let _ = sender.send(());
            Duration::from_secs(600)
        });
        let thread = thread.unwrap();
        let wake = thread.waker();
        for _ in 0..3 {
            receiver.recv_timeout(Duration::from_secs(60)).unwrap();
            wake();
        }
    }

    #[test]
    fn rounds_are_repeated_until_the_owner_is_dropped() {
        let (sender, receiver) = channel();
        let thread = Periodic::start("rounds", move || {
            // The receiver waits for the end of this thread.
            let _ = sender.send(());
            Duration::from_millis(1)
        });
        receiver.recv().unwrap();
        receiver.recv().unwrap();
        drop(thread.unwrap());
        let end = Instant::now() + Duration::from_secs(10);
        while receiver.recv_timeout(Duration::from_secs(5)).is_ok() {
            assert!(Instant::now() < end, "the thread runs still");
        }
        assert!(Instant::now() < end, "the thread keeps what it had");
    }
}
