//! The text of a daemon's report: Prometheus' text format 0.0.4, or OpenMetrics.
//!
//! Numbers that the mount does not count are left out, so no metric is always zero.

mod memory;
mod process;
mod requests;
mod volume;
mod writer;

use super::accept::Format;
use crate::info::report::{Report, State};
use writer::{INFO, Writer};

/// The report's numbers.
pub(super) fn text(report: &Report, format: Format) -> String {
    let mut to = Writer::new(format);
    build(&mut to);
    process::process(&mut to);
    mount(report, &mut to);
    memory::held(report, &mut to);
    if let Some(memory_use) = &report.memory {
        memory::memory_use(memory_use, &mut to);
        memory::reclaim(memory_use, &mut to);
        memory::statahead(report, &mut to);
    }
    requests::requests(report, &mut to);
    if let Some(volume_use) = &report.volume {
        volume::volume_use(volume_use, &mut to);
    }
    to.end()
}

fn build(to: &mut Writer) {
    let labels = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("architecture", std::env::consts::ARCH),
        (
            "profile",
            if cfg!(debug_assertions) {
                "debug"
            } else {
                "release"
            },
        ),
    ];
    let help = "How the daemon was built";
    to.family(INFO, "holdfast_build", help, [(labels, 1)]);
}

fn mount(report: &Report, to: &mut Writer) {
    let labels = [
        ("version", &*report.version),
        ("source", &*report.source),
        ("mount_point", &*report.mount_point),
        ("transport", &*report.transport),
    ];
    to.family(
        INFO,
        "holdfast_mount",
        "What is mounted where",
        [(labels, 1)],
    );
    let state = |state| u64::from(report.state == state);
    for (name, help, value) in [
        (
            "holdfast_uptime_seconds",
            "Age of the daemon",
            report.uptime_seconds,
        ),
        (
            "holdfast_failed",
            "1 once the volume has failed",
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
        to.gauge(name, help, value);
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
        if let Some(value) = value {
            to.gauge(name, help, value);
        }
    }
}

#[cfg(test)]
mod tests;
