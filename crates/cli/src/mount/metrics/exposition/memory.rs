//! Metrics of memory and reclaim.

use super::writer::{COUNTER, GAUGE, Kind, Writer, seconds};
use crate::info::report::{MemoryUse, Reclaimed, Report};

/// Counts of cached objects.
pub(super) fn held(report: &Report, to: &mut Writer) {
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
        to.gauge(name, help, value);
    }
}

pub(super) fn memory_use(memory: &MemoryUse, to: &mut Writer) {
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
        if let Some(value) = value {
            to.gauge(name, help, value);
        }
    }
    let classes = memory.by_class.iter();
    to.family(
        GAUGE,
        "holdfast_memory_bytes",
        "Memory by what it is for",
        classes.map(|(name, bytes)| ([("class", &**name)], bytes)),
    );
}

pub(super) fn reclaim(memory: &MemoryUse, to: &mut Writer) {
    type Of = fn(&Reclaimed) -> u64;
    let families: [(Kind, &str, &str, Of); 4] = [
        (
            COUNTER,
            "holdfast_reclaim_passes",
            "Passes over a class",
            |it| it.passes,
        ),
        (
            COUNTER,
            "holdfast_reclaim_scanned",
            "Objects that passes were to scan",
            |it| it.scanned,
        ),
        (
            COUNTER,
            "holdfast_reclaim_evicted",
            "Objects that were freed",
            |it| it.freed,
        ),
        (
            GAUGE,
            "holdfast_reclaim_deferred",
            "Objects that passes have deferred",
            |it| it.deferred,
        ),
    ];
    for (kind, name, help, of) in families {
        let classes = memory.by_shrinker.iter();
        let members = classes.map(|(class, it)| ([("class", &**class)], of(it)));
        to.family(kind, name, help, members);
    }
    let shares = memory.by_shrinker.iter().flat_map(|(class, it)| {
        let followed = it.nanoseconds_followed;
        let own = it.nanoseconds.saturating_sub(followed);
        [("operation", own), ("thread", followed)]
            .map(|(who, spent)| ([("class", &**class), ("who", who)], seconds(spent)))
    });
    to.family(
        COUNTER,
        "holdfast_reclaim_seconds",
        "Time in which memory was freed: by operations that add something, and by a thread",
        shares,
    );
    to.family(
        COUNTER,
        "holdfast_reclaim_promoted",
        "Objects that stayed because they had been used again",
        [([("class", "metadata")], memory.promoted)],
    );
    to.family(
        COUNTER,
        "holdfast_reclaim_refaults",
        "Objects read again soon after their eviction",
        [
            ([("class", "metadata")], memory.refaults),
            ([("class", "content")], memory.content_refaults),
        ],
    );
}

pub(super) fn statahead(report: &Report, to: &mut Writer) {
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
        to.counter(name, help, value);
    }
}
