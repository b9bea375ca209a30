//! Writing changes to the host before a signal ends the daemon.
//!
//! This is fast unless the device hangs or a long commit is in progress. Therefore it has a time
//! limit, and another signal ends the wait.

use holdfast_volume::VolumeStore;
use std::{
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

/// The time limit.
const TIMEOUT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// Writes all changes of a mounted volume to the host. `hurry` returns true once the wait must end.
pub(super) fn last_commit(store: Option<&Arc<VolumeStore>>, mut hurry: impl FnMut() -> bool) {
    let Some(store) = store.map(Arc::clone) else {
        return;
    };
    let (done, outcome) = mpsc::channel();
    let begun = Instant::now();
    let work = move || {
        // The receiver is gone if it took too long.
        let _ = done.send(store.write_out());
    };
    if let Err(error) = thread::Builder::new().spawn(work) {
        tracing::error!("the last changes are lost: {error}");
        return;
    }
    while begun.elapsed() < TIMEOUT && !hurry() {
        match outcome.recv_timeout(PAUSE) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => {
                tracing::error!("the last changes are lost: {error}");
                return;
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            // The thread panicked, which is in the log.
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        }
    }
    tracing::error!("the last changes may be lost: they could not be written in time");
}
