//! What callers do with the names that they list: ask for each file's attributes, or not.
//!
//! A listing can bring attributes along (READDIRPLUS), which spares a program that needs them a request a file, and costs one that
//! does not some five times the listing, an inode in the kernel and one in the daemon. Programs do one or the other
//! for a whole tree, so each caller is judged by what it did with its last listings.
//!
//! How it is seen: what came with attributes is never asked for, so a listing on *trial* leaves one file of each
//! reply without them. A LOOKUP of any file by a caller that lists says that it needs them.
//!
//! # Invariants
//! A habit decides what a listing costs, never what it shows: an entry without attributes is looked up when they
//! are needed. A wrong guess ends with the first LOOKUP.
//!
//! # Sharing
//! A caller's state is one word, on a line with no other caller's unless both come to one place of the table: then
//! the later takes it over. A LOOKUP of a caller whose habit is known writes nothing.

use std::sync::atomic::{AtomicU64, Ordering};

/// Callers that are remembered, a power of two.
const PLACES: usize = 64;
/// Files given with attributes to a caller of which nothing is known, before it is judged in the middle of a listing.
const FIRST: u16 = 4096;
/// The same where each file's attributes are an answer of a store that may be far away: as many as it answers at once.
const FIRST_OF_SHARED: u16 = 128;
/// Of a caller that asks for attributes, one in so many listings is on trial.
const TRIALS: u8 = 8;
/// So many trials in a row that show no need end the habit of asking: a walk may list below a directory before it
/// asks for that directory's files.
const DOUBTS: u8 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Habit {
    Unknown,
    /// It asks for the attributes of what it lists.
    Asks,
    /// It needs names only.
    Lists,
}

/// One caller, as its word has it: bits 0 to 31 its thread's number, 32 and 33 its habit, 34 the trial, 35 to 37
/// trials without need, 40 to 47 listings, 48 to 63 what was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Caller {
    thread: u32,
    habit: Habit,
    /// A listing left a file without attributes, and none was looked up since.
    trial: bool,
    doubts: u8,
    /// Listings begun, modulo [`TRIALS`].
    listings: u8,
    /// Files given with attributes in this listing.
    given: u16,
}

impl Caller {
    fn new(thread: u32) -> Self {
        Self {
            thread,
            habit: Habit::Unknown,
            trial: false,
            doubts: 0,
            listings: 0,
            given: 0,
        }
    }

    fn from_word(word: u64) -> Self {
        Self {
            thread: word as u32,
            habit: match word >> 32 & 3 {
                1 => Habit::Asks,
                2 => Habit::Lists,
                _ => Habit::Unknown,
            },
            trial: word >> 34 & 1 == 1,
            doubts: (word >> 35 & 7) as u8,
            listings: (word >> 40) as u8,
            given: (word >> 48) as u16,
        }
    }

    fn word(self) -> u64 {
        let habit = match self.habit {
            Habit::Unknown => 0,
            Habit::Asks => 1,
            Habit::Lists => 2,
        };
        u64::from(self.thread)
            | habit << 32
            | u64::from(self.trial) << 34
            | u64::from(self.doubts) << 35
            | u64::from(self.listings) << 40
            | u64::from(self.given) << 48
    }

    /// A listing begins: what became of the last trial is known as far as it will be.
    fn begin(&mut self) {
        if self.trial {
            self.trial = false;
            self.doubts += 1;
            if self.habit == Habit::Unknown || self.doubts >= DOUBTS {
                self.habit = Habit::Lists;
            }
        }
        self.given = 0;
        self.listings = (self.listings + 1) % TRIALS;
    }

    /// What the next reply of the listing is to hold. `first`: files given before it is judged.
    fn plan(&mut self, first: u16) -> Plan {
        if self.habit == Habit::Unknown && self.trial && self.given >= first {
            self.begin();
        }
        Plan {
            attributes: self.habit != Habit::Lists,
            trial: match self.habit {
                Habit::Unknown => true,
                Habit::Asks => self.listings == 0,
                Habit::Lists => false,
            },
        }
    }
}

/// What a reply to a listing is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Files come with attributes. Directories do in any case: a walk that lists goes into them.
    pub(super) attributes: bool,
    /// One file that the kernel does not know comes without, all the same.
    pub(super) trial: bool,
}

/// The word of one caller.
#[derive(Default)]
#[repr(align(128))]
struct Place(AtomicU64);

/// The callers that listed lately.
pub(super) struct Callers {
    places: Box<[Place]>,
    /// Files given with attributes to one of which nothing is known.
    first: u16,
}

impl Callers {
    /// Nobody yet. `shared`: attributes come from a store that is asked for each file's.
    pub(super) fn new(shared: bool) -> Self {
        Self {
            places: (0..PLACES).map(|_| Place::default()).collect(),
            first: if shared { FIRST_OF_SHARED } else { FIRST },
        }
    }

    fn place(&self, thread: u32) -> &AtomicU64 {
        // Threads that are numbered one after the other get places of their own.
        &self.places[thread as usize % PLACES].0
    }

    fn change(&self, thread: u32, change: impl FnOnce(&mut Caller) -> Plan) -> Plan {
        let place = self.place(thread);
        let mut caller = Caller::from_word(place.load(Ordering::Relaxed));
        if caller.thread != thread {
            caller = Caller::new(thread);
        }
        let plan = change(&mut caller);
        // Only this caller changes it, or one that takes the place over: a habit lost so is seen again.
        place.store(caller.word(), Ordering::Relaxed);
        plan
    }

