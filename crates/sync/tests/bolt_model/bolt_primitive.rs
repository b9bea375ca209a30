//! Loom's parts under the names that bolts use.

pub(crate) use loom::sync::atomic::Ordering;
use loom::sync::{Condvar, Mutex};

/// A byte whose stores are exchanges that nobody looks at: a plain store is allowed by loom to come between another
/// thread's exchange and what that one met, which no processor does.
#[derive(Default)]
pub(crate) struct AtomicU8(loom::sync::atomic::AtomicU8);

impl AtomicU8 {
    pub(crate) fn new(value: u8) -> Self {
        Self(loom::sync::atomic::AtomicU8::new(value))
    }

    pub(crate) fn load(&self, order: Ordering) -> u8 {
        self.0.load(order)
    }

    pub(crate) fn store(&self, value: u8, order: Ordering) {
        self.0.swap(value, order);
    }

    pub(crate) fn swap(&self, value: u8, order: Ordering) -> u8 {
        self.0.swap(value, order)
    }

    pub(crate) fn compare_exchange(
        &self,
        met: u8,
        value: u8,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u8, u8> {
        self.0.compare_exchange(met, value, success, failure)
    }
}

/// Constant in the real one only.
macro_rules! constant {
    ($($rest:tt)*) => { $($rest)* };
}
pub(crate) use constant;

/// How often somebody looks before he sleeps.
pub(crate) const LOOKS: usize = 1;

pub(crate) fn look_again() {
    loom::thread::yield_now();
}

/// One for all bolts.
pub(crate) struct Room {
    sleeping: Mutex<()>,
    awake: Condvar,
}

loom::lazy_static! {
    static ref ROOM: Room = Room {
        sleeping: Mutex::new(()),
        awake: Condvar::new(),
    };
}

impl Room {
    pub(crate) fn of(_address: usize) -> &'static Self {
        &ROOM
    }

    /// A nap may end at once: nobody relies on being woken.
    pub(crate) fn sleep_while(&self, mut so: impl FnMut() -> bool) {
        loop {
            let sleeping = self.sleeping.lock().expect("a panic ends the model");
            if !so() {
                return;
            }
            drop(sleeping);
            loom::thread::yield_now();
        }
    }

    pub(crate) fn wake_all(&self) {
        let _sleeping = self.sleeping.lock().expect("a panic ends the model");
        self.awake.notify_all();
    }
}
