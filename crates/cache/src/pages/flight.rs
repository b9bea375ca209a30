//! Absent pages that are being read into memory.
//!
//! A thread that reads absent pages from a store does so without the lock. Under the lock it begins
//! a [`Flight`] for them, drops the lock and reads. Then it takes the lock again, and
//! [lands](PagesLock::land) what is left of the flight. Other threads that need one of these pages
//! wait for the flight, without a lock.
//!
//! *Invariants.* A page in flight is absent. No page is in two flights that fill pages. A page
//! leaves its flights when it changes, or is no longer absent; so what lands is what was read.
//!
//! *Locking.* Flights begin, land and lose pages under the lock of the pages. The state of a flight
//! is a leaf below that.

use super::{PagesLock, Unwritten};
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

/// Absent pages.
#[derive(Debug)]
pub enum Missing {
    /// They are not in flight.
    Unloaded(Range<u64>),
    /// Another thread reads the first of them. The number is for [`Flight::wait`].
    InFlight(Arc<Flight>, u32),
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

    fn add(&mut self, pages: Range<u64>, flight: &Arc<Flight>, brings: bool) {
        // Entries of a thread that panicked.
        self.0.retain(|entry| !entry.flight.is_over());
        self.0.push(Entry {
            pages,
            flight: Arc::clone(flight),
            brings,
        });
    }

    /// Removes a flight that is over; returns the pages that are left of it.
    fn take(&mut self, flight: &Arc<Flight>) -> Vec<Range<u64>> {
        let of_it = |entry: &mut Entry| Arc::ptr_eq(&entry.flight, flight);
        let taken = self.0.extract_if(.., of_it);
        let mut left: Vec<_> = taken.map(|entry| entry.pages).collect();
        left.sort_unstable_by_key(|pages| pages.start);
        left
    }

    /// The flight that fills a page.
    fn of(&self, page: u64) -> Option<&Arc<Flight>> {
        let found = self
            .0
            .iter()
            .find(|entry| entry.pages.contains(&page) && entry.holds_back());
        found.map(|entry| &entry.flight)
    }

