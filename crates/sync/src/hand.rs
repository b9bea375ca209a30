//! A thread at hand, for what cannot wait until one is started, and for what is done beside others.
//!
//! It is there while there is a [`Hand`], and may use the processors that whoever wanted the first one could use. (Those who
//! have work for it may be bound to one each, and so would be whom they start.)
//!
//! A kernel below a virtual machine takes a processor that sleeps for one that is busy with another machine, and wakes a
//! thread where it ran last, even behind the one that wakes it: then nothing is done beside anybody for milliseconds. So whoever has
//! something to do for the thread first sends it away from his own processor.
//!
//! *Locking.* One lock, a leaf, which is held for no work.

use crate::crew::processors;
use crate::loan::Errand;
use crate::service::Service;
use parking_lot::{Condvar, Mutex};
use rustix::process::getpid;
use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_getcpu, sched_setaffinity};
use std::mem;
use std::time::Duration;

/// After so long without work the thread rests.
const IDLE: Duration = Duration::from_secs(1);

/// What is to be done, and by whom.
struct Work {
    /// Of those who wait: before all else.
    errands: Vec<Errand>,
    /// Is there something to do beside others?
    is_wanted: bool,
    /// Who wants the thread, and the thread.
    service: Service,
    /// That it may use.
    processors: usize,
    /// Once it runs.
    place: Option<Place>,
    /// Was there nothing to do for a while?
    is_idle: bool,
}

/// Where the thread may run.
#[derive(Clone, Copy)]
struct Place {
    /// Its process: a child after fork(2) has not got the thread, and its number may be anybody's.
    process: Pid,
    thread: Pid,
    allowed: CpuSet,
}

impl Place {
    /// That of the calling thread.
    fn own() -> Option<Self> {
        let allowed = sched_getaffinity(None).ok()?;
        Some(Self {
            process: getpid(),
            thread: gettid(),
            allowed,
        })
    }

    /// Where it may run, but for this processor; all, if nothing is left.
    fn but(&self, processor: usize) -> CpuSet {
        let mut others = self.allowed;
        others.unset(processor);
        if others.count() == 0 {
            self.allowed
        } else {
            others
        }
    }

    /// Sends the thread away from the caller's processor. If that cannot be done it runs where the kernel thinks.
    fn leave(&self) {
        if self.process == getpid() {
            let _ = sched_setaffinity(Some(self.thread), &self.but(sched_getcpu()));
        }
    }
}

static WORK: Mutex<Work> = Mutex::new(Work {
    errands: Vec::new(),
    is_wanted: false,
    service: Service::new(),
    processors: 1,
    place: None,
    is_idle: true,
});

static CHANGED: Condvar = Condvar::new();

/// What the thread does beside others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Duty {
    /// When it was [wanted](want).
    pub(crate) work: fn(),
    /// After a second without anything to do, once.
    pub(crate) rest: fn(),
}

/// While one of these lives there is a thread.
#[derive(Debug)]
pub(crate) struct Hand(());

impl Hand {
    /// Sees to it that there is one, with this duty if it is the first: unless there is one processor only, or no thread to
    /// be had.
    pub(crate) fn new(duty: Duty) -> Self {
        let mut work = WORK.lock();
        if work.service.enter() {
            work.processors = processors();
            if !cfg!(miri) && work.processors > 1 {
                let serve = move |turn| serve(turn, duty);
                work.service.start("holdfast-hand", serve);
            }
        }
        Self(())
    }
}

impl Work {
    /// There is something to do now.
    fn wake(&self) {
        if let Some(place) = &self.place {
            place.leave();
        }
        CHANGED.notify_all();
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        let farewell = {
            let mut work = WORK.lock();
            let Some(farewell) = work.service.leave() else {
                return;
            };
            work.place = None;
            CHANGED.notify_all();
            farewell
        };
        // (If the last user went on an errand of the thread's, it ends by itself.)
        farewell.wait();
    }
}

/// How many processors the thread may use, if there is one.
pub(crate) fn reach() -> Option<usize> {
    let work = WORK.lock();
    work.service.is_served().then_some(work.processors)
}

