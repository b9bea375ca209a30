//! The daemon's side of `holdfast info`: makes the report.

use super::options::Plan;
#[cfg(feature = "cluster")]
use crate::info::report::ClusterUse;
use crate::info::report::{
    Abi, InodeStates, InodeTypes, Limits, MemoryUse, Reclaimed, Report, RequestTimes, State,
    Transfers, VolumeUse, Work,
};
use crate::source::Source;
use holdfast::{
    AtimePolicy, MemoryLimits, Options, Volume,
    engine::{FileSystem, Memory, budget::Class, shrinkers::Totals},
};
use holdfast_fuse::{Info, Negotiated, Session, Times, Transport, serve::InfoDetail};
use holdfast_volume::{VolumeStore, WorkCounts};
use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock, Weak},
    time::{Duration, Instant},
};

/// The sources of the report. The session is made later and owns the reporter: hence the weak
/// pointer.
pub(super) struct Reporter {
    source: String,
    options: Vec<String>,
    limits: MemoryLimits,
    fs: FileSystem,
    store: Option<Arc<VolumeStore>>,
    begun: Instant,
    session: OnceLock<Weak<Session>>,
    /// The URL of the metrics.
    metrics: Option<String>,
    /// Asks for the part of a file system of several machines.
    #[cfg(feature = "cluster")]
    cluster: Option<Box<dyn Fn() -> Option<ClusterUse> + Send + Sync>>,
}

impl Reporter {
    pub(super) fn new(
        source: &Source,
        plan: &Plan,
        fs: FileSystem,
        volume: Option<&Volume>,
        metrics: Option<String>,
    ) -> Self {
        Self {
            source: source.argument().to_string_lossy().into_owned(),
            options: plan.given.clone(),
            limits: match source {
                Source::Memory => plan.limits,
                Source::Volume(_) | Source::Directory(_) => MemoryLimits::default(),
                #[cfg(feature = "cluster")]
                Source::Cluster(_) => MemoryLimits::default(),
            },
            fs,
            store: volume.map(Volume::store),
            begun: Instant::now(),
            session: OnceLock::new(),
            metrics,
            #[cfg(feature = "cluster")]
            cluster: None,
        }
    }

    /// Adds what is to be asked for the part of a file system of several machines.
    #[cfg(feature = "cluster")]
    pub(super) fn add_cluster(&mut self, ask: Box<dyn Fn() -> Option<ClusterUse> + Send + Sync>) {
        self.cluster = Some(ask);
    }

    /// Sets the session of the live mount.
    pub(super) fn attach(&self, session: Weak<Session>) {
        // Set once in a daemon's life.
        let _ = self.session.set(session);
    }

    /// The report as one line of JSON.
    pub(super) fn json(&self, detail: InfoDetail) -> String {
        // A report has only numbers, strings and maps with string keys, so this does not fail.
        serde_json::to_string(&self.report(detail)).unwrap_or_default()
    }

    /// The report; without the session's part until the mount is live.
    pub(super) fn report(&self, detail: InfoDetail) -> Report {
        let mut report = self.core_part();
        if detail == InfoDetail::Inodes {
            self.count_inodes(&mut report);
        }
        if let Some(session) = self.session.get().and_then(Weak::upgrade) {
            add_session(&mut report, &session.info());
        }
        report
    }

    fn count_inodes(&self, report: &mut Report) {
        let census = self.fs.inode_census();
        report.inode_states = Some(InodeStates {
            used: census.used,
            unused: census.unused,
            orphans: census.orphans,
            dying: census.dying,
        });
        report.inode_types = Some(InodeTypes {
            regular: census.regular,
            directories: census.directories,
            symlinks: census.symlinks,
            special: census.special,
        });
    }

