//! What the kernel asked for, and how long that took.

use super::writer::{Writer, label};
use crate::info::report::{Report, RequestTimes};
use holdfast_fuse::Times;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use std::fmt;
use std::time::Duration;

pub(super) fn requests(report: &Report, to: &mut Writer<'_, '_>) -> fmt::Result {
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
