//! Which absent pages are in flight; flights begin and land.

use super::content::PagesLock;
use super::flight::Flight;
use super::unwritten::Unwritten;
use std::ops::Range;
use std::sync::Arc;

/// Absent pages.
#[derive(Debug)]
pub enum Missing {
    /// They are not in flight.
    Unloaded(Range<u64>),
    /// Another thread reads the first of them. The number is for [`Flight::wait`].
    InFlight(Arc<Flight>, u32),
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
        self.change_unframed(|unwritten| unwritten.flights.cut(&pages));
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
    use crate::{Account, CacheStats, PAGE_SIZE, Pages, SpacePool};
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
