//! The report as a table of names and values.

use super::activity::volume_rows;
#[cfg(feature = "cluster")]
use super::report::ClusterUse;
use super::report::{InodeStates, InodeTypes, Limits, MemoryUse, Report, State};
use super::units::{bytes, duration, number};
use anstyle::Style;
use std::fmt::{self, Display};

const NAME: Style = Style::new().bold();

/// A report, with `Display` as a table.
pub(super) struct Table<'a>(pub(super) &'a Report);

impl Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = self.0;
        let width = write_rows(f, &rows(report))?;
        write_requests(f, report, width)
    }
}

/// Writes rows; returns the width of the names.
pub(crate) fn write_rows(
    f: &mut impl fmt::Write,
    rows: &[(&'static str, String)],
) -> Result<usize, fmt::Error> {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in rows {
        // The padding stands outside the style, which some terminals underline.
        writeln!(
            f,
            "{NAME}{name}{NAME:#}{:1$}  {value}",
            "",
            width - name.len()
        )?;
    }
    Ok(width)
}

/// The rows of a file system of several machines.
#[cfg(feature = "cluster")]
pub(crate) fn cluster_rows(found: &ClusterUse) -> Vec<(&'static str, String)> {
    let at = |label: &str, text: &str| match text {
        "" => String::new(),
        text => format!(", {label} {text}"),
    };
    let bucket = [
        found.bucket.clone(),
        at("endpoint", &found.endpoint),
        at("region", &found.region),
    ];
    let coherence = match found.coherence.as_str() {
        "told" => format!(
            "told: changes are shown by messages, and {} ms later at most",
            found.lease_milliseconds
        ),
        other => format!(
            "{other}: what is shown is {} ms old at most",
            found.lease_milliseconds
        ),
    };
    let small = format!(
        "up to {} stay in the database, up to {} are staged there: {} now",
        bytes(found.inline_bytes),
        bytes(found.staged_bytes_max),
        bytes(found.staged_bytes)
    );
    let objects = format!(
        "{} of {}, of which {} are in use; {} wait for deletion, {} after their last use",
        number(found.objects),
        bytes(found.object_bytes),
        bytes(found.live_bytes),
        number(found.objects_unmapped),
        duration(found.keep_seconds)
    );
    let mut rows = vec![
        (
            "identity",
            format!("{}, incarnation {}", found.uuid, found.incarnation),
        ),
        ("bucket", bucket.concat()),
        ("coherence", coherence),
        ("locks", "of each mount by itself".into()),
        (
            "in all",
            format!(
                "{} inodes, {}",
                number(found.inodes),
                bytes(found.space_bytes)
            ),
        ),
        ("small files", small),
        ("objects", objects),
    ];
    rows.extend(found.clients.iter().map(|client| {
        let own = if client.own { ", this mount" } else { "" };
        let text = format!(
            "{} on {}, holdfast {}, silent for {} ms, {} messages wait{own}",
            client.session,
            client.host,
            client.version,
            number(client.silent_milliseconds),
            number(client.messages_waiting)
        );
        ("client", text)
    }));
    rows
}

fn rows(report: &Report) -> Vec<(&'static str, String)> {
    let Limits {
        bytes_max,
        inodes_max,
        ..
    } = report.limits;
    let version = format!(
        "holdfast {}, process {}, up {}",
        report.version,
        report.pid,
        duration(report.uptime_seconds)
    );
    let abi = format!(
        "{} (the kernel speaks {}), writes up to {}",
        report.abi.version,
        report.abi.kernel_version,
        bytes(u64::from(report.abi.write_bytes_max))
    );
    let mut rows = vec![
        ("source", report.source.clone()),
        ("mount point", report.mount_point.clone()),
        ("state", state(report)),
        ("daemon", version),
        ("transport", transport(report)),
        ("FUSE", abi),
        ("options", report.options.clone()),
    ];
    rows.extend(report.metrics.clone().map(|url| ("metrics", url)));
    rows.extend(lasts(report).map(|times| ("lasts", times)));
    rows.push(("inodes", of(number(report.inodes), inodes_max.map(number))));
    rows.extend(
        report
            .inode_states
            .map(|states| ("by state", by_state(&states))),
    );
    rows.extend(report.inode_types.map(|types| ("by type", by_type(&types))));
    if let (Some(all), Some(free)) = (report.space_bytes, report.space_free_bytes) {
        rows.push(("space", format!("{} free of {}", bytes(free), bytes(all))));
    }
    rows.extend([
        ("names", number(report.names)),
        ("pages", number(report.pages)),
        (
            "page memory",
            match report.memory {
                Some(_) => bytes(report.bytes),
                None => of(bytes(report.bytes), bytes_max.map(bytes)),
            },
        ),
    ]);
    #[cfg(feature = "cluster")]
    rows.extend(report.cluster.iter().flat_map(cluster_rows));
    rows.extend(memory(report));
    rows.extend([
        ("open files", number(report.open_files)),
        ("watches", number(report.watches)),
        ("locks", number(report.locks)),
    ]);
    rows.extend((report.memory.is_some()).then(|| ("stat-ahead", statahead(report))));
    rows.extend(report.volume.iter().flat_map(volume_rows));
    rows.extend([
        ("read", bytes(report.read_bytes)),
        ("written", bytes(report.written_bytes)),
    ]);
    rows
}

fn memory(report: &Report) -> Vec<(&'static str, String)> {
    let resident = bytes(report.rss_bytes);
    match &report.memory {
        Some(memory) => vec![
            ("memory", of(resident, memory.budget_bytes.map(bytes))),
            ("by class", by_class(memory)),
            ("reclaim", reclaim(memory)),
        ],
        None => vec![("resident", resident)],
    }
}

fn statahead(report: &Report) -> String {
    format!(
        "{} inodes, {} used, {} wasted",
        number(report.statahead_issued),
        number(report.statahead_used),
        number(report.statahead_wasted)
    )
}

fn state(report: &Report) -> String {
    match (report.state, &report.failure) {
        (State::Failed, reason) => format!(
            "failed: {}; nothing is written any more: unmount it and mount it again",
            reason.as_deref().unwrap_or("no reason is known")
        ),
        (State::ReadOnly, _) => "read-only".to_owned(),
        (State::ReadWrite, _) => "read-write".to_owned(),
    }
}

/// When changes are written and flushed.
fn lasts(report: &Report) -> Option<String> {
    let flushed = report.flushed_within_seconds?;
    Some(match report.written_within_seconds {
        Some(written) if written < flushed => format!(
            "changes are written within {written} s (the daemon's death loses no more), flushed within {flushed} s (nor does a power cut)"
        ),
        _ => format!("changes are written and flushed within {flushed} s"),
    })
}

fn by_state(states: &InodeStates) -> String {
    counts([
        (states.used, "used"),
        (states.unused, "unused"),
        (states.orphans, "orphans"),
        (states.dying, "dying"),
    ])
}

pub(super) fn by_type(types: &InodeTypes) -> String {
    counts([
        (types.regular, "regular"),
        (types.directories, "directories"),
        (types.symlinks, "symlinks"),
        (types.special, "special"),
    ])
}

/// The largest first.
fn by_class(memory: &MemoryUse) -> String {
    let mut classes: Vec<(u64, &str)> = memory
        .by_class
        .iter()
        .map(|(name, held)| (*held, &**name))
        .collect();
    classes.retain(|(held, _)| *held > 0);
    classes.sort_unstable_by(|one, other| other.cmp(one));
    classes.extend(memory.slack_bytes.map(|slack| (slack, "not counted")));
    let parts = classes
        .iter()
        .map(|(held, name)| format!("{name} {}", bytes(*held)));
    parts.collect::<Vec<_>>().join(", ")
}

/// Freed and scanned objects of each shrinker.
fn reclaim(memory: &MemoryUse) -> String {
    let parts = memory.by_shrinker.iter();
    let parts = parts.filter(|(_, it)| it.passes > 0).map(|(name, it)| {
        let owed = match it.deferred {
            0 => String::new(),
            owed => format!(" ({} deferred)", number(owed)),
        };
        let (freed, scanned) = (number(it.freed), number(it.scanned));
        format!("{name} {freed} of {scanned}{owed}")
    });
    match parts.collect::<Vec<_>>() {
        none if none.is_empty() => "none".to_owned(),
        parts => {
            let scanned = format!("{} scanned", parts.join(", "));
            let counts = [memory.promoted, memory.refaults, memory.content_refaults];
            match counts.map(number) {
                _ if counts == [0; 3] => scanned,
                [kept, inodes, files] => format!(
                    "{scanned}; {kept} inodes kept, {inodes} inodes and the content of {files} files read again"
                ),
            }
        }
    }
}

fn counts(counts: [(u64, &str); 4]) -> String {
    counts
        .map(|(count, name)| format!("{} {name}", number(count)))
        .join(", ")
}

fn transport(report: &Report) -> String {
    let threads = report.threads;
    let mut text = format!("{}, {threads} thread{}", report.transport, plural(threads));
    if !report.transport_reason.is_empty() {
        text.push_str(&format!(" ({})", report.transport_reason));
    }
    if let Some(reason) = &report.no_idle_policy {
        text.push_str(&format!(", callers are moved about ({reason})"));
    }
    if let Some(reason) = &report.no_fuseblk {
        text.push_str(&format!(
            "; sync(1) does not reach it and umount(2) does not wait for it ({reason})"
        ));
    }
    if let Some(reason) = &report.no_passthrough {
        text.push_str(&format!("; no file is passed through ({reason})"));
    }
    text
}

/// Requests by number, the most frequent first.
fn write_requests(f: &mut fmt::Formatter<'_>, report: &Report, width: usize) -> fmt::Result {
    let mut requests: Vec<(&str, u64)> = report
        .requests
        .iter()
        .map(|(name, &count)| (name.as_str(), count))
        .collect();
    for (name, count) in [
        ("unknown", report.requests_unknown),
        ("malformed", report.requests_malformed),
        ("panicked", report.requests_panicked),
    ] {
        if count != 0 {
            requests.push((name, count));
        }
    }
    requests.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    let total = requests.iter().map(|(_, count)| count).sum();
    let padding = width - "requests".len();
    writeln!(
        f,
        "{NAME}requests{NAME:#}{:padding$}  {}",
        "",
        number(total)
    )?;
    let name_width = requests
        .iter()
        .map(|(name, _)| name.len())
        .max()
        .unwrap_or(0);
    let count_width = requests
        .iter()
        .map(|(_, count)| number(*count).len())
        .max()
        .unwrap_or(0);
    for (name, count) in requests {
        writeln!(
            f,
            "{:width$}  {name:name_width$} {:>count_width$}",
            "",
            number(count)
        )?;
    }
    Ok(())
}

fn of(value: String, limit: Option<String>) -> String {
    match limit {
        Some(limit) => format!("{value} of {limit}"),
        None => format!("{value}, without a limit"),
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

#[cfg(test)]
mod tests {
    use super::super::report::Reclaimed;
    use super::*;

    fn reclaimed(freed: u64, deferred: u64) -> Reclaimed {
        Reclaimed {
            passes: 1,
            scanned: 2 * freed,
            freed,
            deferred,
            nanoseconds: 9,
            nanoseconds_followed: 0,
        }
    }

    #[test]
    fn values_stand_below_each_other_and_limits_beside_counts() {
        let report = Report {
            transport: "dev_fuse".into(),
            transport_reason: "no rings".into(),
            threads: 1,
            written_within_seconds: Some(1),
            flushed_within_seconds: Some(30),
            inodes: 12345,
            limits: Limits {
                bytes_max: Some(1 << 30),
                cache_max: None,
                inodes_max: None,
            },
            requests: [("LOOKUP".to_owned(), 2000), ("GETATTR".to_owned(), 7)].into(),
            requests_malformed: 1,
            memory: Some(MemoryUse {
                by_shrinker: [("content", 5, 0), ("metadata", 7000, 12)]
                    .map(|(name, freed, deferred)| (name.to_owned(), reclaimed(freed, deferred)))
                    .into(),
                promoted: 300,
                refaults: 2,
                content_refaults: 4,
                ..MemoryUse::default()
            }),
            metrics: Some("http://127.0.0.1:9464/metrics".into()),
            statahead_issued: 5000,
            statahead_used: 4990,
            statahead_wasted: 8,
            inode_states: Some(InodeStates {
                used: 12300,
                unused: 40,
                orphans: 5,
                dying: 0,
            }),
            inode_types: Some(InodeTypes {
                regular: 12345,
                ..InodeTypes::default()
            }),
            ..Report::default()
        };
        let text = anstream::adapter::strip_str(&Table(&report).to_string()).to_string();
        for line in [
            "transport    dev_fuse, 1 thread (no rings)",
            "lasts        changes are written within 1 s (the daemon's death loses no more), flushed within 30 s (nor does a power cut)",
            "inodes       12,345, without a limit",
            "by state     12,300 used, 40 unused, 5 orphans, 0 dying",
            "by type      12,345 regular, 0 directories, 0 symlinks, 0 special",
            "page memory  0 B",
            "reclaim      content 5 of 10, metadata 7,000 of 14,000 (12 deferred) scanned; 300 inodes kept, 2 inodes and the content of 4 files read again",
            "metrics      http://127.0.0.1:9464/metrics",
            "stat-ahead   5,000 inodes, 4,990 used, 8 wasted",
            "requests     2,008",
            "             LOOKUP    2,000",
            "             GETATTR       7",
            "             malformed     1",
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line:?} in {text}");
        }
    }
}
