//! The activity of a mount between two reports.

use crate::info::report::{MemoryUse, Reclaimed, Report, State, Transfers, VolumeUse, Work};
use serde::Serialize;
use std::time::Duration;

/// Classes of memory with a shrinker of another name.
const SHRINKERS: [(&str, &str); 2] = [("inodes", "metadata"), ("kernel-held", "kernel")];

/// The rates between two reports, and the values of the later one. The fields of `--json` are an
/// interface: fields may be added, never renamed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Rates {
    pub(super) mount_point: String,
    pub(super) source: String,
    pub(super) version: String,
    pub(super) pid: u32,
    pub(super) transport: String,
    pub(super) state: State,
    pub(super) uptime_seconds: u64,
    /// Time between the reports.
    pub(super) seconds: f64,
    pub(super) resident_bytes: u64,
    pub(super) inodes: u64,
    pub(super) names: u64,
    pub(super) pages: u64,
    pub(super) page_bytes: u64,
    pub(super) kernel_held_inodes: u64,
    /// `None` for `mem:`.
    pub(super) memory: Option<Memory>,
    /// The largest first.
    pub(super) classes: Vec<Class>,
    pub(super) requests_per_second: f64,
    /// The most frequent first, without those of rate zero.
    pub(super) requests: Vec<Request>,
    pub(super) read_bytes_per_second: f64,
    pub(super) written_bytes_per_second: f64,
    pub(super) statahead_issued_per_second: f64,
    pub(super) statahead_used_per_second: f64,
    pub(super) statahead_wasted_per_second: f64,
    pub(super) volume: Option<Volume>,
}

/// Memory of the daemon and its limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Memory {
    pub(super) budget_bytes: Option<u64>,
    pub(super) limit_bytes: Option<u64>,
    pub(super) counted_bytes: u64,
    pub(super) slack_bytes: Option<u64>,
    /// Counted bytes as a fraction of the limit.
    pub(super) pressure: Option<f64>,
}

/// One class of memory. Values that the daemon does not count are `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Class {
    pub(super) class: String,
    pub(super) bytes: u64,
    /// Fraction of all counted bytes.
    pub(super) share: f64,
    /// Fraction of lookups that hit the cache.
    pub(super) hit_share: Option<f64>,
    pub(super) scanned_per_second: Option<f64>,
    pub(super) evicted_per_second: Option<f64>,
    pub(super) promoted_per_second: Option<f64>,
    pub(super) refaults_per_second: Option<f64>,
    pub(super) deferred: Option<u64>,
    /// Time of threads that freed memory of this class, in seconds per second.
    pub(super) busy: Option<f64>,
}

/// Requests of one operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Request {
    pub(super) operation: String,
    pub(super) per_second: f64,
    /// Mean time of the measured ones.
    pub(super) mean_seconds: Option<f64>,
}

/// A volume's activity.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Volume {
    pub(super) waiting_pages: u64,
    pub(super) waiting_writers: u64,
    /// Time for which writeback throttled operations, in seconds per second.
    pub(super) writers_wait: f64,
    pub(super) journal_used_bytes: u64,
    pub(super) journal_capacity_bytes: u64,
    pub(super) commits: Done,
    pub(super) checkpoints: Done,
    pub(super) reads: Done,
    pub(super) read_bytes_per_second: f64,
    pub(super) writes: Done,
    pub(super) written_bytes_per_second: f64,
    pub(super) flushes: Done,
}

/// The rate of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Done {
    pub(super) per_second: f64,
    /// The mean time of one.
    pub(super) mean_seconds: Option<f64>,
}

/// The time between two counts.
#[derive(Clone, Copy)]
struct Span {
    seconds: f64,
}

impl Span {
    /// The rate is 0 if the count fell or no time has passed.
    fn rate(self, before: u64, now: u64) -> f64 {
        match self.seconds > 0.0 {
            true => now.saturating_sub(before) as f64 / self.seconds,
            false => 0.0,
        }
    }

    fn done(self, before: (u64, u64), now: (u64, u64)) -> Done {
        Done {
            per_second: self.rate(before.0, now.0),
            mean_seconds: mean(before, now),
        }
    }

    fn work(self, before: &Work, now: &Work) -> Done {
        let of = |work: &Work| (work.count, work.nanoseconds);
        self.done(of(before), of(now))
    }

    fn transfers(self, before: &Transfers, now: &Transfers) -> Done {
        let of = |transfers: &Transfers| (transfers.count, transfers.nanoseconds);
        self.done(of(before), of(now))
    }
}

