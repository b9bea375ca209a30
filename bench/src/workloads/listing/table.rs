//! What came of a run, as a table.

use super::target::{Listed, Way};
use super::volume::Slow;
use crate::grid::{aligned, median_of, phases};
use crate::record::Record;
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

/// Seconds that ext4 took for names and stat of 100,000 such files on a device that takes
/// [`EXT4_DELAY`] a read. A constant: it was measured once, through a loop device over a file with
/// reads that sleep.
const EXT4_SECONDS: f64 = 5.0;
const EXT4_FILES: f64 = 100_000.0;
const EXT4_DELAY: Duration = Duration::from_millis(5);

/// The phase that a host's directory has for what only a store has a call for.
const PLAIN: &str = "listing";

/// What ext4 would take for `listing`, where that is known: each file costs it the same.
pub(super) fn ext4_seconds(files: usize, slow: Slow) -> Option<f64> {
    (slow.delay == EXT4_DELAY).then(|| EXT4_SECONDS * files as f64 / EXT4_FILES)
}

/// Seconds of each phase, how often what is below was waited for, and how many times as fast as a
/// rival that is.
pub(super) struct Table<'t> {
    pub(super) records: &'t [Record],
    pub(super) labels: &'t [String],
    pub(super) targets: &'t [Listed],
    /// Seconds of ext4 for what volumes do.
    pub(super) ext4: Option<f64>,
}

impl Table<'_> {
    fn median(&self, phase: &str, label: &str, figure: impl Fn(&Record) -> f64) -> Option<f64> {
        median_of(self.records, phase, label, |record| Some(figure(record)))
    }

    /// The host's directory as it is: the last one of the run.
    fn plain(&self) -> Option<&str> {
        let mut plain = self.targets.iter().zip(self.labels);
        let found = plain.rfind(|(target, _)| target.way == Way::Plain);
        found.map(|(_, label)| label.as_str())
    }

    /// How many times as fast as its rival, if it has one.
    fn times(&self, phase: &str, target: &Listed, label: &str) -> Option<f64> {
        if target.way == Way::Volume {
            return Some(self.ext4? / self.median(phase, label, |record| record.seconds)?);
        }
        let a_file = |record: &Record| record.seconds / record.items.max(1) as f64;
        let plain = self.plain()?;
        let plain = self.median(phase, plain, a_file);
        let plain = plain.or_else(|| self.median(PLAIN, self.plain()?, a_file));
        Some(plain? / self.median(phase, label, a_file)?)
    }

    fn cell(&self, phase: &str, target: &Listed, label: &str) -> Option<String> {
        let mut cell = format!("{:.3}", self.median(phase, label, |record| record.seconds)?);
        let items = |label: &str| self.median(phase, label, |record| record.items as f64);
        let most = self.labels.iter().filter_map(|label| items(label));
        let (met, most) = (items(label)?, most.fold(0.0, f64::max));
        if met < most {
            cell.push_str(&format!(" of {met:.0}"));
        }
        let waits = median_of(self.records, phase, label, |record| {
            record.waits.map(|it| it as f64)
        });
        if let Some(waits) = waits {
            cell.push_str(&format!(" {waits:.0}w"));
        }
        if let Some(times) = self.times(phase, target, label) {
            cell.push_str(&format!(" {times:.1}x"));
        }
        Some(cell)
    }
}

impl Display for Table<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut rows = vec![vec![String::new()]];
        rows[0].extend(self.labels.iter().cloned());
        for phase in phases(self.records) {
            let cells = self.targets.iter().zip(self.labels).map(|(target, label)| {
                self.cell(phase, target, label)
                    .unwrap_or_else(|| "-".to_owned())
            });
            rows.push([phase.to_owned()].into_iter().chain(cells).collect());
        }
        f.write_str(&aligned(&rows))?;
        f.write_str(
            "seconds, medians of the rounds; w: how often a read, or the host, was waited for",
        )?;
        if let Some(plain) = self.plain() {
            write!(
                f,
                "; x: times as fast a file as {plain}, of which not all were asked for"
            )?;
        }
        let volumes = self.targets.iter().any(|target| target.way == Way::Volume);
        if let Some(ext4) = self.ext4.filter(|_| volumes) {
            write!(
                f,
                "; x of a volume: times as fast as ext4's {ext4:.2} s for `listing`, a figure of its own day, not of this run"
            )?;
        }
        f.write_str("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(records: &[Record], targets: &[&str], ext4: Option<f64>) -> Vec<Vec<String>> {
        let labels: Vec<String> = targets.iter().map(|text| (*text).to_owned()).collect();
        let targets: Vec<Listed> = (targets.iter())
            .map(|text| text.parse().expect("a target"))
            .collect();
        let table = Table {
            records,
            labels: &labels,
            targets: &targets,
            ext4,
        };
        let text = table.to_string();
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        text.lines().skip(1).map(words).collect()
    }

    fn record(target: &str, phase: &str, items: u64, seconds: f64) -> Record {
        Record {
            waits: Some(7),
            ..Record::sample(target, phase, items, seconds)
        }
    }

    #[test]
    fn a_volume_is_told_beside_ext4_where_that_is_known() {
        let slow = |millis, serial| Slow {
            delay: Duration::from_millis(millis),
            serial,
        };
        let records = [record("volume:x", "listing", 100_000, 0.1)];
        let known = ext4_seconds(100_000, slow(5, false));
        let row = &shown(&records, &["volume:x"], known)[0];
        assert_eq!(row[..], ["listing", "0.100", "7w", "50.0x"]);
        let row = &shown(
            &records,
            &["volume:x"],
            ext4_seconds(100_000, slow(6, true)),
        )[0];
        assert_eq!(row[..], ["listing", "0.100", "7w"]);
        assert_eq!(ext4_seconds(10_000, slow(5, true)), Some(0.5));
    }

    #[test]
    fn a_host_is_told_beside_its_directory_by_the_file() {
        let records = [
            record("host:x", "listing", 1000, 1.0),
            record("dir:x", "listing", 100, 2.0),
            record("host:x", "listing-plus", 1000, 0.5),
        ];
        let rows = shown(&records, &["host:x", "dir:x"], Some(5.0));
        let listing = [
            "listing", "1.000", "7w", "20.0x", "2.000", "of", "100", "7w", "1.0x",
        ];
        assert_eq!(rows[0][..], listing);
        assert_eq!(rows[1][..], ["listing-plus", "0.500", "7w", "40.0x", "-"]);
        let alone = shown(&records[..1], &["host:x"], None);
        assert_eq!(alone[0][..], ["listing", "1.000", "7w"]);
    }
}
