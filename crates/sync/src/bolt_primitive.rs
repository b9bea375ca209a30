//! What bolts are made of, for a model to exchange.
//!
//! `tests/bolt_model` compiles them a second time, with another module of this name that holds loom's atomics, and naps
//! that may end at any moment.

pub(crate) use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::{Condvar, Mutex};
use std::time::Duration;

/// A function that is constant here, which loom's atomics do not allow.
macro_rules! constant {
    ($(#[$meta:meta])* $visible:vis fn $($rest:tt)*) => {
        $(#[$meta])* $visible const fn $($rest)*
    };
}
pub(crate) use constant;

/// How often somebody looks before he sleeps.
pub(crate) const LOOKS: usize = 100;

/// How long who sleeps can miss that it was given back.
const NAP: Duration = Duration::from_millis(1);

/// Before another look.
#[inline]
pub(crate) fn look_again() {
    std::hint::spin_loop();
}

/// Where those sleep whose bolts' addresses fall together.
pub(crate) struct Room {
    sleeping: Mutex<()>,
    awake: Condvar,
}

static ROOMS: [Room; 64] = [const {
    Room {
        sleeping: Mutex::new(()),
        awake: Condvar::new(),
    }
}; 64];

impl Room {
    /// That for a bolt at this address.
    pub(crate) fn of(address: usize) -> &'static Self {
        let hash = (address as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        &ROOMS[(hash >> (u64::BITS - ROOMS.len().ilog2())) as usize]
    }

    /// Sleeps until it is no more so, looking now and then.
    pub(crate) fn sleep_while(&self, mut so: impl FnMut() -> bool) {
        let mut sleeping = self.sleeping.lock();
        while so() {
            self.awake.wait_for(&mut sleeping, NAP);
        }
    }

    /// Wakes all who sleep here, of whichever bolt they are.
    pub(crate) fn wake_all(&self) {
        let _sleeping = self.sleeping.lock();
        self.awake.notify_all();
    }
}
