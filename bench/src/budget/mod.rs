//! Processes that keep to a budget of memory, as the daemon of a mount does, while what they hold
//! is watched.

mod opened;
mod resident;

pub(crate) use opened::{Loads, Opened};
pub(crate) use resident::{Seen, Watch};

use anyhow::{Context, Result, anyhow};
use holdfast_core::Memory;
use holdfast_core::budget::{AMPLE, ReclaimThread};
use std::str::FromStr;

/// Resident memory may be more than the budget by this part.
const TOLERANCE: f64 = 0.05;

/// What a process may have resident: a number of bytes, or all there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) Option<u64>);

impl Bytes {
    /// What may be resident at most, with the tolerance of the goal.
    pub(crate) fn resident_max(self) -> Option<f64> {
        self.0.map(|bytes| bytes as f64 * (1.0 + TOLERANCE))
    }
}

impl std::fmt::Display for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(bytes) => write!(f, "{}m", bytes >> 20),
            None => f.write_str("max"),
        }
    }
}

impl FromStr for Bytes {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            anyhow!(
                "`{text}` is no budget: mebibytes, as `64m` or `64`, gibibytes, as `4g`, or `max`"
            )
        };
        if text == "max" {
            return Ok(Self(None));
        }
        let (digits, shift) = match text.as_bytes().last() {
            Some(b'g' | b'G') => (&text[..text.len() - 1], 30),
            Some(b'm' | b'M') => (&text[..text.len() - 1], 20),
            _ => (text, 20),
        };
        let number: u64 = digits.parse().map_err(|_| wrong())?;
        let bytes = number.checked_mul(1 << shift).ok_or_else(wrong)?;
        // Less than a mebibyte is less than a process takes that does nothing.
        (bytes > 0).then_some(Self(Some(bytes))).ok_or_else(wrong)
    }
}

/// This process keeps to its budget for as long as this is kept.
pub(crate) struct Kept {
    _follower: Option<ReclaimThread>,
}

/// From now on this process keeps to so many bytes, and counts what it has resident beside what
/// file systems hold, as the daemon of a mount does. Without a number it takes what it likes.
///
/// # Errors
/// If the process cannot be followed.
pub(crate) fn keep(bytes: Bytes) -> Result<Kept> {
    let memory = Memory::of_process();
    memory.set(Some(bytes.0.unwrap_or(u64::MAX)));
    let Some(bytes) = bytes.0 else {
        return Ok(Kept { _follower: None });
    };
    if bytes < AMPLE {
        // Without this it only takes more.
        let _ = rustix::thread::disable_transparent_huge_pages(true);
        holdfast_allocator::return_at_once();
    }
    let reclaim_thread = memory.follow(holdfast_allocator::trim);
    Ok(Kept {
        _follower: Some(reclaim_thread.context("cannot follow the memory of this process")?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_mebibytes_unless_they_say_otherwise() {
        let read = |text: &str| text.parse::<Bytes>().expect("a budget");
        assert_eq!(read("64").0, Some(64 << 20));
        assert_eq!(read("64m"), read("64"));
        assert_eq!(read("4G").0, Some(4 << 30));
        assert_eq!(read("max").0, None);
        assert_eq!(
            (read("64").to_string(), read("max").to_string()),
            ("64m".into(), "max".into())
        );
        for text in ["", "0", "m", "64k", "-1", "99999999999999999g"] {
            let error = text.parse::<Bytes>().expect_err("refused").to_string();
            assert!(error.contains("no budget"), "{error}");
        }
    }

    #[test]
    fn a_twentieth_more_than_the_budget_may_be_resident() {
        let most = Bytes(Some(100 << 20)).resident_max().expect("a budget");
        assert!((most / f64::from(1 << 20) - 105.0).abs() < 1e-9);
        assert_eq!(Bytes(None).resident_max(), None);
    }
}
