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

/// Does a signal wait for this thread that ends it, or that asks to end? An INTERRUPT comes for
/// each signal, and once for a request: a timer of the program must not end its requests. `true` as
/// well if that is not to be known.
pub(crate) fn is_ended(pid: u32) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/status")) {
        Ok(status) => has_end(&status),
        Err(_) => true,
    }
}

/// Was this thread ended by a signal, so that it closes its files? There is no INTERRUPT then.
pub(crate) fn was_killed(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| has_signal(&stat))
}

/// The same of the text of a stat: the exit code of a thread that exits has the signal.
fn has_signal(stat: &str) -> bool {
    const EXITING: u64 = 4;
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    // The first of them is the third of all.
    let field = |number: usize| {
        fields
            .split_ascii_whitespace()
            .nth(number - 3)?
            .parse()
            .ok()
    };
    let (flags, code): (u64, u64) = (field(9).unwrap_or(0), field(52).unwrap_or(0));
    flags & EXITING != 0 && code & 0x7f != 0
}

/// The same of the text of a status.
fn has_end(status: &str) -> bool {
    /// SIGHUP, SIGINT, SIGQUIT, SIGKILL, SIGTERM. The kernel makes a SIGKILL of others that end.
    const ENDING: u64 = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 8 | 1 << 14;
    let set = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok())
    };
    let pending = set("SigPnd:")
        .zip(set("ShdPnd:"))
        .map(|(own, all)| own | all);
    let blocked = set("SigBlk:").unwrap_or(0);
    pending.is_none_or(|pending| pending & ENDING & !blocked != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_signals_that_ask_to_end_do() {
        let ended = |own: u64, all: u64, blocked: u64| {
            has_end(&format!(
                "Name:\tcat\nSigPnd:\t{own:016x}\nShdPnd:\t{all:016x}\nSigBlk:\t{blocked:016x}\n"
            ))
        };
        // SIGALRM, SIGCHLD, SIGURG.
        for other in [14, 17, 23].map(|signal| 1 << (signal - 1)) {
            assert!(!ended(other, 0, 0) && !ended(0, other, 0), "{other}");
        }
        for end in [1, 2, 3, 9, 15].map(|signal| 1 << (signal - 1)) {
            assert!(ended(end, 0, 0) && ended(0, end, 0), "{end}");
            assert!(!ended(0, end, end), "{end}");
        }
        assert!(!was_killed(std::process::id()));
        let stat = |flags: u64, code: u64| {
            let zeros = "0 ".repeat(42);
            has_signal(&format!("7 (a) b) S 1 1 1 1 1 {flags} {zeros}{code}"))
        };
        assert!(stat(0x40_0004, 9) && !stat(0x40_0000, 9) && !stat(0x40_0004, 0x100));
        assert!(has_end("State:\tX (dead)\n"));
        assert!(!is_ended(std::process::id()));
    }

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
