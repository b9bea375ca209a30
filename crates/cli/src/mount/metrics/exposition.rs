//! A daemon's report as Prometheus reads it: OpenMetrics' text.
//!
//! What was not counted is left out: there is no metric that is always zero.

use crate::info::report::{
    MemoryUse, Reclaimed, Report, RequestTimes, State, Transfers, VolumeUse, Work,
};
use holdfast_fuse::Times;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet, text as encoding,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::fmt;
use std::time::Duration;

/// What the text is, for HTTP.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The report's numbers.
///
/// # Errors
/// None: a string takes everything.
pub(super) fn text(report: Report) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Exposed(report)));
    let mut out = String::new();
    encoding::encode(&mut out, &registry)?;
    Ok(out)
}

#[derive(Debug)]
struct Exposed(Report);

impl Collector for Exposed {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (report, mut to) = (&self.0, Writer(&mut encoder));
        mount(report, &mut to)?;
        held(report, &mut to)?;
        if let Some(memory) = &report.memory {
            memory_use(memory, &mut to)?;
            reclaim(memory, &mut to)?;
            statahead(report, &mut to)?;
        }
        requests(report, &mut to)?;
        match &report.volume {
            Some(volume) => volume_use(volume, &mut to),
            None => Ok(()),
        }
    }
}

/// Labels, with their values as they may stand in the text.
type Labels<'l> = Vec<(&'l str, String)>;

fn label<'l>(name: &'l str, value: &str) -> Labels<'l> {
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
    vec![(name, escaped.replace('\n', "\\n"))]
}

/// Writes families of metrics, one after the other.
struct Writer<'e, 'd>(&'e mut DescriptorEncoder<'d>);

impl Writer<'_, '_> {
    fn one(&mut self, name: &str, help: &str, metric: &impl EncodeMetric) -> fmt::Result {
        let kind = metric.metric_type();
        metric.encode(self.0.encode_descriptor(name, help, None, kind)?)
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.one(name, help, &gauge(value))
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.one(name, help, &ConstCounter::new(value))
    }

    fn seconds(&mut self, name: &str, help: &str, nanoseconds: u64) -> fmt::Result {
        self.one(name, help, &seconds(nanoseconds))
    }

    /// One metric for each set of labels; nothing, if there is none.
    fn family<'l, M: EncodeMetric>(
        &mut self,
        (name, help): (&str, &str),
        members: impl IntoIterator<Item = (Labels<'l>, M)>,
    ) -> fmt::Result {
        let mut members = members.into_iter().peekable();
        let Some((_, first)) = members.peek() else {
            return Ok(());
        };
        let kind = first.metric_type();
        let mut to = self.0.encode_descriptor(name, help, None, kind)?;
        for (labels, metric) in members {
            metric.encode(to.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

fn gauge(value: u64) -> ConstGauge<i64> {
    ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX))
}

fn seconds(nanoseconds: u64) -> ConstCounter<f64> {
    ConstCounter::new(Duration::from_nanos(nanoseconds).as_secs_f64())
}

/// What does not change while the daemon lives.
struct MountInfo<'r>(&'r Report);

impl EncodeMetric for MountInfo<'_> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let Self(report) = self;
        let labels = [
            ("version", &report.version),
            ("source", &report.source),
            ("mount_point", &report.mount_point),
            ("transport", &report.transport),
        ];
        let labels = labels.map(|(name, value)| label(name, value));
        encoder.encode_info(&labels.concat())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Info
    }
}

fn mount(report: &Report, to: &mut Writer<'_, '_>) -> fmt::Result {
    to.one(
        "holdfast_mount",
        "What is mounted where",
        &MountInfo(report),
    )?;
    let state = |state| u64::from(report.state == state);
    for (name, help, value) in [
        (
            "holdfast_uptime_seconds",
            "Age of the daemon",
            report.uptime_seconds,
        ),
        (
            "holdfast_failed",
            "1 once nothing is written to the volume any more, because that failed",
            state(State::Failed),
        ),
        (
            "holdfast_read_only",
            "1 while nothing can be changed",
            state(State::ReadOnly),
        ),
        (
            "holdfast_serving_threads",
            "Threads that take requests from the kernel",
            report.threads as u64,
        ),
    ] {
        to.gauge(name, help, value)?;
    }
    for (name, help, value) in [
        (
            "holdfast_space_bytes",
            "Size of the file system",
            report.space_bytes,
        ),
        (
            "holdfast_space_free_bytes",
            "What is free of it",
            report.space_free_bytes,
        ),
    ] {
        value.map_or(Ok(()), |value| to.gauge(name, help, value))?;
    }
    Ok(())
}

