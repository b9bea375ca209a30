//! Walks through many small directories: those that a walk visits next are read together.
//!
//! A directory of ten files costs a slow store as many waits as one of thousands, and stat-ahead
//! inside of it cannot change that. So the order is observed in which the directories of one
//! *parent* are listed. After several were listed one by one, the next ones are read in windows
//! that double while they are used, like the windows of inodes ([`scan`](super::scan)). The thread
//! that lists reads them.
//!
//! *Locking.* Each row of the table has a lock, a leaf. Begins of listings take it, over a store
//! that [others may change](crate::shared). No call blocks under it.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashSet;
use std::time::Duration;

use super::policy::{IDLE, Millis, Rest, is_used};
use crate::types::Ino;

/// Parents in the table.
const ROWS: usize = 64;
/// Directories that are listed one by one before read-ahead begins.
const ALONE: u32 = 3;
/// Directories of the first window, and of the largest.
const FIRST: usize = 4;
const MOST: usize = 64;

/// The order in which the next directories are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WalkOrder {
    /// The parent's listing, like find(1)
    Listing,
    /// Alphabetical, like `ls -R` and rsync
    Name,
}

/// What to read with a directory that is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WalkAdvice {
    pub(crate) order: WalkOrder,
    /// The most directories.
    pub(crate) len: usize,
    /// Are the inodes of their names read too?
    pub(crate) inodes: bool,
}

/// The walk through the directories of a parent.
///
/// *Invariant.* `ahead` are the directories of the last window that were read and not listed since;
/// the window had `came` directories.
#[derive(Debug, Default)]
struct Walk {
    parent: Option<Ino>,
    last_used: Millis,
    /// Directories listed one by one since the walk or a pause began.
    alone: u32,
    /// The last directory that had to be read: its cookie, and its name.
    last: Option<(u64, Box<[u8]>)>,
    /// How often it came after the one before, in either order.
    by_listing: u32,
    by_name: u32,
    /// The size of the last window. 0: there was none.
    window: usize,
    came: usize,
    prefetched: HashSet<Ino>,
    since: Millis,
    /// Is a window being read?
    waits: bool,
    /// Were the inodes of a directory's names asked for?
    inodes: bool,
    rest: Rest,
}

impl Walk {
    fn follow(&mut self, cookie: u64, name: &[u8]) {
        if let Some((last_cookie, last_name)) = &self.last {
            self.by_listing += u32::from(cookie > *last_cookie);
            self.by_name += u32::from(name > &**last_name);
        }
        self.last = Some((cookie, name.into()));
    }

    /// Doubles the window, up to the number of directories that the walk visits in half of the
    /// validity time.
    fn next_window(&self, now: Millis, valid: Option<Duration>) -> usize {
        let took = u128::from(now.0.saturating_sub(self.since.0)).max(1);
        let fit = valid.map_or(u128::MAX, |valid| {
            self.window as u128 * valid.as_millis() / 2 / took
        });
        let fit = usize::try_from(fit).unwrap_or(usize::MAX);
        (2 * self.window).min(fit).clamp(1, MOST)
    }

    fn decide(
        &mut self,
        (cookie, name): (u64, &[u8]),
        now: Millis,
        valid: Option<Duration>,
    ) -> Option<WalkAdvice> {
        self.follow(cookie, name);
        if self.waits || self.rest.lasts(now) {
            return None;
        }
        if self.window == 0 {
            self.alone += 1;
            if self.alone < ALONE {
                return None;
            }
            self.window = FIRST;
        } else if is_used(self.came - self.prefetched.len(), self.prefetched.len()) {
            self.rest.forgive();
            self.window = self.next_window(now, valid);
        } else {
            self.rest.begin(now);
            (self.window, self.came, self.alone) = (0, 0, 0);
            self.prefetched.clear();
            return None;
        }
        self.waits = true;
        let order = match self.by_listing >= self.by_name {
            true => WalkOrder::Listing,
            false => WalkOrder::Name,
        };
        Some(WalkAdvice {
            order,
            len: self.window,
            inodes: self.inodes,
        })
    }
}