    /// The first of these pages that is in flight.
    fn first_in(&self, pages: &Range<u64>) -> Option<u64> {
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

impl PagesLock<'_> {
    /// The first of these pages that is absent. If it is not in flight, the run of absent pages
    /// from there on that are not in flight either.
    #[must_use]
    pub fn next_missing(&self, pages: Range<u64>) -> Option<Missing> {
        let unwritten = self.frames.side()?;
        let unloaded = unwritten.next_unloaded(pages)?;
        if let Some(flight) = unwritten.flights.of(unloaded.start) {
            let cuts = flight.cuts();
            return Some(Missing::InFlight(Arc::clone(flight), cuts));
        }
        let end = unwritten
            .flights
            .first_in(&unloaded)
            .unwrap_or(unloaded.end);
        Some(Missing::Unloaded(unloaded.start..end))
    }

    /// Is a page being filled?
    #[must_use]
    pub fn is_in_flight(&self, page: u64) -> bool {
        let unwritten = self.frames.side();
        unwritten.is_some_and(|unwritten| unwritten.flights.of(page).is_some())
    }

    /// Begins a flight that fills these pages, all of which are absent and not in flight.
    #[must_use]
    pub fn depart(&mut self, pages: Range<u64>) -> Arc<Flight> {
        self.begin_flight(std::iter::once(pages), true)
    }

    /// Begins a flight for a reader of these pages that does not fill them: it is
    /// [cut](Flight::is_cut) when one of them changes, or is filled.
    #[must_use]
    pub fn watch(&mut self, pages: impl Iterator<Item = Range<u64>>) -> Arc<Flight> {
        self.begin_flight(pages, false)
    }

    fn begin_flight(
        &mut self,
        pages: impl Iterator<Item = Range<u64>>,
        brings: bool,
    ) -> Arc<Flight> {
        let flight = Arc::default();
        let begin = |unwritten: &mut Unwritten| {
            for pages in pages {
                debug_assert_eq!(unwritten.next_unloaded(pages.clone()), Some(pages.clone()));
                unwritten.flights.add(pages, &flight, brings);
            }
        };
        self.frames.with_side(begin, Unwritten::pages);
        flight
    }

    /// Removes a flight, and returns the pages that are left of it. They are still absent, and may
    /// be [filled](Self::populate) with what was read. [`Flight::end`] wakes the waiters.
    pub fn land(&mut self, flight: &Arc<Flight>) -> Vec<Range<u64>> {
        if self.frames.side().is_none() {
            return Vec::new();
        }
        let take = |unwritten: &mut Unwritten| unwritten.flights.take(flight);
        self.frames.with_side(take, Unwritten::pages)
    }

    /// Notes that absent pages change in the store: a read of them that is under way is not used.
    pub fn change_unloaded(&mut self, pages: Range<u64>) {
        if self.frames.side().is_some() {
            let cut = |unwritten: &mut Unwritten| unwritten.flights.cut(&pages);
            self.frames.with_side(cut, Unwritten::pages);
        }
    }

    /// How many pages directly before this one are in memory or being filled; at most `most`.
    #[must_use]
    pub fn resident_before(&self, page: u64, most: u64) -> u64 {
        let mut at = page;
        let floor = page.saturating_sub(most);
        while at > floor && (self.frames.get(at - 1).is_some() || self.is_in_flight(at - 1)) {
            at -= 1;
        }
        page - at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::{PAGE_SIZE, Pages};
    use crate::{Account, CacheStats, SpacePool};
    use holdfast_types::Errno;
    use std::slice::from_ref;
    use std::thread;

    const PAGE: u64 = PAGE_SIZE as u64;

    /// Calls `change` for a file with absent pages 0 to 99, of which 10 to 19 are in flight.
    fn left_after(change: impl FnOnce(&mut PagesLock<'_>, Account<'_>)) -> Vec<Range<u64>> {
        let (space, stats) = (SpacePool::new(None), CacheStats::new());
        let account = Account {
            space: &space,
            stats: &stats,
        };
        let file = Pages::new();
        let mut pages = file.lock();
        pages.mark_unloaded(0..100, account).unwrap();
        let flight = pages.depart(10..20);
        change(&mut pages, account);
        let left = pages.land(&flight);
        let lost = 10 - left.iter().map(|run| run.end - run.start).sum::<u64>();
        assert_eq!(flight.is_cut(), lost > 0);
        pages.clear(account);
        left
    }

    #[test]
    fn what_changes_leaves_its_flight_and_the_rest_lands() {
        let page = vec![1; PAGE_SIZE];
        assert_eq!(left_after(|_, _| ()), from_ref(&(10..20)));
        let left = left_after(|pages, account| {
            pages.write(12 * PAGE, &page, account).unwrap();
            pages.punch(15 * PAGE, 2 * PAGE, account);
        });
        assert_eq!(left, [10..12, 13..15, 17..20]);
        let left = left_after(|pages, account| pages.punch(12 * PAGE + 1, 10, account));
        assert_eq!(left, [10..12, 13..20]);
        let left = left_after(|pages, account| pages.truncate(15 * PAGE, account));
        assert_eq!(left, from_ref(&(10..15)));
        let left = left_after(|pages, account| pages.truncate(15 * PAGE + 1, account));
        assert_eq!(left, from_ref(&(10..15)));
        let left = left_after(|pages, account| {
            pages.collapse(12 * PAGE, PAGE, account).unwrap();
        });
        assert_eq!(left, from_ref(&(10..12)));
        let left = left_after(|pages, account| pages.insert(12 * PAGE, PAGE, account).unwrap());
        assert_eq!(left, from_ref(&(10..12)));
        let left = left_after(|pages, account| pages.zero(0, 11 * PAGE, account).unwrap());
        assert_eq!(left, from_ref(&(11..20)));
        // A page that was written and forgotten meanwhile is not what was read.
        let left = left_after(|pages, account| {
            pages.write(12 * PAGE, &page, account).unwrap();
            pages.forget(12..13, account);
        });
        assert_eq!(left, [10..12, 13..20]);
        assert!(left_after(|pages, account| pages.clear(account)).is_empty());
        let left = left_after(|pages, account| pages.allocate(0, 50 * PAGE, account).unwrap());
        assert_eq!(left, from_ref(&(10..20)));
    }

    #[test]
    fn others_find_what_is_in_flight_and_wait_for_its_end() {
        left_after(|pages, _| {
            let missing = pages.next_missing(5..100).unwrap();
            assert!(matches!(missing, Missing::Unloaded(run) if run == (5..10)));
            let Some(Missing::InFlight(flight, cuts)) = pages.next_missing(10..100) else {
                panic!("not in flight");
            };
            assert_eq!(pages.resident_before(20, 100), 10);
            thread::scope(|scope| {
                let waiting = scope.spawn(|| flight.wait(cuts));
                flight.end(Err(Errno::EIO));
                assert_eq!(waiting.join().unwrap(), Err(Errno::EIO));
            });
            // It is over, though its pages have not landed: its thread may have panicked.
            let missing = pages.next_missing(10..100).unwrap();
            assert!(matches!(missing, Missing::Unloaded(run) if run == (10..100)));
        });
    }

    #[test]
    fn a_cut_wakes_those_that_wait() {
        left_after(|pages, account| {
            let Some(Missing::InFlight(flight, cuts)) = pages.next_missing(15..16) else {
                panic!("not in flight");
            };
            thread::scope(|scope| {
                let waiting = scope.spawn(|| flight.wait(cuts));
                pages.punch(15 * PAGE, PAGE, account);
                assert_eq!(waiting.join().unwrap(), Ok(()));
            });
        });
    }
}
