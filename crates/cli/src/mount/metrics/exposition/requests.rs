//! Metrics of the kernel's requests.

use super::writer::{COUNTER, HISTOGRAM, Writer, seconds};
use crate::info::report::Report;
use holdfast_fuse::Times;

pub(super) fn requests(report: &Report, to: &mut Writer) {
    let counts = report.requests.iter();
    to.family(
        COUNTER,
        "holdfast_requests",
        "Requests of the kernel",
        counts.map(|(name, count)| ([("operation", &**name)], count)),
    );
    let errors = report.request_errors.iter();
    to.family(
        COUNTER,
        "holdfast_request_errors",
        "Requests that were answered with an error; other: those that are mostly the callers'",
        errors.flat_map(|(name, errors)| {
            let of = errors.iter();
            of.map(move |(error, count)| ([("operation", &**name), ("error", &**error)], count))
        }),
    );
    times(report, to);
    for (name, help, value) in [
        (
            "holdfast_requests_unknown",
            "Requests of operations that are not known",
            report.requests_unknown,
        ),
        (
            "holdfast_requests_malformed",
            "Malformed requests",
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
        to.counter(name, help, value);
    }
}

fn times(report: &Report, to: &mut Writer) {
    let name = "holdfast_request_seconds";
    if !report.request_times.is_empty() {
        let help = "How long requests took to be served: one of 61, and all that sync";
        to.begin(HISTOGRAM, name, help);
    }
    for (operation, times) in &report.request_times {
        let operation = ("operation", &**operation);
        to.sample(name, "_sum", &[operation], seconds(times.nanoseconds));
        // The sum of the copied buckets, since `times.count` may be newer.
        let count: u64 = times.buckets.iter().sum();
        to.sample(name, "_count", &[operation], count);
        let mut sum = 0;
        for (bucket, count) in times.buckets.iter().enumerate() {
            sum += count;
            let bound = Times::bound(bucket).map(|bound| bound.as_secs_f64().to_string());
            let le = ("le", bound.as_deref().unwrap_or("+Inf"));
            to.sample(name, "_bucket", &[operation, le], sum);
        }
    }
}
