//! Per-caller prediction: does a program that lists a directory also need the attributes?
//!
//! READDIRPLUS returns attributes with the names. A program that needs them saves one LOOKUP a
//! file. For a program that does not, the listing takes about five times as long, with one more
//! inode in the kernel and one in the daemon for each file. Programs mostly do the same for a whole
//! tree, so each caller is predicted from its last listings.
//!
//! The kernel sends no LOOKUP for entries that had attributes. A listing *on trial* therefore
//! leaves out the attributes of one file in each reply. A LOOKUP of any file by a listing caller
//! shows that it needs them.
//!
//! # Invariants
//! A habit decides the cost of a listing, never its content: the kernel looks up an entry without
//! attributes when it needs them. A wrong prediction ends with the first LOOKUP.
//!
//! # Sharing
//! Two callers share a place only if both hash to it; then the later caller replaces the earlier
//! one. Each place has a cache line and a lock of its own.

use parking_lot::Mutex;

/// Places in the table, a power of two.
const PLACES: usize = 64;
/// Files listed with attributes for an unknown caller before it is judged within one listing.
const FIRST: usize = 4096;
/// The same for a shared store, which is asked for each file's attributes: one batch of questions.
const FIRST_OF_SHARED: usize = 128;
/// A caller with the habit [`Habit::Asks`] has one listing in this many on trial.
const TRIALS: u8 = 8;
/// So many consecutive trials without a LOOKUP end [`Habit::Asks`]. One is not enough: a walk may
/// list directories below before it asks for the files of a directory.
const DOUBTS: u8 = 3;

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Habit {
    #[default]
    Unknown,
    /// It asks for the attributes of what it lists.
    Asks,
    /// It needs names only.
    Lists,
}

/// One caller.
#[derive(Default)]
struct Caller {
    thread: u32,
    habit: Habit,
    /// A listing left a file without attributes, and none was looked up since.
    trial: bool,
    doubts: u8,
    /// Listings begun, modulo [`TRIALS`].
    listings: u8,
    /// Files given with attributes in this listing.
    given: usize,
}

impl Caller {
    /// Starts a listing. A trial without a LOOKUP until now counts as one that showed no need.
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
    fn plan(&mut self, first: usize) -> Plan {
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
    /// One file that the kernel does not know is listed without attributes.
    pub(super) trial: bool,
}

/// Aligned, so that no two places share a cache line.
#[derive(Default)]
#[repr(align(128))]
struct Place(Mutex<Caller>);

/// The callers that listed lately.
pub(super) struct Callers {
    places: Box<[Place]>,
    /// Files given with attributes to one of which nothing is known.
    first: usize,
}

impl Callers {
    /// An empty table. `shared`: the store is asked for the attributes of each file.
    pub(super) fn new(shared: bool) -> Self {
        Self {
            places: (0..PLACES).map(|_| Place::default()).collect(),
            first: if shared { FIRST_OF_SHARED } else { FIRST },
        }
    }

    /// Calls `act` with the state of a caller, which is new if another one had its place.
    fn with<T>(&self, thread: u32, act: impl FnOnce(&mut Caller) -> T) -> T {
        // Consecutive thread ids have different places.
        let mut caller = self.places[thread as usize % PLACES].0.lock();
        if caller.thread != thread {
            *caller = Caller {
                thread,
                ..Caller::default()
            };
        }
        act(&mut caller)
    }

    /// What the reply to this caller's READDIRPLUS holds; `begins`: it is the first of a listing. A
    /// caller of another process namespace has thread id 0, and is given all attributes.
    pub(super) fn plan(&self, thread: u32, begins: bool) -> Plan {
        if thread == 0 {
            return Plan {
                attributes: true,
                trial: false,
            };
        }
        self.with(thread, |caller| {
            if begins {
                caller.begin();
            }
            caller.plan(self.first)
        })
    }

    /// A reply had `files` files with attributes; `tried`: it left out those of one file.
    pub(super) fn gave(&self, thread: u32, plan: Plan, files: usize, tried: bool) {
        if thread == 0 || !(tried || plan.trial && files > 0) {
            return;
        }
        self.with(thread, |caller| {
            caller.trial |= tried;
            caller.given += files;
        });
    }

    /// This caller looked a file up, which matters if it has listed.
    pub(super) fn looked_up(&self, thread: u32) {
        let mut caller = self.places[thread as usize % PLACES].0.lock();
        let is_new = caller.trial || caller.habit != Habit::Asks;
        if thread != 0 && caller.thread == thread && is_new {
            caller.habit = Habit::Asks;
            caller.trial = false;
            caller.doubts = 0;
        }
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
        assert!(bare > 100_000 - 2 * FIRST, "{bare}");
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
