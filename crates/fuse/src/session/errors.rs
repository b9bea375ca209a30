//! Counts of the errors that one thread has answered requests of one operation with.
//!
//! Errors that tell of trouble are counted each on its own. All others, such as `ENOENT`, are
//! mostly the callers' and share one count.

use holdfast_types::Errno;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The errors with a count of their own.
const TROUBLE: [Errno; 7] = [
    Errno::EIO,
    Errno::EUCLEAN,
    Errno::ENOSPC,
    Errno::EDQUOT,
    Errno::EROFS,
    Errno::ENOMEM,
    Errno::ESTALE,
];
/// The name of all others.
const OTHER: &str = "other";
const COUNTS: usize = TROUBLE.len() + 1;

/// Written by one thread, read by any.
#[derive(Debug, Default)]
pub(super) struct Errors([AtomicU64; COUNTS]);

impl Errors {
    /// A request was answered with this error.
    pub(super) fn add(&self, error: Errno) {
        let place = TROUBLE.iter().position(|trouble| *trouble == error);
        let count = &self.0[place.unwrap_or(TROUBLE.len())];
        count.store(count.load(Relaxed) + 1, Relaxed);
    }

    /// Adds its counts to a sum.
    pub(super) fn add_to(&self, sum: &mut ErrorCounts) {
        for (sum, count) in sum.0.iter_mut().zip(&self.0) {
            *sum += count.load(Relaxed);
        }
    }
}

/// Counts of errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorCounts([u64; COUNTS]);

impl ErrorCounts {
    /// The errors that occurred, by name, and how often each did. Those that are mostly the
    /// callers' are one, `other`.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let names = TROUBLE.iter().filter_map(|error| error.symbol());
        let names = names.chain([OTHER]);
        names.zip(self.0).filter(|(_, count)| *count != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_counted_by_its_name_and_what_callers_ask_for_in_vain_as_one() {
        let (errors, mut sum) = (Errors::default(), ErrorCounts::default());
        for error in [Errno::ENOENT, Errno::EIO, Errno::ENODATA, Errno::ESTALE] {
            errors.add(error);
        }
        errors.add_to(&mut sum);
        errors.add(Errno::EIO);
        errors.add_to(&mut sum);
        let counts: Vec<_> = sum.iter().collect();
        assert_eq!(counts, [("EIO", 3), ("ESTALE", 2), ("other", 4)]);
    }
}