/// Lets the thread do its duty as soon as it can.
pub(crate) fn want() {
    let mut work = WORK.lock();
    if work.service.is_served() {
        work.is_wanted = true;
        work.wake();
    }
}

/// Gives the thread an errand, for when it has ended what it is doing.
pub(crate) fn send(errand: Errand) {
    let mut work = WORK.lock();
    // Else it is not begun, which its owner sees.
    if work.service.is_served() {
        work.errands.push(errand);
        work.wake();
    }
}

/// Does what is wanted, as long as it is this thread's turn.
fn serve(turn: u64, duty: Duty) {
    let place = Place::own();
    let mut work = WORK.lock();
    if work.service.is_turn(turn) {
        work.place = place;
    }
    while work.service.is_turn(turn) {
        if let Some(errand) = work.errands.pop() {
            work.is_idle = false;
            drop(work);
            errand.run();
            work = WORK.lock();
        } else if mem::take(&mut work.is_wanted) {
            work.is_idle = false;
            drop(work);
            (duty.work)();
            work = WORK.lock();
        } else if work.is_idle {
            CHANGED.wait(&mut work);
        } else if CHANGED.wait_for(&mut work, IDLE).timed_out()
            && work.errands.is_empty()
            && !work.is_wanted
        {
            work.is_idle = true;
            drop(work);
            (duty.rest)();
            work = WORK.lock();
        }
    }
    if !work.service.is_used() {
        work.errands.clear();
        work.is_wanted = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loan::lend;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Instant;

    const NO_DUTY: Duty = Duty {
        work: || (),
        rest: || (),
    };

    #[test]
    fn errands_are_run_while_somebody_wants_the_thread() {
        let hands = [Hand::new(NO_DUTY), Hand::new(NO_DUTY)];
        let helped = AtomicUsize::new(0);
        let help = || {
            helped.fetch_add(1, Ordering::Relaxed);
        };
        if reach().is_some() {
            for times in 1..=3 {
                let begun = Instant::now();
                lend(&help, send, || {
                    while helped.load(Ordering::Relaxed) < times {
                        assert!(begun.elapsed() < Duration::from_secs(60), "nobody came");
                        thread::yield_now();
                    }
                });
            }
        }
        drop(hands);
        // Whether or not tests beside this one have a hand now: nobody waits for ever.
        lend(&help, send, || ());
    }

    #[test]
    fn it_is_sent_to_another_processor_where_there_is_one() {
        let mut allowed = CpuSet::new();
        allowed.set(3);
        let mut place = Place {
            process: getpid(),
            thread: gettid(),
            allowed,
        };
        let seats = |set: CpuSet| (0..8).filter(|&cpu| set.is_set(cpu)).collect::<Vec<_>>();
        assert_eq!(seats(place.but(3)), [3], "there is no other");
        place.allowed.set(5);
        assert_eq!(seats(place.but(3)), [5]);
        assert_eq!(seats(place.but(7)), [3, 5]);
    }

    #[test]
    fn nobody_is_sent_away_by_another_process_than_its_own() {
        let own = thread::spawn(|| {
            let mut place = Place::own().expect("a place");
            place.process = rustix::process::getppid().expect("a parent");
            let before = sched_getaffinity(None).expect("a set");
            place.leave();
            assert_eq!(sched_getaffinity(None).expect("a set"), before);
            place.process = getpid();
            place.leave();
            let after = sched_getaffinity(None).expect("a set");
            assert_eq!(after.count(), (before.count() - 1).max(1));
        });
        own.join().expect("no panic");
    }

    #[test]
    fn a_thread_that_drops_the_last_use_of_itself_ends() {
        let hand = Mutex::new(Some(Hand::new(NO_DUTY)));
        let dropped = AtomicUsize::new(0);
        let help = || {
            drop(hand.lock().take());
            dropped.fetch_add(1, Ordering::Relaxed);
        };
        let begun = Instant::now();
        if reach().is_some() {
            lend(&help, send, || {
                while dropped.load(Ordering::Relaxed) == 0 {
                    assert!(begun.elapsed() < Duration::from_secs(60), "nobody came");
                    thread::yield_now();
                }
            });
        }
    }
}
