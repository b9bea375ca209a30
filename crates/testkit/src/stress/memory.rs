//! The memory of the process, and what waits to be freed.

use holdfast_sync::epoch;
use std::fs;

/// Fewer rounds tell nothing of growth.
const ROUNDS_MIN: usize = 24;
/// By how much it may be greater at the end, beside an eighth: rounds differ, and an allocator
/// keeps what it had.
const SLACK_KIB: u64 = 16 * 1024;

/// Values that may wait for a grace period although nobody works: each thread that still lives
/// keeps some until it retires more.
const PENDING_MAX: u64 = 4096;

/// How the process grew.
pub(super) struct Growth {
    /// Resident KiB after each round.
    resident: Vec<u64>,
}

impl Growth {
    pub(super) fn new() -> Self {
        Self {
            resident: Vec::new(),
        }
    }

    /// Notes the size after a round.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn note(&mut self) -> Result<u64, String> {
        epoch::synchronize();
        let resident = resident()?;
        self.resident.push(resident);
        Ok(resident)
    }

    /// The greatest size in the first half of the run, and the least in the last quarter: one that
    /// is larger by chance, or grows while the allocator finds its size, is no growth.
    pub(super) fn ends(&self) -> (u64, u64) {
        let rounds = self.resident.len();
        let early = self.resident[..rounds.div_ceil(2)].iter().max();
        let late = self.resident[rounds - rounds.div_ceil(4)..].iter().min();
        (early.copied().unwrap_or(0), late.copied().unwrap_or(0))
    }

    /// To be asked when all threads have ended.
    ///
    /// # Errors
    /// If garbage is left, or the process has grown all the time and must not.
    pub(super) fn settled(&self, may_grow: bool) -> Result<(), String> {
        epoch::synchronize();
        let pending = epoch::pending();
        if pending > PENDING_MAX {
            return Err(format!("{pending} values still wait to be freed"));
        }
        let (early, late) = self.ends();
        if !may_grow && self.resident.len() >= ROUNDS_MIN && late > early + early / 8 + SLACK_KIB {
            return Err(format!(
                "resident memory has grown from {early} to {late} KiB: {:?}",
                self.resident
            ));
        }
        Ok(())
    }
}

fn resident() -> Result<u64, String> {
    let status = fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .ok_or_else(|| "no VmRSS in /proc/self/status".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_growth_is_found_and_a_large_round_is_none() {
        let of = |resident: &[u64]| Growth {
            resident: resident.to_vec(),
        };
        let mut sizes = vec![100_000; 20];
        sizes[15] = 900_000;
        assert_eq!(of(&sizes).settled(false), Ok(()));
        let sizes: Vec<u64> = (0..40).map(|round| 100_000 + round * 10_000).collect();
        assert!(of(&sizes).settled(false).is_err());
        assert_eq!(of(&sizes).settled(true), Ok(()));
        assert!(resident().unwrap() > 100);
    }
}
