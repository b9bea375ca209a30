//! The queue between the reporters of events and their receiver.

use super::event::{Event, EventMask};
use holdfast_types::Ino;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct EventQueue {
    pending: Mutex<Pending>,
    arrived: Condvar,
    capacity: usize,
}

#[derive(Debug, Default)]
struct Pending {
    /// At most `capacity` events and one `Q_OVERFLOW`.
    events: VecDeque<Event>,
    /// Is there a `Q_OVERFLOW` among them?
    overflowed: bool,
}

impl Pending {
    fn pop(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        if event.mask.contains(EventMask::Q_OVERFLOW) {
            self.overflowed = false;
        }
        Some(event)
    }
}

impl EventQueue {
    /// A queue for this many events.
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            pending: Mutex::default(),
            arrived: Condvar::new(),
            capacity,
        }
    }

    /// Adds an event, unless it repeats the last one (if that is still queued) or the queue is
    /// full. Unlike inotify, repeated events must also have the same cookie.
    pub(super) fn push(&self, ino: Ino, mask: EventMask, name: Option<&[u8]>, cookie: u32) {
        let mut pending = self.pending.lock();
        let repeats = |last: &Event| {
            !mask.contains(EventMask::IGNORED)
                && (last.ino, last.mask, last.cookie) == (ino, mask, cookie)
                && last.name.as_deref() == name
        };
        if pending.events.len() >= self.capacity {
            if pending.overflowed {
                return;
            }
            pending.overflowed = true;
            let mask = EventMask::Q_OVERFLOW;
            pending.events.push_back(Event {
                ino,
                mask,
                cookie: 0,
                name: None,
            });
        } else if pending.events.back().is_some_and(repeats) {
            return;
        } else {
            let name = name.map(Box::from);
            pending.events.push_back(Event {
                ino,
                mask,
                cookie,
                name,
            });
        }
        self.arrived.notify_one();
    }

    pub(super) fn try_pop(&self) -> Option<Event> {
        self.pending.lock().pop()
    }

    /// The next event; waits at most `timeout`.
    pub(super) fn pop_timeout(&self, timeout: Duration) -> Option<Event> {
        // None: beyond the range of the clock.
        let deadline = Instant::now().checked_add(timeout);
        let mut pending = self.pending.lock();
        loop {
            if let Some(event) = pending.pop() {
                return Some(event);
            }
            match deadline {
                None => self.arrived.wait(&mut pending),
                Some(deadline) => {
                    if self.arrived.wait_until(&mut pending, deadline).timed_out() {
                        return pending.pop();
                    }
                }
            }
        }
    }
}