    /// What the reply to this caller's READDIRPLUS is to hold; `begins`: it is the first of a listing. A caller without
    /// a number (of another process namespace) gets everything.
    pub(super) fn plan(&self, thread: u32, begins: bool) -> Plan {
        if thread == 0 {
            return Plan {
                attributes: true,
                trial: false,
            };
        }
        self.change(thread, |caller| {
            if begins {
                caller.begin();
            }
            caller.plan(self.first)
        })
    }

    /// A reply gave so many files with attributes, and perhaps left one without, on trial.
    pub(super) fn gave(&self, thread: u32, plan: Plan, files: usize, tried: bool) {
        if thread == 0 || !(tried || plan.trial && files > 0) {
            return;
        }
        self.change(thread, |caller| {
            caller.trial |= tried;
            caller.given = caller
                .given
                .saturating_add(files.min(usize::from(u16::MAX)) as u16);
            plan
        });
    }

    /// This caller looked a file up.
    pub(super) fn looked_up(&self, thread: u32) {
        let place = self.place(thread);
        let caller = Caller::from_word(place.load(Ordering::Relaxed));
        if thread == 0 || caller.thread != thread || caller.habit == Habit::Asks && !caller.trial {
            return;
        }
        let asks = Caller {
            habit: Habit::Asks,
            trial: false,
            doubts: 0,
            ..caller
        };
        place.store(asks.word(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists a directory of so many files; says how many came without attributes.
    fn list(callers: &Callers, thread: u32, files: usize) -> usize {
        let (mut left, mut begins, mut bare) = (files, true, 0);
        while left > 0 {
            let plan = callers.plan(thread, begins);
            begins = false;
            let reply = left.min(128);
            left -= reply;
            let without = match plan {
                Plan {
                    attributes: false, ..
                } => reply,
                Plan { trial, .. } => usize::from(trial),
            };
            callers.gave(thread, plan, reply - without, plan.trial);
            bare += without;
        }
        bare
    }

    #[test]
    fn a_word_holds_all_of_a_caller() {
        for habit in [Habit::Unknown, Habit::Asks, Habit::Lists] {
            let caller = Caller {
                thread: u32::MAX,
                habit,
                trial: true,
                doubts: DOUBTS,
                listings: TRIALS - 1,
                given: u16::MAX - 1,
            };
            assert_eq!(Caller::from_word(caller.word()), caller);
        }
    }

    #[test]
    fn a_walk_that_only_lists_gets_no_attributes_from_its_second_directory_on() {
        let callers = Callers::new(false);
        assert_eq!(list(&callers, 7, 10), 1);
        for _ in 0..100 {
            assert_eq!(list(&callers, 7, 10), 10);
        }
    }

    #[test]
    fn a_walk_that_asks_gets_all_and_goes_on_being_tried() {
        let callers = Callers::new(false);
        let mut looked_up = 0;
        for _ in 0..160 {
            let bare = list(&callers, 7, 10);
            (0..bare).for_each(|_| callers.looked_up(7));
            looked_up += bare;
        }
        assert_eq!(looked_up, 1 + 160 / usize::from(TRIALS));
    }

    #[test]
    fn one_file_looked_up_ends_the_habit_of_listing() {
        let callers = Callers::new(false);
        list(&callers, 7, 10);
        assert_eq!(list(&callers, 7, 10), 10);
        callers.looked_up(7);
        assert_eq!(list(&callers, 7, 10), 0);
    }

    #[test]
    fn a_walk_that_asks_no_more_is_seen_after_some_trials() {
        let callers = Callers::new(false);
        list(&callers, 7, 10);
        callers.looked_up(7);
        let listings = usize::from(DOUBTS + 1) * usize::from(TRIALS);
        for _ in 0..listings {
            list(&callers, 7, 10);
        }
        assert_eq!(list(&callers, 7, 10), 10);
    }

    #[test]
    fn one_large_directory_is_judged_on_the_way() {
        let callers = Callers::new(false);
        let bare = list(&callers, 7, 100_000);
        assert!(bare > 100_000 - 2 * usize::from(FIRST), "{bare}");
    }

    #[test]
    fn where_attributes_come_from_far_away_a_caller_is_judged_after_its_first_reply() {
        let callers = Callers::new(true);
        let bare = list(&callers, 7, 100_000);
        assert!(bare >= 100_000 - 2 * 128, "{bare}");
        // `ls -l` of a directory that comes in one reply: it asks for the one that it misses.
        assert_eq!(list(&callers, 8, 100), 1);
        callers.looked_up(8);
        assert_eq!(list(&callers, 8, 1000), 0);
    }

    #[test]
    fn another_caller_at_the_same_place_begins_anew_and_none_is_known_without_a_number() {
        let callers = Callers::new(false);
        list(&callers, 7, 10);
        assert_eq!(list(&callers, 7 + PLACES as u32, 10), 1);
        callers.looked_up(7);
        assert_eq!(list(&callers, 7 + PLACES as u32, 10), 10);
        callers.looked_up(0);
        assert_eq!((list(&callers, 0, 10), list(&callers, 0, 10)), (0, 0));
    }
}