/// What is in memory.
fn held(report: &Report, to: &mut Writer<'_, '_>) -> fmt::Result {
    for (name, help, value) in [
        (
            "holdfast_memory_rss_bytes",
            "Resident memory of the daemon",
            report.rss_bytes,
        ),
        ("holdfast_inodes", "Inodes in memory", report.inodes),
        (
            "holdfast_kernel_held_inodes",
            "Inodes that the kernel holds and that are not in memory",
            report.inodes_away,
        ),
        ("holdfast_names", "Names in memory", report.names),
        ("holdfast_pages", "Pages of files in memory", report.pages),
        (
            "holdfast_page_bytes",
            "What pages and their tables take",
            report.bytes,
        ),
        (
            "holdfast_open_files",
            "Open files; with opens=local only those that the daemon opens",
            report.open_files,
        ),
        ("holdfast_watches", "Watches of programs", report.watches),
        (
            "holdfast_locks",
            "Locks of files that the daemon keeps",
            report.locks,
        ),
    ] {
        to.gauge(name, help, value)?;
    }
    Ok(())
}

fn memory_use(memory: &MemoryUse, to: &mut Writer<'_, '_>) -> fmt::Result {
    for (name, help, value) in [
        (
            "holdfast_memory_budget_bytes",
            "What may be resident",
            memory.budget_bytes,
        ),
        (
            "holdfast_memory_limit_bytes",
            "What may be counted of it",
            memory.limit_bytes,
        ),
        (
            "holdfast_memory_slack_bytes",
            "What is resident and not counted",
            memory.slack_bytes,
        ),
    ] {
        value.map_or(Ok(()), |value| to.gauge(name, help, value))?;
    }
    let classes = memory.by_class.iter();
    to.family(
        ("holdfast_memory_bytes", "Memory by what it is for"),
        classes.map(|(name, bytes)| (label("class", name), gauge(*bytes))),
    )
}

fn reclaim(memory: &MemoryUse, to: &mut Writer<'_, '_>) -> fmt::Result {
    type Of = fn(&Reclaimed) -> u64;
    let classes = || memory.by_shrinker.iter();
    let counters: [(&str, &str, Of); 3] = [
        ("holdfast_reclaim_passes", "Passes over a class", |it| {
            it.passes
        }),
        (
            "holdfast_reclaim_scanned",
            "Objects that passes were to look at",
            |it| it.scanned,
        ),
        ("holdfast_reclaim_evicted", "Objects that went", |it| {
            it.freed
        }),
    ];
    for (name, help, of) in counters {
        let members = classes().map(|(class, it)| (label("class", class), of(it)));
        to.family(
            (name, help),
            members.map(|(labels, count)| (labels, ConstCounter::new(count))),
        )?;
    }
    let shares = classes().flat_map(|(class, it)| {
        let followed = it.nanoseconds_followed;
        let own = it.nanoseconds.saturating_sub(followed);
        [("operation", own), ("thread", followed)].map(|(who, spent)| {
            let labels = [label("class", class), label("who", who)];
            (labels.concat(), seconds(spent))
        })
    });
    to.family(
        (
            "holdfast_reclaim_seconds",
            "Time in which memory was freed: by operations that add something, and by a thread",
        ),
        shares,
    )?;
    let deferred = classes().map(|(class, it)| (label("class", class), gauge(it.deferred)));
    to.family(
        (
            "holdfast_reclaim_deferred",
            "Objects that passes have still to look at",
        ),
        deferred,
    )?;
    for (name, help, value) in [
        (
            "holdfast_reclaim_promoted",
            "Objects that stayed because they had been used again",
            memory.promoted,
        ),
        (
            "holdfast_reclaim_refaults",
            "Objects that came again so soon that they should have stayed",
            memory.refaults,
        ),
    ] {
        let inodes = (label("class", "metadata"), ConstCounter::new(value));
        to.family((name, help), [inodes])?;
    }
    Ok(())
}

fn statahead(report: &Report, to: &mut Writer<'_, '_>) -> fmt::Result {
    for (name, help, value) in [
        (
            "holdfast_statahead_issued",
            "Inodes that were read ahead",
            report.statahead_issued,
        ),
        (
            "holdfast_statahead_used",
            "Those that were used",
            report.statahead_used,
        ),
        (
            "holdfast_statahead_wasted",
            "Those that went unused",
            report.statahead_wasted,
        ),
    ] {
        to.counter(name, help, value)?;
    }
    Ok(())
}

