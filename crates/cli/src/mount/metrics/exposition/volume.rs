//! Metrics of a volume's journal and device.

use super::writer::{COUNTER, Writer, seconds};
use crate::info::report::{VolumeUse, Work};

pub(super) fn volume_use(volume: &VolumeUse, to: &mut Writer) {
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
        to.gauge(name, help, value);
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
        to.counter(count, &format!("Number of {what}"), work.count);
        to.counter(time, &format!("Time of {what}"), seconds(work.nanoseconds));
    }
    for (name, help, value) in [
        (
            "holdfast_node_hits",
            "Nodes of trees that were found in memory",
            volume.node_hits,
        ),
        (
            "holdfast_node_misses",
            "Nodes of trees that were read",
            volume.node_misses,
        ),
    ] {
        to.counter(name, help, value);
    }
    device(volume, to);
}

fn device(volume: &VolumeUse, to: &mut Writer) {
    let transfers = [
        ([("operation", "read")], &volume.device_reads),
        ([("operation", "write")], &volume.device_writes),
        ([("operation", "flush")], &volume.device_flushes),
    ];
    to.family(
        COUNTER,
        "holdfast_device_requests",
        "Requests to the volume's device",
        transfers.map(|(labels, it)| (labels, it.count)),
    );
    // A flush has no bytes.
    let moved = transfers.into_iter().take(2);
    to.family(
        COUNTER,
        "holdfast_device_bytes",
        "Bytes of these requests",
        moved.map(|(labels, it)| (labels, it.bytes)),
    );
    to.family(
        COUNTER,
        "holdfast_device_seconds",
        "Time that threads waited for these requests",
        transfers.map(|(labels, it)| (labels, seconds(it.nanoseconds))),
    );
}