    fn core_part(&self) -> Report {
        let stats = self.fs.stats();
        let space = self.fs.statfs().ok();
        let failure = self.store.as_ref().and_then(|store| store.failure_reason());
        let options = self.fs.options();
        let promptness = self.store.as_ref().map(|store| store.promptness());
        let seconds = |time: Duration| time.as_secs_f64().ceil() as u64;
        Report {
            version: env!("CARGO_PKG_VERSION").into(),
            source: self.source.clone(),
            pid: std::process::id(),
            uptime_seconds: self.begun.elapsed().as_secs(),
            rss_bytes: rss_bytes().unwrap_or(0),
            options: in_force(&options, &self.options),
            state: match failure {
                Some(_) => State::Failed,
                None if options.read_only => State::ReadOnly,
                None => State::ReadWrite,
            },
            written_within_seconds: promptness.and_then(|it| it.written).map(seconds),
            flushed_within_seconds: promptness.and_then(|it| it.flushed).map(seconds),
            failure: failure.map(str::to_owned),
            limits: Limits {
                bytes_max: self.limits.bytes,
                inodes_max: self.limits.inodes,
                cache_max: self.fs.memory_in_use().map(|memory| memory.limit()),
            },
            metrics: self.metrics.clone(),
            memory: self.fs.memory_in_use().map(|memory| MemoryUse {
                promoted: stats.promoted,
                refaults: stats.refaults,
                content_refaults: stats.content_refaults,
                ..of_memory(memory)
            }),
            volume: self.store.as_ref().map(|store| of_volume(store)),
            #[cfg(feature = "cluster")]
            cluster: self.cluster.as_ref().and_then(|ask| ask()),
            inodes: stats.inodes,
            inodes_away: stats.inodes_away,
            names: stats.names,
            pages: stats.pages,
            bytes: stats.bytes,
            open_files: stats.open_files,
            watches: stats.watches,
            locks: stats.locks,
            statahead_issued: stats.statahead_issued,
            statahead_used: stats.statahead_used,
            statahead_wasted: stats.statahead_wasted,
            space_bytes: space.map(|space| space.blocks * u64::from(space.block_size)),
            space_free_bytes: space
                .map(|space| space.blocks_available * u64::from(space.block_size)),
            ..Report::default()
        }
    }
}

fn add_session(report: &mut Report, info: &Info) {
    report.mount_point = info.mount_point.display().to_string();
    report.transport = transport_name(info.transport).into();
    report.transport_reason.clone_from(&info.why);
    report.threads = info.threads;
    report.no_idle_policy.clone_from(&info.no_idle_policy);
    report.no_fuseblk.clone_from(&info.no_block);
    report.no_passthrough.clone_from(&info.no_passthrough);
    report.abi = abi(&info.negotiated);
    let totals = &info.totals;
    report.requests = totals
        .requests
        .iter()
        .map(|&(opcode, count)| (opcode.name().to_owned(), count))
        .collect();
    report.request_times = totals
        .times
        .iter()
        .map(|(opcode, times)| (opcode.name().to_owned(), request_times(times)))
        .collect();
    let errors = totals.errors.iter().map(|(opcode, counts)| {
        let counts = counts.iter().map(|(name, count)| (name.to_owned(), count));
        (opcode.name().to_owned(), counts.collect())
    });
    report.request_errors = errors.collect();
    report.requests_unknown = totals.unknown;
    report.requests_malformed = totals.malformed;
    report.requests_panicked = totals.panics;
    report.read_bytes = totals.bytes_read;
    report.written_bytes = totals.bytes_written;
}

