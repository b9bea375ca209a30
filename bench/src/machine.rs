//! How busy the whole machine is.

use anyhow::{Context, Result};
use std::fs;

/// Time that all processors have spent so far, in ticks of the accounting clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spent {
    idle: u64,
    all: u64,
}

impl Spent {
    /// Now.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub(crate) fn now() -> Result<Self> {
        let text = fs::read_to_string("/proc/stat").context("/proc/stat")?;
        Self::parse(&text).context("/proc/stat tells no time of processors")
    }

    /// As the first line of /proc/stat tells it.
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = line
            .split_whitespace()
            .map_while(|tick| tick.parse().ok())
            .collect();
        // user, nice, system, idle, iowait, irq, softirq, steal; a guest's time is in user's
        // already.
        let all = ticks.iter().take(8).sum();
        Some(Self {
            idle: ticks.get(3)? + ticks.get(4)?,
            all,
        })
    }

    /// The part of all processors' time since then in which they were idle; nothing if no tick has
    /// passed.
    pub(crate) fn idle_since(self, before: Self) -> Option<f64> {
        let all = self.all.saturating_sub(before.all);
        let idle = self.idle.saturating_sub(before.idle).min(all);
        (all > 0).then(|| idle as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_a_part_of_all_processors_time() {
        let spent = |text| Spent::parse(text).expect("told");
        let before = spent("cpu  10 0 10 100 5 0 0 0 7 0\ncpu0 1 2 3\n");
        let after = spent("cpu  40 0 40 140 5 0 0 0 9 0\n");
        assert_eq!(after.idle_since(before), Some(0.4));
        assert_eq!(before.idle_since(before), None);
        assert_eq!(Spent::parse("cpu  1 2"), None);
        Spent::now().expect("told");
    }
}
