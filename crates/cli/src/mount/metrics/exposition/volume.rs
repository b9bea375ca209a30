//! A volume's journal and device.

use super::writer::{Writer, label, seconds};
use crate::info::report::{Transfers, VolumeUse, Work};
use prometheus_client::metrics::counter::ConstCounter;
use std::fmt;

pub(super) fn volume_use(volume: &VolumeUse, to: &mut Writer<'_, '_>) -> fmt::Result {
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
