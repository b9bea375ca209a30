//! What is in memory, and what reclaim made of it.

use super::writer::{Writer, gauge, label, seconds};
use crate::info::report::{MemoryUse, Reclaimed, Report};
use prometheus_client::metrics::counter::ConstCounter;
use std::fmt;

/// What is in memory.
pub(super) fn held(report: &Report, to: &mut Writer<'_, '_>) -> fmt::Result {
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

pub(super) fn memory_use(memory: &MemoryUse, to: &mut Writer<'_, '_>) -> fmt::Result {
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

pub(super) fn reclaim(memory: &MemoryUse, to: &mut Writer<'_, '_>) -> fmt::Result {
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
    let of = |(class, count)| (label("class", class), ConstCounter::new(count));
    to.family(
        (
            "holdfast_reclaim_promoted",
            "Objects that stayed because they had been used again",
        ),
        [("metadata", memory.promoted)].map(of),
    )?;
    let came = [
        ("metadata", memory.refaults),
        ("content", memory.content_refaults),
    ];
    to.family(
        (
            "holdfast_reclaim_refaults",
            "Objects that came again so soon that they should have stayed",
        ),
        came.map(of),
    )
}

pub(super) fn statahead(report: &Report, to: &mut Writer<'_, '_>) -> fmt::Result {
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
