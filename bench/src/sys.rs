//! Calls into the C library that have no safe wrapper: signal actions.
//!
//! *Invariants.* The handler only stores to an atomic, which is safe in a signal handler. An
//! action that was replaced is put back by the [`Handlers`] that replaced it.
#![expect(unsafe_code, reason = "signal actions have no safe wrapper")]

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

static ASKED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_signal: libc::c_int) {
    ASKED.store(true, Ordering::Relaxed);
}

/// Has a signal asked to end? Threads look between two operations.
#[inline]
pub(crate) fn end_asked() -> bool {
    // Nothing is published with the flag: seeing it late costs one more operation.
    ASKED.load(Ordering::Relaxed)
}

/// While it lives, the first signal to end only sets a flag, so that what a run has made is
/// removed; the second one ends the process as ever.
pub(crate) struct Handlers {
    before: Vec<(libc::c_int, libc::sigaction)>,
}

impl Handlers {
    /// Puts the handlers in place.
    ///
    /// # Errors
    /// What sigaction(2) says.
    pub(crate) fn install() -> io::Result<Self> {
        ASKED.store(false, Ordering::Relaxed);
        let mut handlers = Self { before: Vec::new() };
        for signal in SIGNALS {
            let before = replace(signal, &ending_action())?;
            handlers.before.push((signal, before));
        }
        Ok(handlers)
    }
}

impl Drop for Handlers {
    fn drop(&mut self) {
        for (signal, before) in &self.before {
            // It was in place before, so it is a valid one; nothing to do if it is refused.
            let _ = replace(*signal, before);
        }
    }
}

/// Sets the flag once, then is the default again; system calls go on (`SA_RESTART`).
fn ending_action() -> libc::sigaction {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    let place = action.as_mut_ptr();
    // SAFETY: `place` points to the whole, writable structure above.
    unsafe { (*place).sa_sigaction = note as extern "C" fn(libc::c_int) as libc::sighandler_t };
    // SAFETY: as above.
    unsafe { (*place).sa_flags = libc::SA_RESETHAND | libc::SA_RESTART };
    // SAFETY: all of the structure is zeroed, which is a valid value of each of its fields (no
    // restorer, an empty mask), and the two that matter were set.
    unsafe { action.assume_init() }
}

fn replace(signal: libc::c_int, action: &libc::sigaction) -> io::Result<libc::sigaction> {
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: both structures live across the call; the handler in `action` is `note`, or one
    // that was in place before.
    let code = unsafe { libc::sigaction(signal, ptr::from_ref(action), before.as_mut_ptr()) };
    if code != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so it filled the structure.
    Ok(unsafe { before.assume_init() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The handler in place, and whether it goes after its first signal.
    fn in_place(signal: libc::c_int) -> (libc::sighandler_t, bool) {
        let action = replace(signal, &ending_action()).expect("sigaction");
        replace(signal, &action).expect("sigaction");
        (
            action.sa_sigaction,
            action.sa_flags & libc::SA_RESETHAND != 0,
        )
    }

    // Signals themselves are sent to a process of their own, in `tests/it/signals.rs`.
    #[test]
    fn handlers_serve_one_signal_and_give_way_to_those_of_before() {
        let before = SIGNALS.map(in_place);
        let ours = note as extern "C" fn(libc::c_int) as libc::sighandler_t;
        let handlers = Handlers::install().expect("sigaction");
        assert_eq!(SIGNALS.map(in_place), [(ours, true); 3]);
        drop(handlers);
        assert_eq!(SIGNALS.map(in_place), before);
        assert_ne!(before[0].0, ours);
    }
}
