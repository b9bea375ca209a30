//! A daemon's report as Prometheus reads it: its text format 0.0.4, or OpenMetrics' text.
//!
//! What was not counted is left out: there is no metric that is always zero.

mod memory;
mod requests;
mod volume;
mod writer;

use super::accept::Format;
use crate::info::report::{Report, State};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeMetric, MetricEncoder, text as encoding,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::fmt::{self, Write as _};
use writer::{Writer, label};

/// The report's numbers.
///
/// # Errors
/// None: a string takes everything.
pub(super) fn text(report: Report, format: Format) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Exposed(report)));
    let mut out = String::new();
    encoding::encode_registry(&mut out, &registry)?;
    match format {
        Format::Text => plain(&out),
        Format::OpenMetrics => encoding::encode_eof(&mut out).map(|()| out),
    }
}

/// The same in the text format 0.0.4. It names a family as its samples are named, knows no type `info`, and has no end.
fn plain(openmetrics: &str) -> Result<String, fmt::Error> {
    let mut out = String::with_capacity(openmetrics.len() + openmetrics.len() / 8);
    // OpenMetrics' name, and the help: the type that follows decides the name.
    let mut help = ("", "");
    for line in openmetrics.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ').unwrap_or((rest, ""));
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap_or((rest, "untyped"));
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                kind => ("", kind),
            };
            if help.0 == name {
                writeln!(out, "# HELP {name}{suffix} {}", help.1)?;
            }
            writeln!(out, "# TYPE {name}{suffix} {kind}")?;
        } else {
            writeln!(out, "{line}")?;
        }
    }
    Ok(out)
}

#[derive(Debug)]
struct Exposed(Report);

impl Collector for Exposed {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (report, mut to) = (&self.0, Writer(&mut encoder));
        mount(report, &mut to)?;
        memory::held(report, &mut to)?;
        if let Some(memory_use) = &report.memory {
            memory::memory_use(memory_use, &mut to)?;
            memory::reclaim(memory_use, &mut to)?;
            memory::statahead(report, &mut to)?;
        }
        requests::requests(report, &mut to)?;
        match &report.volume {
            Some(volume_use) => volume::volume_use(volume_use, &mut to),
            None => Ok(()),
        }
    }
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

#[cfg(test)]
mod tests;
