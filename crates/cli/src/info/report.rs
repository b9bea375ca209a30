//! A daemon's report: written by the daemon, read by `holdfast info`.
//!
//! It is one line of JSON, the value of the extended attribute `holdfast.info` of the mount's root,
//! or `holdfast.info.inodes` with a count of inodes. `holdfast info --json` prints that line. So
//! its fields are an interface: fields may be added, never renamed.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Whether the mount can be changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    #[default]
    ReadWrite,
    ReadOnly,
    /// Its volume failed and can only be read.
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
    /// Why this transport was chosen.
    pub(crate) transport_reason: String,
    /// Threads that take requests from the kernel.
    pub(crate) threads: usize,
    /// Why replies are not committed under `SCHED_IDLE`; `None` if they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) no_idle_policy: Option<String>,
    /// Why the volume is not mounted as `fuseblk`, so that sync(1) does not reach it and umount(2)
    /// does not wait for it. `None` if it is, or if that was not wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) no_fuseblk: Option<String>,
    /// Why passthrough is not in use, where it was wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) no_passthrough: Option<String>,
    pub(crate) abi: Abi,
    pub(crate) state: State,
    /// Why the volume failed; it is not written to any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<String>,
    /// The options in force, as mount(8) spells them.
    pub(crate) options: String,
    /// Changes older than this are in the host's page cache, and survive the daemon's death.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) written_within_seconds: Option<u64>,
    /// Changes older than this are flushed to the device, and survive a power cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) flushed_within_seconds: Option<u64>,
    pub(crate) limits: Limits,
    /// The URL of the metrics for Prometheus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) metrics: Option<String>,
    /// Memory of the daemon, and its limits; `None` for `mem:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memory: Option<MemoryUse>,
    /// The volume's activity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) volume: Option<VolumeUse>,
    /// The whole file system of several machines.
    #[cfg(feature = "cluster")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cluster: Option<ClusterUse>,
    pub(crate) inodes: u64,
    /// Inodes that the kernel holds and that are not in memory.
    pub(crate) inodes_away: u64,
    /// Only if asked for: counting visits every inode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) inode_states: Option<InodeStates>,
    /// Only if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) inode_types: Option<InodeTypes>,
    pub(crate) names: u64,
    pub(crate) pages: u64,
    /// Memory that pages and their tables take.
    pub(crate) bytes: u64,
    /// Size of the file system, as in statfs(2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) space_bytes: Option<u64>,
    /// Free bytes, as in statfs(2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) space_free_bytes: Option<u64>,
    pub(crate) open_files: u64,
    pub(crate) watches: u64,
    pub(crate) locks: u64,
    /// Inodes read ahead; those of them that were used; those that were evicted unused.
    pub(crate) statahead_issued: u64,
    pub(crate) statahead_used: u64,
    pub(crate) statahead_wasted: u64,
    /// Requests so far, by opcode.
    pub(crate) requests: BTreeMap<String, u64>,
    /// Errors that requests were answered with, by opcode and by name. Those that are mostly the
    /// callers' are one, `other`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) request_errors: BTreeMap<String, BTreeMap<String, u64>>,
    /// Times of requests, of which only a sample is measured.
    pub(crate) request_times: BTreeMap<String, RequestTimes>,
    /// Requests with unknown opcodes.
    pub(crate) requests_unknown: u64,
    pub(crate) requests_malformed: u64,
    /// Requests that panicked, answered with EIO.
    pub(crate) requests_panicked: u64,
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
}

/// The negotiated FUSE protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Abi {
    /// The version in use, `7.45`.
    pub(crate) version: String,
    /// The kernel's version.
    pub(crate) kernel_version: String,
    /// Largest write of one request.
    pub(crate) write_bytes_max: u32,
    /// The capabilities in use.
    pub(crate) flags: Vec<String>,
}

/// Limits; `null` is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Limits {
    pub(crate) bytes_max: Option<u64>,
    pub(crate) inodes_max: Option<u64>,
    /// Most bytes of memory that the daemon may count.
    pub(crate) cache_max: Option<u64>,
}

