//! The epoch that all threads share, and the list of their records.
#![expect(unsafe_code, reason = "a list of records that are never freed")]

use super::bag::{Bag, Sealed};
use super::record::{QUIET, Record};
use crate::padded::Padded;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering, fence};

/// The first epoch; [`QUIET`] is none.
const FIRST: u64 = 2;

/// Epoch and records.
pub(super) struct Domain {
    epoch: Padded<AtomicU64>,
    head: AtomicPtr<Record>,
}

/// The process's domain.
pub(super) static DOMAIN: Domain = Domain {
    epoch: Padded(AtomicU64::new(FIRST)),
    head: AtomicPtr::new(ptr::null_mut()),
};

impl Domain {
    /// The epoch of the moment.
    #[inline]
    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    fn records(&self) -> impl Iterator<Item = &'static Record> {
        let head = self.head.load(Ordering::Acquire);
        // SAFETY: records are leaked when they are pushed: valid for ever, shared from then on.
        let head = unsafe { head.as_ref::<'static>() };
        std::iter::successors(head, |record| record.next.get())
    }

    /// A record that belongs to the calling thread until it gives it back.
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

    /// Closes a bag: everything in it was unlinked before now.
    pub(super) fn seal(&self, bag: Bag) -> Sealed {
        // The epoch must be read after the unlinking that came before: a pin that saw the value
        // has an epoch not later than this one.
        fence(Ordering::SeqCst);
        Sealed {
            epoch: self.epoch.load(Ordering::SeqCst),
            bag,
        }
    }

    /// Advances the epoch, if all pinned threads have seen it; returns the epoch then.
    pub(super) fn try_advance(&self) -> u64 {
        let epoch = self.epoch.load(Ordering::SeqCst);
        // Pairs with the exchange of a pin: either it is seen here, or the pin sees what was
        // unlinked before.
        fence(Ordering::SeqCst);
        for record in self.records() {
            let pinned = record.epoch.load(Ordering::SeqCst);
            if pinned != QUIET && pinned != epoch {
                return epoch;
            }
        }
        match self
            .epoch
            .compare_exchange(epoch, epoch + 1, Ordering::SeqCst, Ordering::SeqCst)
        {
            Ok(_) => epoch + 1,
            Err(now) => now,
        }
    }

    /// Drops what is due in one record's queue.
    pub(super) fn collect(&self, record: &Record, epoch: u64) {
        loop {
            let due = {
                let mut sealed = record.sealed.lock();
                match sealed.front() {
                    Some(first) if first.is_due(epoch) => sealed.pop_front(),
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

    /// Waits for two advances beyond this moment, and drops what is due everywhere.
    pub(super) fn wait_for_grace(&self) {
        let target = self.epoch.load(Ordering::SeqCst) + 2;
        let mut waits = 0_u32;
        loop {
            let epoch = self.try_advance();
            if epoch >= target {
                break;
            }
            // A pin is short: first yield, then sleep.
            waits += 1;
            if waits < 64 {
                std::thread::yield_now();
            } else {
                std::thread::sleep(std::time::Duration::from_micros(50));
            }
        }
        let epoch = self.epoch.load(Ordering::SeqCst);
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