fn request_times(times: &Times) -> RequestTimes {
    RequestTimes {
        count: times.count(),
        nanoseconds: nanoseconds(times.sum),
        buckets: times.buckets.to_vec(),
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The transport's name in reports.
pub(super) fn transport_name(transport: Transport) -> &'static str {
    match transport {
        Transport::Uring => "io_uring",
        Transport::Dev => "dev_fuse",
    }
}

fn abi(negotiated: &Negotiated) -> Abi {
    Abi {
        version: format!("7.{}", negotiated.minor),
        kernel_version: format!("7.{}", negotiated.kernel_minor),
        write_bytes_max: negotiated.max_write,
        flags: negotiated
            .flags
            .iter_names()
            .map(|(name, _)| name.to_lowercase())
            .collect(),
    }
}

/// The core's options in force, and all other options as given.
fn in_force(options: &Options, given: &[String]) -> String {
    let mut words = vec![if options.read_only { "ro" } else { "rw" }.to_owned()];
    for (set, word) in [
        (options.nosuid, "nosuid"),
        (options.nodev, "nodev"),
        (options.noexec, "noexec"),
        (options.sync, "sync"),
        (options.dirsync, "dirsync"),
        (options.nodiratime, "nodiratime"),
        (options.lazytime, "lazytime"),
    ] {
        if set {
            words.push(word.into());
        }
    }
    words.push(
        match options.atime {
            AtimePolicy::Relatime => "relatime",
            AtimePolicy::Strict => "strictatime",
            AtimePolicy::None => "noatime",
        }
        .into(),
    );
    let mut core = *options;
    // Options that the core does not know; and those like `mode=`, which it does not keep.
    words.extend(
        given
            .iter()
            .filter(|item| item.contains('=') || core.parse(item) == Ok(false))
            .cloned(),
    );
    words.join(",")
}

fn of_memory(memory: &Memory) -> MemoryUse {
    memory.look();
    let seen = memory.seen();
    let by_class = Class::ALL.map(|class| (class.name().to_owned(), seen.usage.of(class)));
    let counted = seen.usage.total();
    let slack = seen
        .resident
        .map(|resident| resident.saturating_sub(counted));
    MemoryUse {
        budget_bytes: (seen.budget != u64::MAX).then_some(seen.budget),
        limit_bytes: (seen.budget != u64::MAX).then_some(seen.limit),
        counted_bytes: counted,
        slack_bytes: slack,
        by_class: by_class.into_iter().collect(),
        by_shrinker: by_shrinker(memory),
        ..MemoryUse::default()
    }
}

fn of_volume(store: &VolumeStore) -> VolumeUse {
    let work = |counts: WorkCounts| Work {
        count: counts.count,
        nanoseconds: nanoseconds(counts.time),
        under_way: counts.under_way,
    };
    let transfers = |it: WorkCounts| Transfers {
        count: it.count,
        bytes: it.bytes,
        nanoseconds: nanoseconds(it.time),
    };
    let activity = store.activity();
    VolumeUse {
        journal_used_bytes: activity.journal_used,
        journal_capacity_bytes: activity.journal_capacity,
        pages_waiting: activity.pages_waiting,
        commits: work(activity.commits),
        checkpoints: work(activity.checkpoints),
        writer_waits: work(activity.writer_waits),
        node_hits: activity.nodes.hits,
        node_misses: activity.nodes.misses,
        device_reads: transfers(activity.device.reads),
        device_writes: transfers(activity.device.writes),
        device_flushes: transfers(activity.device.flushes),
    }
}

fn by_shrinker(memory: &Memory) -> BTreeMap<String, Reclaimed> {
    let of = |totals: Totals| Reclaimed {
        passes: totals.passes,
        scanned: totals.scanned,
        freed: totals.freed,
        deferred: totals.deferred,
        nanoseconds: totals.nanoseconds,
        nanoseconds_followed: totals.nanoseconds_followed,
    };
    let all = memory.shrinkers().totals().into_iter();
    all.map(|(name, totals)| (name.to_owned(), of(totals)))
        .collect()
}

/// Resident memory of this process.
fn rss_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_counts_what_the_file_system_holds() {
        let plan =
            Plan::parse(["noatime,size=1m,nr_inodes=0,mode=700,allow_other"], false).unwrap();
        let fs = FileSystem::memory(plan.limits, plan.core);
        let reporter = Reporter::new(&Source::Memory, &plan, fs, None, None);
        let report: Report = serde_json::from_str(&reporter.json(InfoDetail::Brief)).unwrap();
        assert_eq!(
            (report.source.as_str(), report.pid),
            ("mem:", std::process::id())
        );
        assert_eq!((report.state, &report.failure), (State::ReadWrite, &None));
        assert_eq!((report.inodes, report.names), (1, 0));
        assert_eq!(
            report.limits,
            Limits {
                bytes_max: Some(1 << 20),
                inodes_max: None,
                cache_max: None
            }
        );
        assert_eq!(
            report.options,
            "rw,noatime,size=1m,nr_inodes=0,mode=700,allow_other"
        );
        assert!(report.rss_bytes > 4096);
        assert_eq!((report.inode_states, report.inode_types), (None, None));
        let counted: Report = serde_json::from_str(&reporter.json(InfoDetail::Inodes)).unwrap();
        assert_eq!(counted.inode_states.map(|states| states.used), Some(1));
        assert_eq!(counted.inode_types.map(|types| types.directories), Some(1));
    }
}
