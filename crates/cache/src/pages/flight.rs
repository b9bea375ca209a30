//! Absent pages that are being read into memory.
//!
//! A thread that reads absent pages from a store does so without the lock. Under the lock it begins
//! a [`Flight`] for them, drops the lock and reads. Then it takes the lock again, and
//! [lands](super::PagesLock::land) what is left of the flight. Other threads that need one of these
//! pages wait for the flight, without a lock.
//!
//! *Invariants.* A page in flight is absent. No page is in two flights that fill pages. A page
//! leaves its flights when it changes, or is no longer absent; so what lands is what was read.
//!
//! *Locking.* Flights begin, land and lose pages under the lock of the pages. The state of a flight
//! is a leaf below that.

use holdfast_types::Result;
use parking_lot::{Condvar, Mutex};
use std::ops::Range;
use std::sync::Arc;

/// One read of absent pages, by a thread that does not hold the lock of the pages.
#[derive(Debug, Default)]
pub struct Flight {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// How often it lost pages.
    cuts: u32,
    /// Its result, once it has ended.
    end: Option<Result<()>>,
}

impl Flight {
    /// It lost pages: their bytes must not be used, and waiters look again.
    pub fn cut(&self) {
        self.state.lock().cuts += 1;
        self.changed.notify_all();
    }

    /// Has it lost pages?
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.state.lock().cuts > 0
    }

    /// How often it lost pages so far; for [`wait`](Self::wait), under the lock of the pages.
    #[must_use]
    pub fn cuts(&self) -> u32 {
        self.state.lock().cuts
    }

    /// Ends it; the first end counts. Waiters get the error.
    pub fn end(&self, end: Result<()>) {
        self.state.lock().end.get_or_insert(end);
        self.changed.notify_all();
    }

    /// Has it ended?
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.state.lock().end.is_some()
    }

    /// Waits until it has ended, or has lost pages since there were `cuts` losses. The caller then
    /// looks again.
    ///
    /// # Errors
    /// The error that it ended with.
    pub fn wait(&self, cuts: u32) -> Result<()> {
        let mut state = self.state.lock();
        loop {
            if state.cuts != cuts {
                return Ok(());
            }
            if let Some(end) = state.end {
                return end;
            }
            self.changed.wait(&mut state);
        }
    }
}

/// Absent pages that are being read.
#[derive(Debug)]
struct Entry {
    pages: Range<u64>,
    flight: Arc<Flight>,
    /// Are the pages filled? Otherwise the reader only has to know whether they change.
    brings: bool,
}

impl Entry {
    fn holds_back(&self) -> bool {
        self.brings && !self.flight.is_over()
    }
}

/// The flights of a file.
#[derive(Debug, Default)]
pub(super) struct Flights(Vec<Entry>);

impl Flights {
    /// Takes pages out of their flights.
    pub(super) fn cut(&mut self, pages: &Range<u64>) {
        if !self.0.is_empty() {
            self.cut_now(pages);
        }
    }

    #[cold]
    fn cut_now(&mut self, pages: &Range<u64>) {
        let mut behind = Vec::new();
        self.0.retain_mut(|entry| {
            let Range { start, end } = entry.pages;
            if end <= pages.start || pages.end <= start {
                return true;
            }
            entry.flight.cut();
            if pages.end < end {
                behind.push(Entry {
                    pages: pages.end..end,
                    flight: Arc::clone(&entry.flight),
                    brings: entry.brings,
                });
            }
            entry.pages.end = pages.start;
            start < pages.start
        });
        self.0.append(&mut behind);
    }

    pub(super) fn add(&mut self, pages: Range<u64>, flight: &Arc<Flight>, brings: bool) {
        // Entries of a thread that panicked.
        self.0.retain(|entry| !entry.flight.is_over());
        self.0.push(Entry {
            pages,
            flight: Arc::clone(flight),
            brings,
        });
    }

    /// Removes a flight that is over; returns the pages that are left of it.
    pub(super) fn take(&mut self, flight: &Arc<Flight>) -> Vec<Range<u64>> {
        let of_it = |entry: &mut Entry| Arc::ptr_eq(&entry.flight, flight);
        let taken = self.0.extract_if(.., of_it);
        let mut left: Vec<_> = taken.map(|entry| entry.pages).collect();
        left.sort_unstable_by_key(|pages| pages.start);
        left
    }

    /// The flight that fills a page.
    pub(super) fn of(&self, page: u64) -> Option<&Arc<Flight>> {
        let found = self
            .0
            .iter()
            .find(|entry| entry.pages.contains(&page) && entry.holds_back());
        found.map(|entry| &entry.flight)
    }

    /// The first of these pages that is in flight.
    pub(super) fn first_in(&self, pages: &Range<u64>) -> Option<u64> {
        let within = self.0.iter().filter(|entry| {
            entry.pages.start < pages.end && pages.start < entry.pages.end && entry.holds_back()
        });
        within.map(|entry| entry.pages.start.max(pages.start)).min()
    }
}

impl Drop for Flights {
    fn drop(&mut self) {
        self.cut(&(0..u64::MAX));
    }
}
