//! The report of a walk.

use super::{sample::Check, walk::Walk};
use serde::Serialize;
use std::{collections::BTreeMap, fmt, path::Path, sync::atomic::Ordering::Relaxed};

/// The report, as JSON or as text.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    dir: String,
    directories: u64,
    names: u64,
    stats: u64,
    bytes: u64,
    errors: BTreeMap<String, u64>,
    seconds: f64,
    /// Stats a second.
    rate: f64,
    in_flight_max: usize,
    stopped: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) check: Option<Check>,
}

impl Report {
    pub(super) fn of(dir: &Path, walk: &Walk, seconds: f64, stopped: bool) -> Self {
        let totals = &walk.totals;
        let stats = totals.stats.load(Relaxed);
        Self {
            dir: dir.display().to_string(),
            directories: totals.directories.load(Relaxed),
            names: totals.names.load(Relaxed),
            stats,
            bytes: totals.bytes.load(Relaxed),
            errors: totals.errors.lock().clone(),
            seconds,
            rate: stats as f64 / seconds.max(1e-9),
            in_flight_max: walk.threads,
            stopped,
            check: None,
        }
    }

    /// The number of failures.
    pub(super) fn failures(&self) -> u64 {
        self.errors.values().sum()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stopped = if self.stopped { ", stopped" } else { "" };
        write!(
            f,
            "{}: {} names in {} directories, {:.2} s, {:.0} a second, {} at a time{stopped}",
            self.dir, self.stats, self.directories, self.seconds, self.rate, self.in_flight_max
        )?;
        if self.bytes > 0 {
            write!(f, ", {} bytes of content", self.bytes)?;
        }
        writeln!(f)?;
        if let Some(check) = self.check {
            let micros = |nanos: u64| nanos as f64 / 1000.0;
            writeln!(
                f,
                "an answer took {:.1} µs, and takes {:.1} µs now (medians of {} names)",
                micros(check.before_nanoseconds),
                micros(check.after_nanoseconds),
                check.names
            )?;
        }
        Ok(())
    }
}
