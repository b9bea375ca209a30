//! One measured phase, as it is written to a file of records.

use serde::Serialize;

/// What one phase of one round did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Record {
    /// The workload's name.
    pub(crate) workload: &'static str,
    /// What it ran on, as the command line names it.
    pub(crate) target: String,
    /// What was done.
    pub(crate) phase: String,
    /// Threads that did it.
    pub(crate) threads: usize,
    /// Counted from 1.
    pub(crate) round: usize,
    /// Files (or operations) of all threads together.
    pub(crate) items: u64,
    /// Bytes of file data moved.
    pub(crate) bytes: u64,
    /// From the common start to the last thread's end.
    pub(crate) seconds: f64,
    /// Processor time of the processes that belong to the run.
    pub(crate) cpu_seconds: f64,
    /// Resident memory at the end of the phase: of the server if there is one, else of this
    /// process.
    pub(crate) rss_bytes: u64,
    /// Growth of resident memory by one file, where the files live in this process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rss_bytes_per_file: Option<f64>,
    /// The way requests came, for a mount that the run made itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transport: Option<String>,
    /// Requests that its server had, forgets left out; one of before may be among them, and one
    /// of the end may be missing, for closing a file waits for no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) requests: Option<u64>,
}

impl Record {
    /// Items a second.
    pub(crate) fn rate(&self) -> f64 {
        self.items as f64 / self.seconds
    }
}

#[cfg(test)]
impl Record {
    pub(crate) fn of(target: &str, phase: &str, items: u64, seconds: f64) -> Self {
        Self {
            workload: "sharded",
            target: target.to_owned(),
            phase: phase.to_owned(),
            threads: 1,
            round: 1,
            items,
            bytes: 0,
            seconds,
            cpu_seconds: seconds,
            rss_bytes: 4096,
            rss_bytes_per_file: None,
            transport: None,
            requests: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_the_promised_fields_and_no_empty_ones() {
        let record = Record::of("mem:", "stat", 10, 0.5);
        let json = serde_json::to_value(&record).expect("plain values");
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
        ];
        promised.sort_unstable();
        assert_eq!(fields, promised);
        assert!((record.rate() - 20.0).abs() < 1e-9);
    }
}
