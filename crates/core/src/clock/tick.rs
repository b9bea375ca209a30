//! Is a time still the present tick of the clock?
//!
//! Who reads a file beside a writer asks that at each read. If threads ask it very often for a while, another one
//! keeps the tick in a word for them (a [`Ticker`]), and mostly they compare with that. Each looks at the
//! clock all the same after as many answers as [`day_ago`](super::day_ago) would give it, and corrects the word: so it is
//! behind by no more than a thread's reads between two looks or, if nobody looks, by a millisecond and what the
//! ticker is late.

use holdfast_sync::Ticker;
use std::cell::Cell;

use super::{LATELY, NANOS, now};
use crate::types::Time;

/// Whoever asks so often in a tick saves more than the ticker takes.
const MANY: u32 = 4096;

/// Ticks in a row with as many questions before the ticker is started: with nobody who writes it is
/// no more than one.
const TICKS: u32 = 8;

/// The longest tick of any kernel, twice, in nanoseconds: so far apart the looks of two ticks in a row may be.
const NEXT: i64 = NANOS / 50;

/// A time, as a word; 0 is one that no clock tells.
#[inline(always)]
fn word(time: Time) -> u64 {
    (time.0 ^ i64::MIN).cast_unsigned()
}

#[cfg(not(test))]
#[inline(always)]
fn ticker() -> &'static Ticker {
    static TICKER: Ticker = Ticker::new(|| word(now()));
    &TICKER
}

thread_local! {
    static ASKING: Asking = const { Asking::never() };
}

/// How often a thread asks.
struct Asking {
    tick: Cell<Time>,
    /// Times in this tick.
    asked: Cell<u32>,
    /// Ticks in a row with many.
    ticks: Cell<u32>,
}

impl Asking {
    const fn never() -> Self {
        Self {
            tick: Cell::new(Time(0)),
            asked: Cell::new(0),
            ticks: Cell::new(0),
        }
    }

    /// It asked so many times. If a tick is over with that: ticks in a row in which it asked often.
    fn asks(&self, now: Time, times: u32) -> u32 {
        if now == self.tick.get() {
            self.asked.set(self.asked.get().saturating_add(times));
            return 0;
        }
        let since = now.0.saturating_sub(self.tick.get().0);
        let often = self.asked.get() >= MANY && (0..=NEXT).contains(&since);
        let ticks = if often { self.ticks.get() + 1 } else { 0 };
        self.tick.set(now);
        self.asked.set(times);
        self.ticks.set(ticks % TICKS);
        ticks
    }
}

/// Is this the present tick, as far as the thread has been told? `false`: it may be all the same.
#[inline(always)]
pub(crate) fn is_told(time: Time) -> bool {
    ticker().told() == word(time) && LATELY.with(super::Lately::suffices)
}

/// Is this the present tick? Looks at the clock, and tells others.
pub(crate) fn is_present(time: Time) -> bool {
    let ticker = ticker();
    // Before the clock: so no newer word is replaced.
    let told = ticker.told();
    let now = now();
    let times = LATELY.with(|lately| {
        let answered = lately.answered();
        lately.remember(now);
        answered + 1
    });
    ticker.correct(told, word(now));
    // Others would have had no answer of the ticker's.
    if time == now {
        let ticks = ASKING.with(|asking| asking.asks(now, times));
        if ticks > 0 {
            ticker.want();
        }
        if ticks == TICKS {
            ticker.start();
        }
    }
    time == now
}

#[cfg(test)]
use tests::ticker;
#[cfg(test)]
pub(crate) use tests::{go_on, keep};

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_sync::Keeper;
    use parking_lot::Mutex;

    /// Of threads that have ended as well: a page that may be looked at lasts, and none of this is lost.
    static ALL: Mutex<Vec<&'static Ticker>> = Mutex::new(Vec::new());

    thread_local! {
        static OWN: &'static Ticker = {
            let own: &Ticker = Box::leak(Box::new(Ticker::new(|| word(now()))));
            ALL.lock().push(own);
            own
        };
    }

    /// In a test each thread has one of its own, which it keeps itself.
    pub(super) fn ticker() -> &'static Ticker {
        OWN.with(|own| *own)
    }

    /// Keeps this time for the calling thread's reads.
    pub(crate) fn keep(time: Time) -> Keeper<'static> {
        let mut keeper = ticker().keep().expect("nobody else does");
        keeper.round(|| word(time));
        keeper
    }

    /// Keeps the present time, if any.
    pub(crate) fn go_on(keeper: &mut Option<Keeper<'_>>) {
        if let Some(keeper) = keeper {
            keeper.round(|| word(now()));
        }
    }

    #[test]
    fn who_asks_often_in_several_ticks_in_a_row_has_the_ticker_started() {
        const TICK: i64 = NANOS / 250;
        let asking = Asking::never();
        let mut at = Time(1 << 60);
        // What is said at the end of a tick with so many questions, the next one so much later.
        let mut tick = |times: u32, later: i64| {
            (0..times / 64).for_each(|_| assert_eq!(asking.asks(at, 64), 0));
            at.0 += later;
            asking.asks(at, 0)
        };
        assert_eq!(tick(0, TICK), 0);
        for _ in 0..3 {
            let said: Vec<u32> = (0..TICKS).map(|_| tick(MANY, TICK)).collect();
            assert!(said.into_iter().eq(1..=TICKS));
        }
        for (times, later) in [(MANY - 64, TICK), (MANY, 10 * TICK), (MANY, -TICK)] {
            assert_eq!(tick(MANY, TICK), 1);
            assert_eq!(tick(times, later), 0);
        }
        // As many as ticks are kept on for.
        assert_eq!(tick(MANY, NEXT), 1);
    }

    #[test]
    fn what_is_kept_too_long_is_believed_for_as_many_questions_as_a_day_ago() {
        let before = now();
        while now() == before {}
        // So often that it believes.
        (0..10).for_each(|_| assert!(!is_present(before)));
        let _keeper = keep(before);
        assert_eq!((0..1000).filter(|_| is_told(before)).count(), 63);
        assert!(!is_present(before));
        assert!(!is_told(before), "corrected");
    }

    #[test]
    fn what_is_told_is_a_time_that_somebody_keeps() {
        let time = now();
        assert!(!is_told(time));
        is_present(time);
        is_present(time);
        let keeper = keep(time);
        assert!(is_told(time));
        drop(keeper);
        assert!(!is_told(time));
    }
}
