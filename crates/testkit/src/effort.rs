//! How much the tests try that could try for ever, and from which seed.

use std::env;

/// How much is tried at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// As much as `cargo test` has time for.
    Quick,
    /// About ten times as much: `just deep`.
    Deep,
}

impl Effort {
    /// The one of two values that belongs to this effort.
    #[must_use]
    pub fn of<T>(self, quick: T, deep: T) -> T {
        match self {
            Self::Quick => quick,
            Self::Deep => deep,
        }
    }
}

/// What `HOLDFAST_EFFORT` says: `quick`, also if it is not set, or `deep`.
///
/// # Panics
/// If it says anything else.
#[must_use]
pub fn effort() -> Effort {
    let word = env::var("HOLDFAST_EFFORT");
    match word.as_deref() {
        Err(env::VarError::NotPresent) | Ok("quick") => Effort::Quick,
        Ok("deep") => Effort::Deep,
        other => panic!("HOLDFAST_EFFORT is quick or deep, not {other:?}"),
    }
}

/// The seed to begin with: what `HOLDFAST_SEED` says, else `usual`. It is printed, to repeat a
/// failure with.
///
/// # Panics
/// If the variable is no number.
#[must_use]
pub fn seed(usual: u64) -> u64 {
    let seed = match env::var("HOLDFAST_SEED") {
        Ok(seed) => seed.parse().expect("HOLDFAST_SEED is a number"),
        Err(_) => usual,
    };
    println!("HOLDFAST_SEED={seed}");
    seed
}
