//! Sleeping until an object that is dying is gone, or lives again.
//!
//! *Invariant.* No wake-up is lost. A waiter takes a ticket, *then* marks the object's word, *then*
//! sleeps while its ticket is the current one; whoever takes the object out of the dying state
//! reads the mark in the same step, and *then* makes a new ticket. Either the mark was early enough
//! to be seen, and the new ticket is later than the waiter's; or it was late, and not made.
//!
//! *Locking.* A room's lock is a leaf: nothing is called under it. Nobody pins, retires or frees
//! under it, so destructors that the epochs run may wake.

use crate::primitive::{Condvar, Mutex, process_wide};

/// Where those wait whose keys fall together.
struct Room {
    ticket: Mutex<u64>,
    changed: Condvar,
}

process_wide! {
    /// One table for all indexes: an object does not know its own.
    static TABLE: [Room; 64] = Room { ticket: Mutex::new(0), changed: Condvar::new() };
}

fn room(key: u64) -> &'static Room {
    let rooms = TABLE.len() as u64;
    // A remainder below 64 fits any usize.
    &TABLE[(key % rooms) as usize]
}

/// The current ticket: to be taken before the object is looked at.
pub(super) fn ticket(key: u64) -> u64 {
    *room(key).ticket.lock()
}

/// Sleeps until somebody wakes the waiters for `key` (or for a key in the same room), if nobody
/// has since `ticket`.
pub(super) fn sleep(key: u64, ticket: u64) {
    let room = room(key);
    let mut current = room.ticket.lock();
    while *current == ticket {
        room.changed.wait(&mut current);
    }
}

/// Wakes all that wait for `key`.
#[cold]
pub(super) fn wake(key: u64) {
    let room = room(key);
    *room.ticket.lock() += 1;
    room.changed.notify_all();
}
