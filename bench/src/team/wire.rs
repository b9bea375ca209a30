//! The protocol between the measuring process and its workers: one JSON object a line, through
//! pipes. First an assignment, which is answered when all is in place, then orders and answers.

use crate::mode::{Mode, Slots};
use crate::pool::Lap;
use crate::record::Record;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The first line.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Assignment<T> {
    pub(super) task: T,
    pub(super) slots: Slots,
}

/// Each further line.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Order<C> {
    pub(super) command: C,
    /// When to begin, on the clock that all processes share.
    pub(super) moment: Duration,
}

/// What is said to each line.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum Answer {
    /// In place, or done.
    Done(Done),
    /// Why not.
    Failed(String),
}

/// What an order brought about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Done {
    pub(crate) lap: Lap,
    /// Resident memory before it, of all workers.
    pub(crate) rss_before: u64,
    /// Resident memory after it.
    pub(crate) rss_bytes: u64,
}

impl Done {
    /// Both, which ran at the same time in processes of their own.
    pub(super) fn beside(self, other: Self) -> Self {
        Self {
            lap: self.lap.beside(other.lap),
            rss_before: self.rss_before + other.rss_before,
            rss_bytes: self.rss_bytes + other.rss_bytes,
        }
    }

    /// Both, one after the other.
    pub(crate) fn then(self, next: Self) -> Self {
        Self {
            lap: self.lap.then(next.lap),
            rss_before: self.rss_before,
            rss_bytes: next.rss_bytes,
        }
    }

    /// The record of a phase that took this.
    pub(crate) fn record(
        &self,
        workload: &str,
        target: &str,
        phase: &impl ToString,
        mode: Mode,
        round: usize,
    ) -> Record {
        Record {
            workload: workload.to_owned(),
            target: target.to_owned(),
            phase: phase.to_string(),
            threads: mode.threads(),
            processes: mode.processes(),
            round,
            items: self.lap.work.items,
            seconds: self.lap.time.as_secs_f64(),
            cpu_seconds: self.lap.cpu.as_secs_f64(),
            rss_bytes: self.rss_bytes,
            ..Record::default()
        }
    }
}
