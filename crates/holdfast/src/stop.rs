//! The flag that stops a long operation.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Fails once the stop flag is set.
///
/// # Errors
/// `ECANCELED`.
pub(crate) fn check_stop(stop: &Option<Arc<AtomicBool>>) -> io::Result<()> {
    // Relaxed: the flag carries nothing else.
    if (stop.as_ref()).is_some_and(|stop| stop.load(Ordering::Relaxed)) {
        return Err(crate::types::Errno::ECANCELED.into());
    }
    Ok(())
}
