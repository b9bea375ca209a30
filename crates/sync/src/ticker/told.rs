//! The word, and who may write it.

use crate::padded::Padded;
use crate::ticker_primitive::{AtomicBool, AtomicU64, Ordering, PATIENCE, constant};

/// A number that somebody keeps near what a function says; 0 if nobody does.
///
/// *Invariants.* The word is not 0 only while there is a [`Keeper`]: he alone stores something where 0 was, and he
/// stores 0 before he goes. All other changes are exchanges of what was met before the function was asked, so a
/// newer word is never replaced by an older answer. Nothing is published with the word, so all is relaxed but
/// the change of keepers.
///
/// All zeros are a word that nobody keeps.
#[repr(C)]
pub(super) struct Told {
    word: Padded<AtomicU64>,
    /// Somebody wanted it since the keeper asked last.
    wanted: Padded<AtomicBool>,
    is_kept: AtomicBool,
}

impl Told {
    constant! {
        /// Nobody keeps it.
        pub(super) fn new() -> Self {
            Self {
                word: Padded(AtomicU64::new(0)),
                wanted: Padded(AtomicBool::new(false)),
                is_kept: AtomicBool::new(false),
            }
        }
    }

    #[inline(always)]
    pub(super) fn word(&self) -> u64 {
        self.word.load(Ordering::Relaxed)
    }

    /// Somebody says that it is to be kept on.
    pub(super) fn want(&self) {
        // Stored once a round at most.
        if !self.wanted.load(Ordering::Relaxed) {
            self.wanted.store(true, Ordering::Relaxed);
        }
    }

    /// Somebody who was told `word`, and then looked himself, says what he saw.
    pub(super) fn correct(&self, word: u64, seen: u64) {
        // Not if nobody keeps it.
        if word != seen && word != 0 && seen != 0 {
            let order = Ordering::Relaxed;
            // Fails if somebody was faster, or if the keeper has gone.
            let _ = self.word.compare_exchange(word, seen, order, order);
        }
    }

    /// Becomes the keeper, if there is none.
    pub(super) fn keep(&self) -> Option<Keeper<'_>> {
        let order = (Ordering::Acquire, Ordering::Relaxed);
        // Acquire pairs with the release of the keeper before: his 0 comes before the first word of this one.
        let kept = self.is_kept.compare_exchange(false, true, order.0, order.1);
        kept.is_ok().then(|| Keeper {
            told: self,
            in_vain: 0,
        })
    }
}

/// The one who keeps a word. With him it ends, however he does.
#[derive(Debug)]
pub struct Keeper<'t> {
    told: &'t Told,
    /// Rounds since it was wanted.
    in_vain: u32,
}

impl Keeper<'_> {
    /// Brings the word up to date. `false`: nobody wants it any more.
    pub fn round(&mut self, look: impl FnOnce() -> u64) -> bool {
        let told = self.told;
        if told.wanted.load(Ordering::Relaxed) {
            told.wanted.store(false, Ordering::Relaxed);
            self.in_vain = 0;
        } else {
            self.in_vain += 1;
        }
        let word = told.word();
        let seen = look();
        if word == 0 {
            // Nobody else makes something of 0.
            told.word.store(seen, Ordering::Relaxed);
        } else {
            told.correct(word, seen);
        }
        self.in_vain <= PATIENCE
    }
}

impl Drop for Keeper<'_> {
    fn drop(&mut self) {
        // An exchange, as what corrects it is: so there is one order of them.
        let _ = self.told.word.swap(0, Ordering::Relaxed);
        // Release: the next keeper's words come behind the 0.
        self.told.is_kept.store(false, Ordering::Release);
    }
}

impl std::fmt::Debug for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Told")
            .field("word", &self.word())
            .finish_non_exhaustive()
    }
}
