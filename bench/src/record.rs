//! One measured phase, as it is written to a file of records.

use crate::about::About;
use crate::mode::Mode;
use serde::Serialize;
use std::collections::BTreeMap;

/// What one phase of one round did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Record {
    /// The workload's name.
    pub(crate) workload: String,
    /// What it ran on, as the command line names it.
    pub(crate) target: String,
    /// What was done.
    pub(crate) phase: String,
    /// Threads that did it.
    pub(crate) threads: usize,
    /// Told where each of these threads was a process of its own, on a tree of its own: how many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) processes: Option<usize>,
    /// Counted from 1.
    pub(crate) round: usize,
    /// Files (or operations) of all threads together.
    pub(crate) items: u64,
    /// Bytes of file data moved.
    pub(crate) bytes: u64,
    /// From the common start to the last thread's end.
    pub(crate) seconds: f64,
    /// Processor time of the threads and processes that belong to the run.
    pub(crate) cpu_seconds: f64,
    /// Resident memory at the end of the phase: of the server if there is one, else of the
    /// processes that did it.
    pub(crate) rss_bytes: u64,
    /// Growth of resident memory by one file, where the files live in these processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rss_bytes_per_file: Option<f64>,
    /// The same by one empty directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rss_bytes_per_directory: Option<f64>,
    /// Operations of the thread that disturbed the others, which are not among the items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) writes: Option<u64>,
    /// In how many pieces a file's bytes lie, where the target says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) extents_per_file: Option<f64>,
    /// Nanoseconds of one write, the mean of each equal part of the writes, in their order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) write_nanos: Option<Vec<f64>>,
    /// Seconds of the fsync at the end, which are among `seconds`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fsync_seconds: Option<f64>,
    /// The way requests came, for a mount that the run made itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transport: Option<String>,
    /// The part of all processors' time in which they were idle, whatever else they did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) idle: Option<f64>,
    /// Requests that its server had, without FORGET. One request of before the phase may be
    /// among them and the last one may be missing, because close(2) does not wait for RELEASE.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) requests: Option<u64>,
    /// Round trips to the database by the function that was called, for a mount that counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trips: Option<BTreeMap<String, u64>>,
    /// How often a read of the device was waited for, where the device counts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waits: Option<u64>,
    /// What may be resident; told where it is limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) budget_bytes: Option<u64>,
    /// Resident memory ten times a second, where it was watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rss_bytes_samples: Option<Vec<u64>>,
    /// Processor time of all threads of the process that did it, those of its file system included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) process_cpu_seconds: Option<f64>,
    /// Items a second in each equal part of the items, in their order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) part_rates: Option<Vec<f64>>,
    /// The time within which 99 of 100 items were done, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p99_nanos: Option<f64>,
    /// Uses that count, and those of them that found all in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) uses: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hits: Option<u64>,
    /// Objects of this kind that were in memory meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) held: Option<u64>,
}

/// A record with what is the same for all of its run: one line of a file.
#[derive(Debug, Serialize)]
pub(crate) struct Line<'r> {
    #[serde(flatten)]
    pub(crate) record: &'r Record,
    /// The run.
    pub(crate) run: &'r About,
}

impl Record {
    /// Items a second.
    pub(crate) fn rate(&self) -> f64 {
        self.items as f64 / self.seconds
    }

    /// The part of its uses that found all in memory, where uses were counted.
    pub(crate) fn hit_part(&self) -> Option<f64> {
        let uses = self.uses.filter(|&uses| uses > 0)?;
        Some(self.hits? as f64 / uses as f64)
    }

    /// The most that was resident, where it was watched.
    pub(crate) fn rss_bytes_max(&self) -> Option<u64> {
        self.rss_bytes_samples.as_ref()?.iter().copied().max()
    }

    /// How it was divided.
    pub(crate) fn mode(&self) -> Mode {
        match self.processes {
            None => Mode::Threads(self.threads),
            Some(count) => Mode::Processes(count),
        }
    }
}

#[cfg(test)]
impl Record {
    pub(crate) fn sample(target: &str, phase: &str, items: u64, seconds: f64) -> Self {
        Self {
            workload: "sharded".to_owned(),
            target: target.to_owned(),
            phase: phase.to_owned(),
            threads: 1,
            round: 1,
            items,
            seconds,
            cpu_seconds: seconds,
            rss_bytes: 4096,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_promised_fields_and_no_empty_ones() {
        let record = Record::sample("mem:", "stat", 10, 0.5);
        let run = About::default();
        let line = Line {
            record: &record,
            run: &run,
        };
        let json = serde_json::to_value(&line).expect("plain values");
        let mut fields: Vec<_> = json.as_object().expect("object").keys().collect();
        fields.sort();
        let mut promised = [
            "workload",
            "target",
            "phase",
            "threads",
            "round",
            "items",
            "bytes",
            "seconds",
            "cpu_seconds",
            "rss_bytes",
            "run",
        ];
        promised.sort_unstable();
        assert_eq!(fields, promised);
        assert!((record.rate() - 20.0).abs() < 1e-9);
    }
}
