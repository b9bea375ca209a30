//! What a daemon does before a signal ends it: hands what was changed to the host.
//!
//! That takes a moment, unless the device hangs, or a commit is under way that takes long. Therefore it has a time limit, and
//! another signal ends the wait.

use holdfast_volume::VolumeStore;
use std::{
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

/// How long the end may take.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// Hands over what waits, if it is a volume that is mounted. `hurry`: must it end at once?
pub(super) fn hand_over(store: Option<&Arc<VolumeStore>>, mut hurry: impl FnMut() -> bool) {
    let Some(store) = store.map(Arc::clone) else {
        return;
    };
    let (done, outcome) = mpsc::channel();
    let begun = Instant::now();
    let work = move || {
        // Nobody listens any more if it took too long.
        let _ = done.send(store.hand_over());
    };
    if let Err(error) = thread::Builder::new().spawn(work) {
        tracing::error!("what was changed last is lost: {error}");
        return;
    }
    while begun.elapsed() < PATIENCE && !hurry() {
        match outcome.recv_timeout(PAUSE) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => {
                tracing::error!("what was changed last is lost: {error}");
                return;
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            // It panicked, and that was told.
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        }
    }
    tracing::error!("what was changed last may be lost: it could not be written in time");
}
