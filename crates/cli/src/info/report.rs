//! What a daemon tells about itself: written by the daemon, read by `holdfast info`.
//!
//! The daemon answers it as the extended attribute `holdfast.info` of the mount's root (with a
//! count of inodes: `holdfast.info.inodes`), as one line of JSON. `holdfast info --json` passes on that line, so its fields are an interface:
//! they are added to, not renamed.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What can be done with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    #[default]
    ReadWrite,
    ReadOnly,
    /// Its volume failed: it can be read.
    Failed,
}

/// A daemon's report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Report {
    pub(crate) version: String,
    pub(crate) source: String,
    pub(crate) mount_point: String,
    pub(crate) pid: u32,
    pub(crate) uptime_seconds: u64,
    /// Resident memory of the daemon.
    pub(crate) rss_bytes: u64,
    /// `io_uring` or `dev_fuse`.
    pub(crate) transport: String,
    /// Why that one and not the other.
    pub(crate) transport_reason: String,
    /// Threads that take requests from the kernel.
    pub(crate) threads: usize,
    /// Why replies are not committed under `SCHED_IDLE`, where they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) no_idle_policy: Option<String>,
    /// Why sync(1) does not reach a volume and umount(2) does not wait for it, where that is so without being asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) no_fuseblk: Option<String>,
    /// Why the kernel reads and writes no files of a directory by itself, where that was wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) no_passthrough: Option<String>,
    pub(crate) abi: Abi,
    pub(crate) state: State,
    /// Why a volume failed: nothing is written to it any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<String>,
    /// The options in force, as mount(8) spells them.
    pub(crate) options: String,
    /// After so long at most changes are with the host: the daemon's death loses no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) written_within_seconds: Option<u64>,
    /// And so long later than they were made they are flushed: a power cut loses no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) flushed_within_seconds: Option<u64>,
    pub(crate) limits: Limits,
    /// Where these numbers are served in the form that Prometheus reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) metrics: Option<String>,
    /// What the daemon of a volume takes, and may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memory: Option<MemoryUse>,
    /// What the volume does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) volume: Option<VolumeUse>,
    pub(crate) inodes: u64,
    /// Inodes that the kernel holds and that are not in memory.
    pub(crate) inodes_away: u64,
    /// Only if asked for: every inode has to be looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) inode_states: Option<InodeStates>,
    /// Only if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) inode_types: Option<InodeTypes>,
    pub(crate) names: u64,
    pub(crate) pages: u64,
    /// Memory that pages and their tables take.
    pub(crate) bytes: u64,
    /// Space of the file system, as statfs(2) tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) space_bytes: Option<u64>,
    /// What is free of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) space_free_bytes: Option<u64>,
    pub(crate) open_files: u64,
    pub(crate) watches: u64,
    pub(crate) locks: u64,
    /// Inodes that came into memory before anybody asked for them; those that were used then, and those that left it
    /// without.
    pub(crate) statahead_issued: u64,
    pub(crate) statahead_used: u64,
    pub(crate) statahead_wasted: u64,
    /// Requests so far, by the kernel's name for each.
    pub(crate) requests: BTreeMap<String, u64>,
    /// How long requests took that were timed: one of so many.
    pub(crate) request_times: BTreeMap<String, RequestTimes>,
    /// Requests of operations that this version does not know.
    pub(crate) requests_unknown: u64,
    pub(crate) requests_malformed: u64,
    /// Requests that met a bug and were answered with EIO.
    pub(crate) requests_panicked: u64,
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
}

/// What was agreed on with the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Abi {
    /// The version in use, `7.45`.
    pub(crate) version: String,
    /// The version that the kernel speaks.
    pub(crate) kernel_version: String,
    /// Largest write of one request.
    pub(crate) write_bytes_max: u32,
    /// The capabilities in force.
    pub(crate) flags: Vec<String>,
}

/// Limits; `null` is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Limits {
    pub(crate) bytes_max: Option<u64>,
    pub(crate) inodes_max: Option<u64>,
    /// Of memory for what the daemon of a volume counts.
    pub(crate) cache_max: Option<u64>,
}

/// Memory by what it is taken for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct MemoryUse {
    /// `memory=`; `null`: all there is.
    pub(crate) budget_bytes: Option<u64>,
    /// What may be counted: the budget less what is resident beyond that.
    pub(crate) limit_bytes: Option<u64>,
    /// What is counted.
    pub(crate) counted_bytes: u64,
    /// What is resident beyond that.
    pub(crate) slack_bytes: Option<u64>,
    /// Bytes by class.
    pub(crate) by_class: BTreeMap<String, u64>,
    /// How memory was freed so far.
    pub(crate) by_shrinker: BTreeMap<String, Reclaimed>,
    /// Inodes that stayed because they had been used again, so far.
    pub(crate) promoted: u64,
    /// Inodes that came again so soon that they should have stayed, so far.
    pub(crate) refaults: u64,
    /// The same of the content of small files.
    pub(crate) content_refaults: u64,
}

/// What went of one kind so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Reclaimed {
    pub(crate) passes: u64,
    /// Objects that passes were to look at.
    pub(crate) scanned: u64,
    /// Objects that went.
    pub(crate) freed: u64,
    /// Objects that passes have still to look at.
    pub(crate) deferred: u64,
    /// Time that threads spent in it.
    pub(crate) nanoseconds: u64,
    /// That part of it which the thread spent that follows memory, and no operation.
    pub(crate) nanoseconds_followed: u64,
}

/// How long requests of one operation took that were timed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RequestTimes {
    /// So many were timed.
    pub(crate) count: u64,
    /// All of them together.
    pub(crate) nanoseconds: u64,
    /// Counts by [`holdfast_fuse::Times::bound`]. For metrics alone: an answer has no room for it.
    #[serde(skip)]
    pub(crate) buckets: Vec<u64>,
}

/// What a volume does, and has done since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct VolumeUse {
    pub(crate) journal_used_bytes: u64,
    pub(crate) journal_capacity_bytes: u64,
    /// Pages that wait for a commit.
    pub(crate) pages_waiting: u64,
    /// Those that were flushed.
    pub(crate) commits: Work,
    pub(crate) checkpoints: Work,
    /// Waits of operations until less of what was changed waits.
    pub(crate) writer_waits: Work,
    /// Nodes of trees that were found in memory, and those that were read.
    pub(crate) node_hits: u64,
    pub(crate) node_misses: u64,
    pub(crate) device_reads: Transfers,
    pub(crate) device_writes: Transfers,
    pub(crate) device_flushes: Transfers,
}

/// What was done, and how long it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Work {
    pub(crate) count: u64,
    pub(crate) nanoseconds: u64,
    /// Threads that are at it.
    pub(crate) under_way: u64,
}

/// What was asked of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Transfers {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    /// How long threads waited for it.
    pub(crate) nanoseconds: u64,
}

/// Inodes by what becomes of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct InodeStates {
    /// By an open file, the kernel, a request.
    pub(crate) used: u64,
    /// In memory because they may be wanted again.
    pub(crate) unused: u64,
    /// In use without a name: gone with the last use.
    pub(crate) orphans: u64,
    /// On their way out.
    pub(crate) dying: u64,
}

/// Inodes by type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct InodeTypes {
    pub(crate) regular: u64,
    pub(crate) directories: u64,
    pub(crate) symlinks: u64,
    /// Fifos, sockets and devices.
    pub(crate) special: u64,
}
