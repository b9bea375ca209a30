//! What a loan is made of, for a model to exchange.
//!
//! `tests/loan_model` compiles it a second time, with another module of this name that holds loom's locks.

pub(crate) use parking_lot::{Condvar, Mutex};
pub(crate) use std::sync::Arc;

/// How often the lender looks whether the other one is done before he sleeps: some ten microseconds.
pub(crate) const LOOKS: usize = 200;

/// Before another look.
pub(crate) fn look_again() {
    for _ in 0..16 {
        std::hint::spin_loop();
    }
}
