//! Where and when a run was made, and of what: told with each of its records, so that a file of
//! records says by itself what it shows.

use rustix::system::{sysinfo, uname};
use serde::Serialize;
use std::fmt;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

const SECONDS_A_DAY: u64 = 24 * 60 * 60;

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct About {
    /// The day it began, in universal time.
    pub(crate) date: String,
    /// The processor, as the kernel calls it.
    pub(crate) processor: String,
    /// Processors that the run may use.
    pub(crate) processors: usize,
    /// Memory of the machine.
    pub(crate) memory_bytes: u64,
    /// The kernel's name and version.
    pub(crate) kernel: String,
    /// Holdfast's version, and whether it is a debug build.
    pub(crate) version: String,
    /// What is not in the records: numbers of files, directories, sizes, times.
    pub(crate) layout: String,
    /// How often everything was run.
    pub(crate) rounds: usize,
}

impl About {
    /// A run that begins now, on this machine.
    pub(crate) fn now(layout: String, rounds: usize) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let system = uname();
        let memory = sysinfo();
        Self {
            date: date(since.unwrap_or_default().as_secs()),
            processor: processor(),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: (memory.totalram as u64) * u64::from(memory.mem_unit).max(1),
            kernel: format!(
                "{} {}",
                system.sysname().to_string_lossy(),
                version(&system.release().to_string_lossy())
            ),
            version: format!("{}{}", env!("CARGO_PKG_VERSION"), build()),
            layout,
            rounds,
        }
    }
}

/// The machine, the build and the day; layout and rounds are told with the figures.
impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: holdfast {}, {}, {} processors ({}), {} GiB",
            self.date,
            self.version,
            self.kernel,
            self.processors,
            self.processor,
            self.memory_bytes >> 30
        )
    }
}

/// A debug build's figures are no figures: it is told wherever they are.
fn build() -> &'static str {
    if cfg!(debug_assertions) {
        " (debug build)"
    } else {
        ""
    }
}

/// The numbers of a release, without what a builder put behind them.
fn version(release: &str) -> &str {
    let end = release.find(|c: char| !c.is_ascii_digit() && c != '.');
    &release[..end.unwrap_or(release.len())]
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = text.lines().find_map(|line| {
        let (field, value) = line.split_once(':')?;
        (field.trim() == "model name").then(|| value.trim().to_owned())
    });
    named.unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// The day of a moment in seconds since 1970, by the Gregorian calendar.
fn date(seconds: u64) -> String {
    // Years begin in March here, so that the leap day is the last day of a year. Every 400 years
    // have 146,097 days. The first of March 2000 is day 11,017.
    let day = seconds / SECONDS_A_DAY + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    format!("{:04}-{month:02}-{of_month:02}", year + era * 400 + later)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        let days = [
            (0, "1970-01-01"),
            (951_782_399, "2000-02-28"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_709_164_800, "2024-02-29"),
            (1_735_689_599, "2024-12-31"),
            (4_107_542_400, "2100-03-01"),
        ];
        for (seconds, day) in days {
            assert_eq!(date(seconds), day);
        }
    }

    #[test]
    fn a_version_is_the_numbers_of_a_release() {
        for (release, numbers) in [("6.18.4-arch1", "6.18.4"), ("6.1", "6.1"), ("x", "")] {
            assert_eq!(version(release), numbers);
        }
    }

    #[test]
    fn a_run_tells_the_machine_and_the_build() {
        let about = About::now("nothing".to_owned(), 3);
        assert!(about.kernel.starts_with("Linux "), "{about:?}");
        assert!(about.memory_bytes > 1 << 20 && about.processors > 0);
        assert!(!about.processor.is_empty());
        assert_eq!(about.version.contains("debug"), cfg!(debug_assertions));
        let shown = about.to_string();
        for part in [&about.date, &about.kernel, &about.processor] {
            assert!(shown.contains(part.as_str()), "{shown}");
        }
    }
}
