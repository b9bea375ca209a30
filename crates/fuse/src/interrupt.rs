//! Interrupts: from an INTERRUPT request to the waiting operation that it names.
//!
//! # Invariants
//! An interrupt is never lost: one that overtakes its request is stored for it. Unique numbers are
//! not reused, so an entry for an answered request is harmless. The oldest entries are dropped when
//! there are too many.
//!
//! # Locking
//! One lock for the table, taken only by waiting requests and by interrupts. Waits are cancelled
//! without it.

use holdfast_core::Cancel;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};

/// Most stored interrupts that came before their requests.
const PENDING_MAX: usize = 1024;

/// The waiting requests by their unique numbers.
#[derive(Debug, Default)]
pub(crate) struct Interrupts {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    waiting: HashMap<u64, Cancel>,
    pending: VecDeque<u64>,
    /// The connection ended: a new wait is interrupted at once.
    closed: bool,
}

/// Removes the request from the table when it is answered.
pub(crate) struct Waiting<'a> {
    interrupts: &'a Interrupts,
    unique: u64,
    pub(crate) cancel: Cancel,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.interrupts.table.lock().waiting.remove(&self.unique);
    }
}

impl Interrupts {
    /// Enters a request that is about to wait.
    pub(crate) fn enter(&self, unique: u64) -> Waiting<'_> {
        let cancel = Cancel::new();
        let mut table = self.table.lock();
        let pending = table.pending.iter().position(|&other| other == unique);
        if pending.and_then(|at| table.pending.remove(at)).is_some() || table.closed {
            cancel.cancel();
        }
        table.waiting.insert(unique, cancel.clone());
        drop(table);
        Waiting {
            interrupts: self,
            unique,
            cancel,
        }
    }

    /// An INTERRUPT names this request.
    pub(crate) fn interrupt(&self, unique: u64) {
        let mut table = self.table.lock();
        if let Some(cancel) = table.waiting.get(&unique).cloned() {
            drop(table);
            return cancel.cancel();
        }
        if table.pending.len() == PENDING_MAX {
            table.pending.pop_front();
        }
        table.pending.push_back(unique);
    }

    /// The connection ended: interrupts all waits.
    pub(crate) fn close(&self) {
        let mut table = self.table.lock();
        table.closed = true;
        let waiting: Vec<_> = table.waiting.values().cloned().collect();
        drop(table);
        waiting.iter().for_each(Cancel::cancel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_that_overtakes_its_request_is_kept_for_it() {
        let interrupts = Interrupts::default();
        interrupts.interrupt(8);
        assert!(!interrupts.enter(6).cancel.is_cancelled());
        assert!(interrupts.enter(8).cancel.is_cancelled());
        assert!(!interrupts.enter(8).cancel.is_cancelled());
    }

    #[test]
    fn a_waiting_request_is_told_once_and_closing_tells_all() {
        let interrupts = Interrupts::default();
        let [first, second] = [2, 4].map(|unique| interrupts.enter(unique));
        interrupts.interrupt(2);
        let cancelled = || [&first, &second].map(|waiting| waiting.cancel.is_cancelled());
        assert_eq!(cancelled(), [true, false]);
        interrupts.close();
        assert_eq!(cancelled(), [true, true]);
        assert!(interrupts.enter(6).cancel.is_cancelled());
    }

    #[test]
    fn early_interrupts_do_not_pile_up() {
        let interrupts = Interrupts::default();
        (0..5000).for_each(|unique| interrupts.interrupt(unique));
        assert_eq!(interrupts.table.lock().pending.len(), PENDING_MAX);
    }
}
