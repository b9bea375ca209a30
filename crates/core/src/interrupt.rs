//! Whether the caller of an operation still waits for it.
//!
//! A front end that knows when its caller was ended says so with [`during`]. A store that waits for
//! a network [asks](is_interrupted) each [`POLL`], and answers `EINTR`.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How often a wait asks.
pub const POLL: Duration = Duration::from_millis(100);

/// Tells whether the caller of an operation was ended.
#[derive(Clone)]
pub struct Interrupted(Arc<dyn Fn() -> bool + Send + Sync>);

impl Interrupted {
    /// `is_ended` is called by any thread that works for the operation.
    pub fn new(is_ended: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_ended))
    }
}

impl fmt::Debug for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Interrupted").field(&(self.0)()).finish()
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Interrupted>> = const { RefCell::new(None) };
}

/// Restores what was there, also after a panic.
struct Restore(Option<Interrupted>);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// Performs an operation of a caller.
pub fn during<R>(caller: Option<Interrupted>, act: impl FnOnce() -> R) -> R {
    let _restore = Restore(CURRENT.replace(caller));
    act()
}

/// The caller of the operation that the calling thread performs, for a thread that helps it.
#[must_use]
pub fn current() -> Option<Interrupted> {
    CURRENT.with_borrow(Clone::clone)
}

/// Was the caller of the operation ended that the calling thread performs?
#[must_use]
pub fn is_interrupted() -> bool {
    current().is_some_and(|caller| (caller.0)())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_asks_for_the_caller_that_it_works_for() {
        assert!(!is_interrupted());
        let inner = during(Some(Interrupted::new(|| true)), || {
            let caller = current();
            let helper = std::thread::spawn(|| during(caller, is_interrupted));
            let hidden = during(None, is_interrupted);
            (
                is_interrupted(),
                helper.join().unwrap(),
                hidden,
                is_interrupted(),
            )
        });
        assert_eq!(inner, (true, true, false, true));
        assert!(!is_interrupted());
    }
}
