//! The epoch that all threads share, and the list of their records.
#![expect(unsafe_code, reason = "a list of records that are never freed")]

use super::bag::{Bag, STEP, Sealed};
use super::record::{PINNED, Record};
use crate::padded::Padded;
use crate::primitive::{AtomicBool, AtomicPtr, AtomicU64, Ordering, constant};
use crate::primitive::{everywhere, fence, is_due};
use std::collections::VecDeque;
use std::ptr;

/// The capacity that an empty queue keeps.
pub(super) const ROOM_KEPT: usize = 64;

/// Epoch and records.
///
/// *Locking.* One thread at a time holds `turn` and may advance the epoch; others do not wait for
/// it.
pub(super) struct Domain {
    epoch: Padded<AtomicU64>,
    turn: Padded<AtomicBool>,
    head: AtomicPtr<Record>,
}

/// The right to advance the epoch.
struct Turn<'d>(&'d AtomicBool);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // Release: the next holder sees the effects of this one's barriers.
        self.0.store(false, Ordering::Release);
    }
}

/// What a record says about its thread.
enum Place {
    /// It holds nothing from before this epoch, and will find nothing from before.
    Here,
    /// It is pinned in an epoch before this one.
    Behind,
    /// Its last pin is from an earlier epoch, and it may have pinned since without a fence.
    Unknown,
}

impl Domain {
    constant! {
        pub(super) fn new() -> Self {
            Self {
                epoch: Padded(AtomicU64::new(STEP)),
                turn: Padded(AtomicBool::new(false)),
                head: AtomicPtr::new(ptr::null_mut()),
            }
        }
    }

    /// The epoch, for a thread that pins itself.
    #[inline]
    pub(super) fn epoch(&self) -> &AtomicU64 {
        &self.epoch
    }

    fn records(&self) -> impl Iterator<Item = &'static Record> {
        let head = self.head.load(Ordering::Acquire);
        // SAFETY: records are leaked when they are pushed, so they are valid for ever, and shared
        // from then on.
        let head = unsafe { head.as_ref::<'static>() };
        std::iter::successors(head, |record| record.next.get())
    }

    /// A record that belongs to the calling thread until that gives it back.
    pub(super) fn take_record(&self) -> &'static Record {
        if let Some(free) = self.records().find(|record| record.try_take()) {
            return free;
        }
        let record: &'static Record = Box::leak(Box::new(Record::taken()));
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            // SAFETY: as in `records`.
            record.next.set(unsafe { head.as_ref::<'static>() });
            let mine = ptr::from_ref(record).cast_mut();
            match self
                .head
                .compare_exchange_weak(head, mine, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return record,
                Err(now) => head = now,
            }
        }
    }

    /// The current epoch. Every thread that pins in a later one sees what the caller did before.
    pub(super) fn moment(&self) -> u64 {
        // A read-modify-write, though nothing changes: a thread that reads a later epoch, to pin
        // itself or to check the pins of others, sees what was done before.
        self.epoch.fetch_add(0, Ordering::AcqRel)
    }

    /// Seals a bag: everything in it was unlinked before now.
    pub(super) fn seal(&self, bag: Bag) -> Sealed {
        Sealed {
            epoch: self.moment(),
            bag,
        }
    }

    /// Advances the epoch if all pinned threads are known to have seen it; returns the epoch after
    /// that. `own` is the caller's record. `urgent`: finding out about silent threads may interrupt
    /// all threads, however recently that was done.
    pub(super) fn try_advance(&self, own: Option<&Record>, urgent: bool) -> u64 {
        if self.turn.swap(true, Ordering::Acquire) {
            return self.epoch.load(Ordering::Acquire);
        }
        let _turn = Turn(&self.turn);
        let epoch = self.epoch.load(Ordering::Acquire);
        // Pairs with the fence of fenced pins.
        fence(Ordering::SeqCst);
        let mut unknown = false;
        for record in self.records() {
            match place(record, own, epoch) {
                Place::Here => {}
                Place::Behind => return epoch,
                Place::Unknown => unknown = true,
            }
        }
        if unknown && !((urgent || is_due()) && self.find_out(own, epoch)) {
            return epoch;
        }
        self.epoch.fetch_add(STEP, Ordering::AcqRel) + STEP
    }

    /// Makes all threads fence that are not known to have seen this epoch, now and at each later
    /// pin. `true` if none is pinned in an earlier epoch.
    fn find_out(&self, own: Option<&Record>, epoch: u64) -> bool {
        let unknown = |record: &&Record| matches!(place(record, own, epoch), Place::Unknown);
        let unknown: Vec<&Record> = self.records().filter(unknown).collect();
        let trust = |trusted| {
            for record in &unknown {
                record.trusted.store(trusted, Ordering::Relaxed);
            }
        };
        trust(false);
        if !everywhere() {
            // Their pins are not fenced: they must not count as untrusted.
            trust(true);
            return false;
        }
        // A thread that did not see its loss of trust had stored its word before the barrier, so
        // the word is visible now. Later pins of it are fenced.
        self.records().all(|record| {
            let word = record.word.load(Ordering::Acquire);
            word & PINNED == 0 || word & !PINNED == epoch
        })
    }

    /// Drops what is due in one record's queue.
    pub(super) fn collect(&self, record: &Record, epoch: u64) {
        loop {
            let due = {
                let mut sealed = record.sealed.lock();
                match sealed.front() {
                    Some(first) if first.is_due(epoch) => sealed.pop_front(),
                    None if sealed.capacity() > ROOM_KEPT => {
                        // A long pin held up many bags once, and records are never freed.
                        *sealed = VecDeque::new();
                        None
                    }
                    _ => None,
                }
            };
            let Some(due) = due else { return };
            let count = due.bag.len() as u64;
            for value in due.bag {
                value.run();
            }
            record.dropped.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Waits for two advances after this moment, and drops what is due everywhere.
    pub(super) fn wait_for_grace(&self, own: Option<&Record>) {
        let target = self.moment() + 2 * STEP;
        let mut waits = 0_u32;
        while self.try_advance(own, true) < target {
            // Pins are short: yield first, then sleep.
            waits += 1;
            if waits < 64 {
                std::thread::yield_now();
            } else {
                std::thread::sleep(std::time::Duration::from_micros(50));
            }
        }
        let epoch = self.epoch.load(Ordering::Acquire);
        for record in self.records() {
            self.collect(record, epoch);
        }
    }

    pub(super) fn pending(&self) -> u64 {
        self.records()
            .map(|record| {
                let dropped = record.dropped.load(Ordering::Relaxed);
                record
                    .retired
                    .load(Ordering::Relaxed)
                    .saturating_sub(dropped)
            })
            .sum()
    }
}

/// What `record` says about its thread. The caller has fenced since it read `epoch`.
fn place(record: &Record, own: Option<&Record>, epoch: u64) -> Place {
    // Read before the word: the thread that changed `trusted` had seen all pins under the old
    // value.
    let trusted = record.trusted.load(Ordering::Acquire);
    // Acquire: what was read under earlier pins.
    let word = record.word.load(Ordering::Acquire);
    if word & !PINNED == epoch {
        // It has seen this epoch, so it sees what was unlinked before.
        Place::Here
    } else if word & PINNED != 0 {
        Place::Behind
    } else if trusted && !own.is_some_and(|own| ptr::eq(own, record)) {
        Place::Unknown
    } else {
        Place::Here
    }
}
