//! Epochs that free as early as the real ones possibly could: at the end of the last guard that
//! lived at the retirement.
//!
//! They order memory no more than the real ones do. A pin comes after every retirement that does
//! not wait for it. A destructor comes after its retirement and the guards that it waited for. A
//! pin is not ordered after earlier guards.

use loom::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

#[derive(Default)]
struct State {
    guards: Vec<usize>,
    dealt: usize,
    garbage: Vec<Garbage>,
}

struct Garbage {
    guards: Vec<usize>,
    value: *mut (),
    drop: unsafe fn(*mut ()),
}

struct Domain {
    // Bookkeeping of the model: it is no step of a thread, and orders nothing.
    state: Mutex<State>,
    retired: AtomicUsize,
    unpinned: AtomicUsize,
}

// SAFETY: retired values may be dropped on any thread, by the contract of `retire_with`.
unsafe impl Send for Garbage {}

loom::lazy_static! {
    static ref DOMAIN: Domain = Domain {
        state: Mutex::default(),
        retired: AtomicUsize::new(0),
        unpinned: AtomicUsize::new(0),
    };
}

/// Keeps what is retired from now on.
pub struct Guard(usize);

/// Nothing to hand over: garbage is dropped at once.
pub fn flush() {}

/// Pins the calling thread.
pub fn pin() -> Guard {
    let id = with(|state| {
        state.dealt += 1;
        state.guards.push(state.dealt);
        state.dealt
    });
    DOMAIN.retired.fetch_add(0, Ordering::Acquire);
    Guard(id)
}

impl Drop for Guard {
    fn drop(&mut self) {
        DOMAIN.unpinned.fetch_add(1, Ordering::Release);
        with(|state| {
            state.guards.retain(|guard| *guard != self.0);
            for garbage in &mut state.garbage {
                garbage.guards.retain(|guard| *guard != self.0);
            }
        });
        free();
    }
}

/// # Safety
/// As for the real one.
pub(crate) unsafe fn retire_with(value: *mut (), drop: unsafe fn(*mut ())) {
    DOMAIN.retired.fetch_add(1, Ordering::Release);
    with(|state| {
        let guards = state.guards.clone();
        state.garbage.push(Garbage {
            guards,
            value,
            drop,
        });
    });
    free();
}

fn free() {
    let due: Vec<Garbage> = with(|state| {
        state
            .garbage
            .extract_if(.., |garbage| garbage.guards.is_empty())
            .collect()
    });
    if !due.is_empty() {
        DOMAIN.unpinned.fetch_add(0, Ordering::Acquire);
        DOMAIN.retired.fetch_add(0, Ordering::Acquire);
    }
    for garbage in due {
        // SAFETY: `retire_with` was called with this pair, and it is taken out once.
        unsafe { (garbage.drop)(garbage.value) };
    }
}

fn with<R>(step: impl FnOnce(&mut State) -> R) -> R {
    step(&mut DOMAIN.state.lock().unwrap_or_else(PoisonError::into_inner))
}
