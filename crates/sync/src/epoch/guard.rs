//! Pinning, and the calling thread's part of reclamation.
#![expect(unsafe_code, reason = "the thread's own record")]

use super::bag::Deferred;
use super::domain::Domain;
use super::record::{Left, Local, Record};
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem;
use std::sync::atomic::Ordering;

/// The process's domain.
pub(super) static DOMAIN: Domain = Domain::new();

/// Values in a bag before it is sealed. An attempt to advance reads a line of every thread.
const BAG: usize = 512;

/// Sealed bags of a thread. With more, the thread may interrupt all others to advance.
const WAITING_MAX: usize = 16;

thread_local! {
    // Without a destructor and with a constant initializer, so that reading it is one load.
    static RECORD: Cell<Option<&'static Record>> = const { Cell::new(None) };
    static OWNER: Owner = const { Owner };
}

/// Gives the thread's record back when the thread ends.
struct Owner;

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(record) = RECORD.take() {
            leave(record);
        }
    }
}

/// Seals the thread's bag, and leaves the record to the next thread.
fn leave(record: &'static Record) {
    seal(record);
    record.give_back();
    // What is due would otherwise wait for the next thread that retires much.
    DOMAIN.collect(record, DOMAIN.try_advance(None, false));
}

#[inline]
fn record() -> &'static Record {
    match RECORD.get() {
        Some(record) => record,
        None => enter(),
    }
}

#[cold]
fn enter() -> &'static Record {
    let record = DOMAIN.take_record();
    // After the owner's destructor the thread's end gives nothing back: its last guard does.
    let borrowed = OWNER.try_with(|_| ()).is_err();
    // SAFETY: this thread has just taken it, and does not use it yet.
    unsafe { record.with_local(|local| local.begin(borrowed)) };
    RECORD.set(Some(record));
    record
}

/// Keeps what the thread finds from being freed, until it is dropped.
///
/// It belongs to the thread that made it.
pub struct Guard {
    record: &'static Record,
    own_thread: PhantomData<*mut ()>,
}

impl Guard {
    #[inline]
    pub(super) fn pin() -> Self {
        let record = record();
        // SAFETY: this thread's record; the closure calls nothing.
        if unsafe { record.with_local(Local::enter) } {
            // SAFETY: as above.
            unsafe { record.pin(DOMAIN.epoch()) };
        }
        Self {
            record,
            own_thread: PhantomData,
        }
    }

    /// Drops a guard of a thread that does not keep its record.
    #[cold]
    #[inline(never)]
    fn leave_borrowed(&self) {
        let leave = |local: &mut Local| {
            local.leave_borrowed();
            local.is_over()
        };
        // SAFETY: this thread's record; the closure calls nothing.
        if unsafe { self.record.with_local(leave) } {
            self.record.unpin();
            end_borrow(self.record);
        }
    }
}

impl Drop for Guard {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this thread's record (a guard is not `Send`); the closure calls nothing.
        match unsafe { self.record.with_local(Local::leave) } {
            Left::Unpinned => self.record.unpin(),
            Left::Pinned => {}
            Left::Borrowed => self.leave_borrowed(),
        }
    }
}

#[cold]
fn end_borrow(record: &'static Record) {
    RECORD.set(None);
    leave(record);
}

pub(super) fn is_pinned() -> bool {
    let Some(record) = RECORD.get() else {
        return false;
    };
    // SAFETY: this thread's record; the closure calls nothing.
    unsafe { record.with_local(|local| local.guards() > 0) }
}

/// Retires a value.
#[inline]
pub(super) fn defer(value: Deferred) {
    let record = record();
    let retired = record.retired.load(Ordering::Relaxed) + 1;
    record.retired.store(retired, Ordering::Relaxed);
    // SAFETY: this thread's record; pushing calls nothing but the allocator.
    let full = unsafe {
        record.with_local(|local| {
            local.bag.push(value);
            local.bag.len() >= BAG
        })
    };
    if full {
        reclaim(record);
    }
    // SAFETY: as above.
    if unsafe { record.with_local(|local| local.is_over()) } {
        end_borrow(record);
    }
}

/// Hands over the thread's bag, and drops what is due.
pub(super) fn flush() {
    if let Some(record) = RECORD.get() {
        reclaim(record);
    }
}

fn seal(record: &'static Record) {
    // SAFETY: this thread's record; the closure calls nothing.
    let bag = unsafe { record.with_local(|local| mem::take(&mut local.bag)) };
    if !bag.is_empty() {
        let sealed = DOMAIN.seal(bag);
        record.sealed.lock().push_back(sealed);
    }
}

/// Waits until all current pins have ended, and drops what was retired before.
pub(super) fn wait_for_grace() {
    DOMAIN.wait_for_grace(RECORD.get());
}

#[cold]
fn reclaim(record: &'static Record) {
    seal(record);
    // SAFETY: this thread's record; the closure calls nothing.
    let busy = unsafe { record.with_local(|local| mem::replace(&mut local.collecting, true)) };
    if busy {
        return;
    }
    let urgent = record.sealed.lock().len() > WAITING_MAX;
    let epoch = DOMAIN.try_advance(Some(record), urgent);
    DOMAIN.collect(record, epoch);
    // SAFETY: as above.
    unsafe { record.with_local(|local| local.collecting = false) };
}
