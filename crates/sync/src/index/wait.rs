//! Sleeping until an object is freeing no longer: it has left, or is live again.
//!
//! *Invariant.* No wake-up is lost. A waiter takes a ticket, *then* marks the object's word, *then*
//! sleeps while its ticket is current. The thread that ends the state "freeing" reads the mark in
//! the same step, and *then* issues a new ticket. If the mark came before that step, the new ticket
//! is later than the waiter's. If it came after, the mark was refused, and the waiter does not
//! sleep.
//!
//! *Locking.* A room's lock is a leaf: nothing is called under it. No thread pins, retires or frees
//! under it, so destructors that the epochs run may wake waiters.

use crate::primitive::{Condvar, Mutex, process_wide};

/// Where the waiters for some keys sleep.
struct Room {
    ticket: Mutex<u64>,
    changed: Condvar,
}

process_wide! {
    /// One table for all indexes: an object does not know its index.
    static TABLE: [Room; 64] = Room { ticket: Mutex::new(0), changed: Condvar::new() };
}

fn room(key: u64) -> &'static Room {
    let rooms = TABLE.len() as u64;
    // A remainder below 64 fits any usize.
    &TABLE[(key % rooms) as usize]
}

/// The current ticket: to be taken before the object's word is read.
pub(super) fn ticket(key: u64) -> u64 {
    *room(key).ticket.lock()
}

/// Sleeps until a thread wakes the waiters for `key` (or for a key of the same room), unless that
/// has happened since `ticket`.
pub(super) fn sleep(key: u64, ticket: u64) {
    let room = room(key);
    let mut current = room.ticket.lock();
    while *current == ticket {
        room.changed.wait(&mut current);
    }
}

/// Wakes all waiters for `key`.
#[cold]
pub(super) fn wake(key: u64) {
    let room = room(key);
    *room.ticket.lock() += 1;
    room.changed.notify_all();
}