/// Mean seconds of one, from counts and nanoseconds.
fn mean(before: (u64, u64), now: (u64, u64)) -> Option<f64> {
    let count = now.0.saturating_sub(before.0);
    let time = Duration::from_nanos(now.1.saturating_sub(before.1));
    (count > 0).then(|| time.as_secs_f64() / count as f64)
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl Rates {
    /// The rates between two reports of one daemon, `time` apart.
    pub(super) fn between(before: &Report, now: &Report, time: Duration) -> Self {
        let span = Span {
            seconds: time.as_secs_f64(),
        };
        let rate = |of: fn(&Report) -> u64| span.rate(of(before), of(now));
        let requests = requests(span, before, now);
        Self {
            mount_point: now.mount_point.clone(),
            source: now.source.clone(),
            version: now.version.clone(),
            pid: now.pid,
            transport: now.transport.clone(),
            state: now.state,
            uptime_seconds: now.uptime_seconds,
            seconds: span.seconds,
            resident_bytes: now.rss_bytes,
            inodes: now.inodes,
            names: now.names,
            pages: now.pages,
            page_bytes: now.bytes,
            kernel_held_inodes: now.inodes_away,
            memory: now.memory.as_ref().map(memory),
            classes: classes(span, before, now),
            requests_per_second: requests.iter().map(|request| request.per_second).sum(),
            requests,
            read_bytes_per_second: rate(|report| report.read_bytes),
            written_bytes_per_second: rate(|report| report.written_bytes),
            statahead_issued_per_second: rate(|report| report.statahead_issued),
            statahead_used_per_second: rate(|report| report.statahead_used),
            statahead_wasted_per_second: rate(|report| report.statahead_wasted),
            volume: (now.volume.as_ref()).map(|volume| {
                let none = VolumeUse::default();
                of_volume(span, before.volume.as_ref().unwrap_or(&none), volume)
            }),
        }
    }
}

fn memory(memory: &MemoryUse) -> Memory {
    Memory {
        budget_bytes: memory.budget_bytes,
        limit_bytes: memory.limit_bytes,
        counted_bytes: memory.counted_bytes,
        slack_bytes: memory.slack_bytes,
        pressure: (memory.limit_bytes).and_then(|limit| share(memory.counted_bytes, limit)),
    }
}

fn requests(span: Span, before: &Report, now: &Report) -> Vec<Request> {
    let count = |report: &Report, name: &str| report.requests.get(name).copied().unwrap_or(0);
    let timed = |report: &Report, name: &str| {
        let times = report.request_times.get(name);
        times.map_or((0, 0), |times| (times.count, times.nanoseconds))
    };
    let all = now.requests.keys().map(|name| Request {
        operation: name.clone(),
        per_second: span.rate(count(before, name), count(now, name)),
        mean_seconds: mean(timed(before, name), timed(now, name)),
    });
    let mut requests: Vec<Request> = all.filter(|request| request.per_second > 0.0).collect();
    requests.sort_by(|one, other| other.per_second.total_cmp(&one.per_second));
    requests
}

fn classes(span: Span, before: &Report, now: &Report) -> Vec<Class> {
    let Some(memory) = &now.memory else {
        return Vec::new();
    };
    let none = MemoryUse::default();
    let earlier = before.memory.as_ref().unwrap_or(&none);
    let mut classes: Vec<Class> = memory
        .by_class
        .iter()
        .map(|(name, &bytes)| {
            let other = SHRINKERS.iter().find(|(class, _)| class == name);
            let shrinker = other.map_or(name.as_str(), |(_, shrinker)| shrinker);
            let class = Class {
                class: name.clone(),
                bytes,
                share: share(bytes, memory.counted_bytes).unwrap_or(0.0),
                ..Class::default()
            };
            match memory.by_shrinker.get(shrinker) {
                Some(reclaimed) => {
                    let then = earlier.by_shrinker.get(shrinker).copied();
                    freed(span, class, &then.unwrap_or_default(), reclaimed)
                }
                None => class,
            }
        })
        .collect();
    for class in &mut classes {
        match class.class.as_str() {
            "inodes" => {
                class.promoted_per_second = Some(span.rate(earlier.promoted, memory.promoted));
                class.refaults_per_second = Some(span.rate(earlier.refaults, memory.refaults));
            }
            "content" => {
                let came = (earlier.content_refaults, memory.content_refaults);
                class.refaults_per_second = Some(span.rate(came.0, came.1));
            }
            "nodes" => class.hit_share = node_hits(before, now),
            _ => {}
        }
    }
    classes.sort_by_key(|class| std::cmp::Reverse(class.bytes));
    classes
}

fn freed(span: Span, class: Class, before: &Reclaimed, now: &Reclaimed) -> Class {
    let spent = span.rate(before.nanoseconds, now.nanoseconds) / 1e9;
    Class {
        scanned_per_second: Some(span.rate(before.scanned, now.scanned)),
        evicted_per_second: Some(span.rate(before.freed, now.freed)),
        deferred: Some(now.deferred),
        busy: Some(spent),
        ..class
    }
}

fn node_hits(before: &Report, now: &Report) -> Option<f64> {
    let (before, now) = (before.volume.as_ref()?, now.volume.as_ref()?);
    let hits = now.node_hits.saturating_sub(before.node_hits);
    let misses = now.node_misses.saturating_sub(before.node_misses);
    share(hits, hits + misses)
}

fn of_volume(span: Span, before: &VolumeUse, now: &VolumeUse) -> Volume {
    let (waited, waits) = (&before.writer_waits, &now.writer_waits);
    Volume {
        waiting_pages: now.pages_waiting,
        waiting_writers: waits.under_way,
        writers_wait: span.rate(waited.nanoseconds, waits.nanoseconds) / 1e9,
        journal_used_bytes: now.journal_used_bytes,
        journal_capacity_bytes: now.journal_capacity_bytes,
        commits: span.work(&before.commits, &now.commits),
        checkpoints: span.work(&before.checkpoints, &now.checkpoints),
        reads: span.transfers(&before.device_reads, &now.device_reads),
        read_bytes_per_second: span.rate(before.device_reads.bytes, now.device_reads.bytes),
        writes: span.transfers(&before.device_writes, &now.device_writes),
        written_bytes_per_second: span.rate(before.device_writes.bytes, now.device_writes.bytes),
        flushes: span.transfers(&before.device_flushes, &now.device_flushes),
    }
}

#[cfg(test)]
pub(super) mod tests;
