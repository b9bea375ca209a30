//! A sample of names that are read again at the end.

use parking_lot::Mutex;
use rustix::fs::{AtFlags, StatxFlags};
use serde::Serialize;
use std::{
    fs::File,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Size of the sample: between this and twice this.
const KEPT: usize = 1000;

#[derive(Default)]
struct Kept {
    /// Names skipped between two kept ones.
    skip: u64,
    seen: u64,
    names: Vec<(PathBuf, Duration)>,
}

/// Names from all over the tree, with the latency of each.
#[derive(Default)]
pub(super) struct Sample(Mutex<Kept>);

/// Medians in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    pub(super) names: usize,
    pub(super) before_nanoseconds: u64,
    pub(super) after_nanoseconds: u64,
}

impl Sample {
    /// Offers a name to the sample.
    pub(super) fn add(&self, dir: &Path, name: &Path, took: Duration) {
        let mut kept = self.0.lock();
        kept.seen += 1;
        if !kept.seen.is_multiple_of(kept.skip + 1) {
            return;
        }
        kept.names.push((dir.join(name), took));
        if kept.names.len() >= 2 * KEPT {
            let mut number = 0_u32;
            kept.names.retain(|_| {
                number += 1;
                number.is_multiple_of(2)
            });
            kept.skip = 2 * kept.skip + 1;
        }
    }

    /// Reads the sample again; `None` if it is empty.
    pub(super) fn measure(&self, top: &File) -> Option<Check> {
        let kept = self.0.lock();
        let mut before: Vec<Duration> = kept.names.iter().map(|(_, took)| *took).collect();
        let mut after = Vec::with_capacity(before.len());
        for (path, _) in &kept.names {
            let begun = Instant::now();
            let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
            if rustix::fs::statx(top, path, flags, StatxFlags::BASIC_STATS).is_ok() {
                after.push(begun.elapsed());
            }
        }
        Some(Check {
            names: after.len(),
            before_nanoseconds: median(&mut before)?,
            after_nanoseconds: median(&mut after)?,
        })
    }
}

fn median(times: &mut [Duration]) -> Option<u64> {
    times.sort_unstable();
    let middle = times.get(times.len() / 2)?;
    Some(u64::try_from(middle.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_all_over_are_kept_and_not_too_many() {
        let sample = Sample::default();
        for number in 0..100_000_u32 {
            let name = number.to_string();
            sample.add(
                Path::new("d"),
                Path::new(&name),
                Duration::from_nanos(u64::from(number)),
            );
        }
        let kept = sample.0.lock();
        assert!((KEPT / 2..2 * KEPT).contains(&kept.names.len()));
        assert!(kept.names.iter().any(|(_, took)| took.as_nanos() < 10_000));
        assert!(kept.names.iter().any(|(_, took)| took.as_nanos() > 90_000));
    }
}
