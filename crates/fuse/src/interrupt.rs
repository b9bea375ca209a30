//! Signals to a caller that waits: from an INTERRUPT request to the operation it names.
//!
//! # Invariants
//! An interrupt is never lost: one that overtakes its request is kept for it. Uniques are never
//! used twice, so what is kept for a request that has long been answered does no harm, and the
//! oldest is dropped when there are too many.
//!
//! # Locking
//! One lock for the table, touched only by requests that wait and by interrupts; callbacks run
//! outside it.

use parking_lot::Mutex;
use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{Arc, Weak},
};

/// Interrupts that came before their requests, kept at most.
const EARLY_MAX: usize = 1024;

/// Tells a waiting operation that its caller got a signal.
#[derive(Clone, Default)]
pub struct Interrupt {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    fired: bool,
    callback: Option<Box<dyn FnOnce() + Send>>,
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupt")
            .field("fired", &self.fired())
            .finish_non_exhaustive()
    }
}

impl Interrupt {
    /// Has the signal come?
    #[must_use]
    pub fn fired(&self) -> bool {
        self.state.lock().fired
    }

    /// Runs `callback` when the signal comes: at once if it has come already. Only the last
    /// callback counts.
    pub fn on_fire(&self, callback: impl FnOnce() + Send + 'static) {
        let mut state = self.state.lock();
        if state.fired {
            drop(state);
            callback();
        } else {
            state.callback = Some(Box::new(callback));
        }
    }

    fn fire(&self) {
        let mut state = self.state.lock();
        state.fired = true;
        let callback = state.callback.take();
        drop(state);
        if let Some(callback) = callback {
            callback();
        }
    }
}

/// The requests that wait, by their unique numbers.
#[derive(Debug, Default)]
pub(crate) struct Interrupts {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    waiting: HashMap<u64, Weak<Mutex<State>>>,
    early: VecDeque<u64>,
    /// The connection is gone: whoever begins to wait now is told at once.
    closed: bool,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("fired", &self.fired)
            .finish_non_exhaustive()
    }
}

/// Takes the request out of the table when it is answered.
pub(crate) struct Waiting<'a> {
    interrupts: &'a Interrupts,
    unique: u64,
    pub(crate) interrupt: Interrupt,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.interrupts.table.lock().waiting.remove(&self.unique);
    }
}

impl Interrupts {
    /// Enters a request that is about to wait.
    pub(crate) fn enter(&self, unique: u64) -> Waiting<'_> {
        let interrupt = Interrupt::default();
        let mut table = self.table.lock();
        let early = table.early.iter().position(|&early| early == unique);
        if let Some(position) = early {
            table.early.remove(position);
        }
        if early.is_some() || table.closed {
            interrupt.state.lock().fired = true;
        }
        table
            .waiting
            .insert(unique, Arc::downgrade(&interrupt.state));
        drop(table);
        Waiting {
            interrupts: self,
            unique,
            interrupt,
        }
    }

    /// An INTERRUPT names this request.
    pub(crate) fn interrupt(&self, unique: u64) {
        let mut table = self.table.lock();
        let state = table.waiting.get(&unique).and_then(Weak::upgrade);
        if state.is_none() {
            if table.early.len() == EARLY_MAX {
                table.early.pop_front();
            }
            table.early.push_back(unique);
        }
        drop(table);
        if let Some(state) = state {
            Interrupt { state }.fire();
        }
    }

    /// The connection is gone: nobody waits for an answer any more.
    pub(crate) fn close(&self) {
        let mut table = self.table.lock();
        table.closed = true;
        let waiting: Vec<_> = table.waiting.values().filter_map(Weak::upgrade).collect();
        drop(table);
        for state in waiting {
            Interrupt { state }.fire();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn an_interrupt_that_overtakes_its_request_is_kept_for_it() {
        let interrupts = Interrupts::default();
        interrupts.interrupt(8);
        assert!(!interrupts.enter(6).interrupt.fired());
        assert!(interrupts.enter(8).interrupt.fired());
        assert!(!interrupts.enter(8).interrupt.fired());
    }

    #[test]
    fn a_waiting_request_is_told_once_and_closing_tells_all() {
        let interrupts = Interrupts::default();
        let calls = Arc::new(AtomicU32::new(0));
        let first = interrupts.enter(2);
        let second = interrupts.enter(4);
        for waiting in [&first, &second] {
            let calls = calls.clone();
            waiting.interrupt.on_fire(move || {
                calls.fetch_add(1, Ordering::SeqCst);
            });
        }
        interrupts.interrupt(2);
        interrupts.interrupt(2);
        assert_eq!(calls.load(Ordering::SeqCst), 1);
        interrupts.close();
        assert_eq!(calls.load(Ordering::SeqCst), 2);
        assert!(interrupts.enter(6).interrupt.fired());
    }

    #[test]
    fn early_interrupts_do_not_pile_up() {
        let interrupts = Interrupts::default();
        (0..5000).for_each(|unique| interrupts.interrupt(unique));
        assert_eq!(interrupts.table.lock().early.len(), EARLY_MAX);
    }
}