/// The walks through the directories of all parents.
pub(crate) struct Walks {
    rows: [Mutex<Walk>; ROWS],
    /// The validity of the store's answers. `None`: unlimited.
    valid: Option<Duration>,
}

/// The row of a parent.
fn place(parent: Ino) -> usize {
    let hash = parent.0.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (hash >> (u64::BITS - ROWS.ilog2())) as usize
}

impl Walks {
    /// Over a store with answers that are valid for this time.
    pub(crate) fn new(valid: Option<Duration>) -> Self {
        Self {
            rows: std::array::from_fn(|_| Mutex::default()),
            valid,
        }
    }

    fn row(&self, parent: Ino) -> MutexGuard<'_, Walk> {
        self.rows[place(parent)].lock()
    }

    /// The walk through a parent's directories, if there is one.
    fn of(&self, parent: Ino) -> Option<MutexGuard<'_, Walk>> {
        let row = self.row(parent);
        (row.parent == Some(parent)).then_some(row)
    }

    /// A directory is listed, and its names are in memory.
    pub(crate) fn met(&self, parent: Ino, dir: Ino, now: Millis) {
        if let Some(mut walk) = self.of(parent) {
            walk.last_used = now;
            walk.prefetched.remove(&dir);
        }
    }

    /// A directory is listed, and its names have to be read: what to read with it? `place`: its
    /// cookie and name in the parent. A caller that gets an advice reports its
    /// [result](Self::came).
    pub(crate) fn decide(
        &self,
        parent: Ino,
        dir: Ino,
        place: (u64, &[u8]),
        now: Millis,
    ) -> Option<WalkAdvice> {
        let mut walk = self.row(parent);
        let goes_on = walk.parent == Some(parent) && now.is_before(walk.last_used, IDLE);
        if !goes_on {
            if walk.waits && now.is_before(walk.last_used, IDLE) {
                // A window of another parent is being read.
                return None;
            }
            *walk = Walk {
                parent: Some(parent),
                ..Walk::default()
            };
        }
        walk.last_used = now;
        // It was read ahead, and has expired.
        walk.prefetched.remove(&dir);
        walk.decide(place, now, self.valid)
    }

    /// These directories were read with another one.
    pub(crate) fn came(&self, parent: Ino, dirs: Vec<Ino>, now: Millis) {
        if let Some(mut walk) = self.of(parent) {
            (walk.waits, walk.since) = (false, now);
            walk.came = dirs.len();
            walk.prefetched = dirs.into_iter().collect();
        }
    }

    /// The inodes of the names of a directory of this parent are asked for.
    pub(crate) fn asks_for_inodes(&self, parent: Ino) {
        if let Some(mut walk) = self.of(parent) {
            walk.inodes = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: Ino = Ino(7);
    const NOW: Millis = Millis(1000);

    fn name(number: u64) -> Vec<u8> {
        format!("{number:04}").into_bytes()
    }

    /// Lists directories with these numbers; a window has the order of a listing. Returns the size
    /// of each window.
    fn walk(walks: &Walks, dirs: impl IntoIterator<Item = u64>, now: Millis) -> Vec<usize> {
        let mut there = HashSet::new();
        let list = |number: u64| {
            let dir = Ino(100 + number);
            if there.remove(&number) {
                walks.met(PARENT, dir, now);
                return None;
            }
            let Some(advice) = walks.decide(PARENT, dir, (number, &name(number)), now) else {
                return Some(0);
            };
            let next = number + 1..=number + advice.len as u64;
            there.extend(next.clone());
            walks.came(PARENT, next.map(|it| Ino(100 + it)).collect(), now);
            Some(advice.len)
        };
        dirs.into_iter().filter_map(list).collect()
    }

    #[test]
    fn windows_double_while_they_are_used() {
        let walks = Walks::new(None);
        let came = walk(&walks, 0..261, NOW);
        assert_eq!(came, [0, 0, 4, 8, 16, 32, 64, 64, 64]);
    }

    #[test]
    fn no_more_come_than_are_listed_while_what_is_told_holds() {
        for (millis_a_directory, most) in [(1, MOST), (40, 12), (400, 1), (5000, 1)] {
            let walks = Walks::new(Some(Duration::from_secs(1)));
            let (mut now, mut left, mut longest) = (NOW, 0, 0);
            for number in 0..300 {
                now.0 += millis_a_directory;
                let dir = Ino(100 + number);
                if left > 0 {
                    left -= 1;
                    walks.met(PARENT, dir, now);
                } else if let Some(advice) = walks.decide(PARENT, dir, (number, b""), now) {
                    left = advice.len as u64;
                    let next = number + 1..=number + left;
                    walks.came(PARENT, next.map(|it| Ino(100 + it)).collect(), now);
                    longest = longest.max(advice.len);
                }
            }
            assert!(
                (most / 2..=most).contains(&longest) || longest == FIRST,
                "{longest} at {millis_a_directory} ms"
            );
        }
    }

    #[test]
    fn a_wrong_guess_ends_and_rests() {
        let walks = Walks::new(None);
        let came = walk(&walks, (0..20).map(|it| it * 100), NOW);
        assert_eq!(came.iter().sum::<usize>(), 4, "{came:?}");
        // A second later it is tried again, and pauses for longer.
        let later = Millis(NOW.0 + 1001);
        let came = walk(&walks, (0..20).map(|it| it * 100), later);
        assert_eq!(came.iter().sum::<usize>(), 4, "{came:?}");
        let later = Millis(later.0 + 1001);
        let came = walk(&walks, (0..20).map(|it| it * 100), later);
        assert_eq!(came.iter().sum::<usize>(), 0, "{came:?}");
    }

    #[test]
    fn the_order_is_that_in_which_directories_were_listed() {
        // Cookies of names that ascend.
        for (places, order) in [
            ([9, 4, 6], WalkOrder::Name),
            ([3, 4, 9], WalkOrder::Listing),
        ] {
            let walks = Walks::new(None);
            let advice = places.into_iter().enumerate().map(|(at, cookie)| {
                walks.decide(PARENT, Ino(cookie), (cookie, &name(at as u64)), NOW)
            });
            let advice = advice.last().flatten().expect("the third one has company");
            assert_eq!((advice.order, advice.inodes), (order, false));
        }
    }

    #[test]
    fn inodes_come_along_where_they_were_asked_for() {
        let walks = Walks::new(None);
        walks.asks_for_inodes(PARENT);
        for number in 0..3 {
            let advice = walks.decide(PARENT, Ino(100 + number), (number, &name(number)), NOW);
            assert!(advice.is_none_or(|advice| number == 2 && advice.inodes));
            walks.asks_for_inodes(PARENT);
        }
        // Meanwhile another thread lists the next one.
        assert_eq!(walks.decide(PARENT, Ino(103), (3, &name(3)), NOW), None);
    }

    #[test]
    fn another_parent_takes_the_row_of_one_that_nobody_walks_through() {
        let walks = Walks::new(None);
        let meets = |ino: &Ino| place(*ino) == place(PARENT);
        let other = (8..).map(Ino).find(meets);
        let other = other.expect("some number meets it");
        let decide = |parent, now| {
            (0..3).fold(None, |_, number| {
                walks.decide(parent, Ino(100 + number), (number, &name(number)), now)
            })
        };
        assert!(decide(PARENT, NOW).is_some());
        assert_eq!(decide(other, NOW), None, "a window is under way");
        walks.came(PARENT, Vec::new(), NOW);
        assert!(decide(other, NOW).is_some());
    }
}
