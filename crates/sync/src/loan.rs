//! A function that is lent to another thread, for no longer than its owner waits.
//!
//! As with `std::thread::scope` another thread may use what the caller only borrows. But that thread is there
//! already, and does other things: it may come late, or never. So the owner does not wait for it to begin: he does his own
//! part, and then takes back what nobody has begun.
//!
//! *Invariant.* The function is called between [`State::Begun`] and [`State::Done`], by whoever made it the
//! first of these, and [`lend`] does not end in between, not by a panic either.
//!
//! *Locking.* The lock of a loan is a leaf, and held for no call.
#![expect(
    unsafe_code,
    reason = "a borrowed function on a thread that is no part of the borrower's scope"
)]

use crate::loan_primitive::{Arc, Condvar, LOOKS, Mutex, look_again};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What may be lent.
type Function<'f> = &'f (dyn Fn() + Sync);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nobody has begun.
    Offered,
    Begun,
    Done,
    /// By a panic.
    Failed,
    TakenBack,
}

struct Call {
    state: Mutex<State>,
    done: Condvar,
    /// For as long as nobody took it back; `'static` is not true.
    function: Function<'static>,
}

/// The other thread's end of a loan. Whoever drops it has not begun.
pub(crate) struct Errand(Arc<Call>);

impl Errand {
    /// Calls the function, unless it was taken back.
    pub(crate) fn run(self) {
        {
            let mut state = self.0.state.lock();
            if *state != State::Offered {
                return;
            }
            *state = State::Begun;
        }
        // Its owner waits from here on until the state says that this is over.
        let outcome = catch_unwind(AssertUnwindSafe(self.0.function));
        let mut state = self.0.state.lock();
        *state = if outcome.is_ok() {
            State::Done
        } else {
            State::Failed
        };
        self.0.done.notify_all();
    }
}

/// The owner's end: its drop is where he waits.
struct Loan(Arc<Call>);

impl Loan {
    /// Takes the function back, or waits until it was called; tells how that ended.
    fn end(&self) -> State {
        for _ in 0..LOOKS {
            let mut state = self.0.state.lock();
            match *state {
                State::Offered => *state = State::TakenBack,
                State::Begun => {}
                ended => return ended,
            }
            drop(state);
            look_again();
        }
        let mut state = self.0.state.lock();
        while *state == State::Begun {
            self.0.done.wait(&mut state);
        }
        *state
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.end();
    }
}

/// Does `own`; meanwhile whoever `offer` gives the errand to may call `help`. Neither goes on when this is over.
///
/// # Panics
/// If one of them does.
pub(crate) fn lend<R>(
    help: Function<'_>,
    offer: impl FnOnce(Errand),
    own: impl FnOnce() -> R,
) -> R {
    // SAFETY: only the lifetime changes. It is called by `Errand::run` alone, from where the state becomes `Begun` to
    // where it ends to be that. The loan below is dropped before this function ends, however it does; then the state is
    // neither `Offered`, so that nobody begins any more, nor `Begun`.
    let function = unsafe { mem::transmute::<Function<'_>, Function<'static>>(help) };
    let call = Arc::new(Call {
        state: Mutex::new(State::Offered),
        done: Condvar::new(),
        function,
    });
    let loan = Loan(Arc::clone(&call));
    offer(Errand(call));
    let result = own();
    assert_ne!(loan.end(), State::Failed, "a helper panicked");
    result
}
