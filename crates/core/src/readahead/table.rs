//! The directories with recent demand loads.
//!
//! *Locking.* Each row has a lock, a leaf. Demand loads and begins of listings take it, for
//! directories that share the row by their hash. No call blocks under it.

use holdfast_sync::Padded;
use once_cell::race::OnceBox;
use parking_lot::{Mutex, MutexGuard};

use super::policy::Millis;
use super::scan::{Advice, Brought, Demand, IsUnmet, Scan};
use crate::types::Ino;

/// Rows, and directories in each.
const ROWS: usize = 64;
const ROW: usize = 4;

#[derive(Debug, Default)]
struct Row {
    scans: [Scan; ROW],
    /// The number of advices given.
    tickets: u64,
}

impl Row {
    fn find(&mut self, dir: Ino) -> Option<&mut Scan> {
        self.scans.iter_mut().find(|scan| scan.dir == Some(dir))
    }

    /// The scan of a directory; a new one replaces the one that was idle for longest.
    fn find_or_make(&mut self, dir: Ino) -> &mut Scan {
        let known = self.scans.iter().position(|scan| scan.dir == Some(dir));
        let place = known.unwrap_or_else(|| {
            let places = 0..ROW;
            let idle = places.min_by_key(|place| self.scans[*place].last_used);
            let place = idle.unwrap_or(0);
            self.scans[place] = Scan::of(dir);
            place
        });
        &mut self.scans[place]
    }
}

/// The scans of all directories; allocated at the first demand load.
#[derive(Default)]
pub(crate) struct Scans(OnceBox<[Padded<Mutex<Row>>; ROWS]>);

impl Scans {
    fn row(&self, dir: Ino) -> MutexGuard<'_, Row> {
        let made = || Box::new(std::array::from_fn(|_| Padded::default()));
        let hash = dir.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - ROWS.ilog2());
        self.0.get_or_init(made)[hash as usize].0.lock()
    }

    /// Decides what to read ahead with a demand load. A caller that gets an advice reports its
    /// [result](Self::brought).
    pub(crate) fn decide(
        &self,
        demand: &Demand<'_>,
        now: Millis,
        is_unused_readahead: IsUnmet<'_>,
    ) -> Option<Advice> {
        let mut row = self.row(demand.dir);
        let (order, len) = row
            .find_or_make(demand.dir)
            .decide(demand, now, is_unused_readahead)?;
        row.tickets += 1;
        let ticket = row.tickets;
        row.find_or_make(demand.dir).begin(ticket, now);
        Some(Advice { order, len, ticket })
    }

    /// The result of an advice.
    pub(crate) fn brought(&self, dir: Ino, ticket: u64, len: usize, came: Brought, now: Millis) {
        if let Some(scan) = self.row(dir).find(dir) {
            scan.brought(ticket, len, came, now);
        }
    }

    /// A listing begins: the cookies of its first name, and of its first name that is not hidden.
    pub(crate) fn listed(&self, dir: Ino, first: [u64; 2], now: Millis) {
        let mut row = self.row(dir);
        let scan = row.find_or_make(dir);
        scan.listed = Some(first);
        scan.last_used = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readahead::{Order, Reach};

    fn demand(dir: u64, number: u64) -> Demand<'static> {
        Demand {
            dir: Ino(dir),
            name: b"name",
            cookie: number,
            ino: Ino(1000 + number),
            names: 10_000,
        }
    }

    #[test]
    fn more_directories_than_there_is_room_for_take_the_place_of_those_that_are_idle() {
        let scans = Scans::default();
        let met = |_| Some(false);
        for number in 3..5 {
            for dir in 1..=1000 {
                assert_eq!(
                    scans.decide(&demand(dir, number), Millis(number), &met),
                    None
                );
            }
        }
        // The last one is still known, the first is not.
        let last = |number| scans.decide(&demand(1000, number), Millis(number), &met);
        assert_eq!(last(5), None);
        let third = last(6).expect("an order");
        let listing = Order::Listing { hidden: false };
        assert_eq!((third.order, third.len), (listing, 8));
        assert_eq!(scans.decide(&demand(1, 5), Millis(6), &met), None);
    }

    #[test]
    fn what_came_by_another_advice_than_the_last_is_no_window() {
        let scans = Scans::default();
        let met = |_| Some(false);
        scans.listed(Ino(7), [3, 3], Millis(0));
        let first = scans
            .decide(&demand(7, 3), Millis(0), &met)
            .expect("the first");
        let came = |end| Brought {
            inos: Vec::new(),
            reach: Reach::Listing {
                hidden: false,
                end,
                next: None,
            },
        };
        scans.brought(Ino(7), first.ticket + 1, 8, came(11), Millis(0));
        assert_eq!(
            scans.decide(&demand(7, 12), Millis(0), &met),
            None,
            "still on its way"
        );
        scans.brought(Ino(7), first.ticket, 8, came(20), Millis(0));
        let next = scans
            .decide(&demand(7, 21), Millis(0), &met)
            .expect("the next");
        assert_eq!(next.len, 16);
    }
}
