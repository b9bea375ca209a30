//! Numbers for the threads of the model.

use std::sync::atomic::{AtomicUsize, Ordering};

loom::lazy_static! {
    static ref NEXT: AtomicUsize = AtomicUsize::new(0);
}

loom::thread_local! {
    static SLOT: usize = NEXT.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn thread_slot() -> usize {
    SLOT.with(|slot| *slot)
}