/// Memory of the daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct MemoryUse {
    /// `memory=`; `null`: no limit.
    pub(crate) budget_bytes: Option<u64>,
    /// Most bytes that may be counted: the budget less `slack_bytes`.
    pub(crate) limit_bytes: Option<u64>,
    /// Bytes that are counted, of all classes.
    pub(crate) counted_bytes: u64,
    /// Resident bytes that are not counted.
    pub(crate) slack_bytes: Option<u64>,
    /// Bytes by class.
    pub(crate) by_class: BTreeMap<String, u64>,
    /// Reclaim so far, by shrinker.
    pub(crate) by_shrinker: BTreeMap<String, Reclaimed>,
    /// Inodes kept by reclaim because they had been used again.
    pub(crate) promoted: u64,
    /// Refaults of inodes: read again soon after their eviction.
    pub(crate) refaults: u64,
    /// Refaults of the content of small files.
    pub(crate) content_refaults: u64,
}

/// Totals of one shrinker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Reclaimed {
    pub(crate) passes: u64,
    /// Objects that passes were to scan.
    pub(crate) scanned: u64,
    /// Objects that were freed.
    pub(crate) freed: u64,
    /// Objects that passes have deferred.
    pub(crate) deferred: u64,
    /// Time spent in passes.
    pub(crate) nanoseconds: u64,
    /// The part of it that the background reclaim thread spent.
    pub(crate) nanoseconds_followed: u64,
}

/// Times of the measured requests of one operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RequestTimes {
    /// The number of measured requests.
    pub(crate) count: u64,
    /// The sum of their times.
    pub(crate) nanoseconds: u64,
    /// Counts by [`holdfast_fuse::Times::bound`]. For metrics only: the JSON would not fit into an
    /// extended attribute.
    #[serde(skip)]
    pub(crate) buckets: Vec<u64>,
}

/// A volume's activity since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct VolumeUse {
    pub(crate) journal_used_bytes: u64,
    pub(crate) journal_capacity_bytes: u64,
    /// Pages that wait for a commit.
    pub(crate) pages_waiting: u64,
    /// Commits that were flushed.
    pub(crate) commits: Work,
    pub(crate) checkpoints: Work,
    /// Waits of operations throttled by writeback.
    pub(crate) writer_waits: Work,
    /// Hits and misses of the cache of tree nodes.
    pub(crate) node_hits: u64,
    pub(crate) node_misses: u64,
    pub(crate) device_reads: Transfers,
    pub(crate) device_writes: Transfers,
    pub(crate) device_flushes: Transfers,
}

/// A file system of several machines, as its database describes it.
#[cfg(feature = "cluster")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ClusterUse {
    pub(crate) uuid: String,
    pub(crate) incarnation: u64,
    pub(crate) bucket: String,
    pub(crate) endpoint: String,
    pub(crate) region: String,
    /// `told` or `timed`.
    pub(crate) coherence: String,
    /// How long answers are valid without a message.
    pub(crate) lease_milliseconds: u64,
    /// Files up to this length stay in the database.
    pub(crate) inline_bytes: u64,
    /// Files up to this length are written into the database.
    pub(crate) staged_bytes_max: u64,
    /// How long objects are kept that nothing maps.
    pub(crate) keep_seconds: u64,
    pub(crate) inodes: u64,
    pub(crate) space_bytes: u64,
    /// Bytes in the database that wait for being moved into objects.
    pub(crate) staged_bytes: u64,
    pub(crate) objects: u64,
    pub(crate) object_bytes: u64,
    /// Bytes of objects that are mapped.
    pub(crate) live_bytes: u64,
    /// Objects that wait for deletion.
    pub(crate) objects_unmapped: u64,
    pub(crate) clients: Vec<ClientUse>,
    /// Round trips of this mount to the database so far, by the function that was called.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) trips: BTreeMap<String, u64>,
}

/// A mount of a file system of several machines.
#[cfg(feature = "cluster")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ClientUse {
    pub(crate) session: u64,
    pub(crate) host: String,
    pub(crate) version: String,
    /// The time since it was last heard of.
    pub(crate) silent_milliseconds: u64,
    /// Messages that it has not taken in.
    pub(crate) messages_waiting: u64,
    /// Is it the one that reports?
    pub(crate) own: bool,
}

/// A count of operations and their time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Work {
    pub(crate) count: u64,
    pub(crate) nanoseconds: u64,
    /// Operations in progress.
    pub(crate) under_way: u64,
}

/// Requests to a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Transfers {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    /// Time that threads waited for them.
    pub(crate) nanoseconds: u64,
}

/// Inodes by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct InodeStates {
    /// In use by an open file, the kernel or a request.
    pub(crate) used: u64,
    /// Cached and not in use.
    pub(crate) unused: u64,
    /// In use without a name: freed with the last use.
    pub(crate) orphans: u64,
    /// Being freed.
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