fn requests(report: &Report, to: &mut Writer<'_, '_>) -> fmt::Result {
    let counts = report.requests.iter();
    to.family(
        ("holdfast_requests", "Requests of the kernel"),
        counts.map(|(name, count)| (label("operation", name), ConstCounter::new(*count))),
    )?;
    let times = report.request_times.iter();
    to.family(
        (
            "holdfast_request_seconds",
            "How long requests took to be served: one of 61, and all that sync",
        ),
        times.map(|(name, times)| (label("operation", name), Histogram(times))),
    )?;
    for (name, help, value) in [
        (
            "holdfast_requests_unknown",
            "Requests of operations that are not known",
            report.requests_unknown,
        ),
        (
            "holdfast_requests_malformed",
            "Requests whose bytes contradicted themselves",
            report.requests_malformed,
        ),
        (
            "holdfast_requests_panicked",
            "Requests that met a bug and were answered with EIO",
            report.requests_panicked,
        ),
        (
            "holdfast_read_bytes",
            "Bytes read through the mount",
            report.read_bytes,
        ),
        (
            "holdfast_written_bytes",
            "Bytes written through the mount",
            report.written_bytes,
        ),
    ] {
        to.counter(name, help, value)?;
    }
    Ok(())
}

struct Histogram<'t>(&'t RequestTimes);

impl EncodeMetric for Histogram<'_> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let Self(times) = self;
        let bound = |bucket| Times::bound(bucket).map_or(f64::MAX, |bound| bound.as_secs_f64());
        let buckets = times.buckets.iter().enumerate();
        let buckets: Vec<(f64, u64)> = buckets.map(|(at, &count)| (bound(at), count)).collect();
        // The buckets' sum, which another thread's request cannot have changed meanwhile.
        let count = times.buckets.iter().sum();
        let sum = Duration::from_nanos(times.nanoseconds).as_secs_f64();
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

fn volume_use(volume: &VolumeUse, to: &mut Writer<'_, '_>) -> fmt::Result {
    for (name, help, value) in [
        (
            "holdfast_journal_used_bytes",
            "What is in use of the journal",
            volume.journal_used_bytes,
        ),
        (
            "holdfast_journal_capacity_bytes",
            "What can be in use of the journal",
            volume.journal_capacity_bytes,
        ),
        (
            "holdfast_waiting_pages",
            "Pages that wait for a commit",
            volume.pages_waiting,
        ),
        (
            "holdfast_waiting_writers",
            "Threads that wait until less of what was changed waits",
            volume.writer_waits.under_way,
        ),
    ] {
        to.gauge(name, help, value)?;
    }
    let works: [(&str, &str, &str, &Work); 3] = [
        (
            "holdfast_commits",
            "holdfast_commit_seconds",
            "commits: all that was done before is durable then",
            &volume.commits,
        ),
        (
            "holdfast_checkpoints",
            "holdfast_checkpoint_seconds",
            "checkpoints, which merge changes into the volume's trees",
            &volume.checkpoints,
        ),
        (
            "holdfast_writer_waits",
            "holdfast_writer_wait_seconds",
            "waits of operations until less of what was changed waits",
            &volume.writer_waits,
        ),
    ];
    for (count, time, what, work) in works {
        to.counter(count, &format!("Number of {what}"), work.count)?;
        to.seconds(time, &format!("Time of {what}"), work.nanoseconds)?;
    }
    let hits = (
        "holdfast_node_hits",
        "Nodes of trees that were found in memory",
    );
    to.counter(hits.0, hits.1, volume.node_hits)?;
    let misses = ("holdfast_node_misses", "Nodes of trees that were read");
    to.counter(misses.0, misses.1, volume.node_misses)?;
    device(volume, to)
}

fn device(volume: &VolumeUse, to: &mut Writer<'_, '_>) -> fmt::Result {
    let transfers = || {
        let all = [
            ("read", &volume.device_reads),
            ("write", &volume.device_writes),
            ("flush", &volume.device_flushes),
        ];
        all.into_iter()
            .map(|(name, it)| (label("operation", name), it))
    };
    let count = |it: &Transfers| ConstCounter::new(it.count);
    to.family(
        (
            "holdfast_device_requests",
            "Requests to the volume's device",
        ),
        transfers().map(|(labels, it)| (labels, count(it))),
    )?;
    // A flush has no bytes.
    let moved = transfers().take(2);
    to.family(
        ("holdfast_device_bytes", "Bytes of these requests"),
        moved.map(|(labels, it)| (labels, ConstCounter::new(it.bytes))),
    )?;
    to.family(
        (
            "holdfast_device_seconds",
            "Time that threads waited for these requests",
        ),
        transfers().map(|(labels, it)| (labels, seconds(it.nanoseconds))),
    )
}

#[cfg(test)]
mod tests;
