//! Volumes behind a mount: what becomes of the work there, also on a device that does not do as it
//! should.

mod held;
// A release build records no spans.
#[cfg(debug_assertions)]
mod lives;
mod panics;
mod world;

use std::{sync::mpsc, thread, time::Duration};

/// So long nothing takes that waits for nothing, however loaded the machine is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Does the work on a thread of its own; `None`: it waits for something. Then the thread is left
/// alone.
fn within_patience<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Option<R> {
    let (done, outcome) = mpsc::channel();
    thread::spawn(move || done.send(work()));
    outcome.recv_timeout(PATIENCE).ok()
}
