//! Parsing `-o`, as mount(8) passes it.
//!
//! One list has options of the store (`size=`), this command (`transport=`), the core (`noatime`)
//! and the mount (`allow_other`). Some belong to two of them. An option that none of them knows is
//! an error, unless mount(8) asks to be sloppy.

use super::known::{is_mount_helpers, unknown};
use super::list::{escaped, split};
use super::metrics;
use super::size::{memory_bytes, parse_amount};
use crate::engine::names::parse_id;
use crate::message::{Failure, Result, refuse};
use holdfast::{AtimePolicy, MemoryLimits, Named, Options, engine::store::Coherence};
use holdfast_fuse::{
    TransportChoice,
    mount::{AtimeOption, MountOptions},
};
use std::{path::PathBuf, time::Duration};

/// A day, in seconds.
const COMMIT_MAX: u64 = 86_400;

/// Whether a feature is used that is not available everywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Choice {
    /// If it is available and useful.
    #[default]
    Auto,
    /// Always; if it is not available, mounting fails.
    On,
    Off,
}

const CHOICES: [(&str, Choice); 3] = [
    ("auto", Choice::Auto),
    ("on", Choice::On),
    ("off", Choice::Off),
];
const TRANSPORTS: [(&str, TransportChoice); 3] = [
    ("auto", TransportChoice::Auto),
    ("uring", TransportChoice::Uring),
    ("dev", TransportChoice::Dev),
];
/// Does the daemon serve it?
const SERVED: [(&str, bool); 2] = [("local", false), ("served", true)];

/// The parsed options.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    pub(crate) core: Options,
    pub(crate) mount: MountOptions,
    pub(crate) limits: MemoryLimits,
    /// Make a missing image file? And its size in bytes.
    pub(crate) create: bool,
    pub(crate) create_size: Option<u64>,
    /// Longest time until a volume's changes are flushed.
    pub(crate) commit: Option<Duration>,
    /// The coherence of a directory; `None`: the default.
    pub(crate) coherence: Option<Coherence>,
    pub(crate) transport: TransportChoice,
    pub(crate) auto_unmount: bool,
    /// Does the daemon keep locks, and not the kernel?
    pub(crate) serve_locks: bool,
    /// Does the daemon open and close files, and not the kernel? See [`Plan::serves_opens`].
    pub(crate) serve_opens: Option<bool>,
    /// Have files neither extended attributes nor ACLs?
    pub(crate) no_xattrs: bool,
    /// Is a volume mounted as `fuseblk`?
    pub(crate) block: Choice,
    /// Does the kernel read and write files of a directory by itself?
    pub(crate) passthrough: Choice,
    /// Leave the device of a volume unchanged, and replay its journal in memory?
    pub(crate) no_recovery: bool,
    /// Discard free space at unmount?
    pub(crate) discard: bool,
    /// The daemon's log file; `None`: the system's log.
    pub(crate) log: Option<PathBuf>,
    /// How long calls wait for a database and its bucket; `None`: the defaults.
    #[cfg(feature = "cluster")]
    pub(crate) retry: Option<Duration>,
    /// Bytes of a file system of several machines that may wait for being written.
    #[cfg(feature = "cluster")]
    pub(crate) dirty: Option<u64>,
    /// Where blocks of objects are kept, and how many bytes.
    #[cfg(feature = "cluster")]
    pub(crate) cache_dir: Option<PathBuf>,
    #[cfg(feature = "cluster")]
    pub(crate) cache_size: Option<u64>,
    /// Where metrics are served: `HOST:PORT`.
    pub(crate) metrics: Option<String>,
    /// The options as given, without those only for mount(8).
    pub(crate) given: Vec<String>,
}

impl Plan {
    /// Parses the lists in order; later options win. `sloppy` ignores unknown options.
    ///
    /// # Errors
    /// Names the option that is unknown or has a malformed value.
    pub(crate) fn parse<'a>(
        lists: impl IntoIterator<Item = &'a str>,
        sloppy: bool,
    ) -> Result<Self> {
        let memory = memory_bytes();
        let mut plan = Self {
            limits: MemoryLimits {
                bytes: Some(memory / 2),
                inodes: Some(memory / 1024),
            },
            ..Self::default()
        };
        for item in lists.into_iter().flat_map(split) {
            let known = plan.take(&item)?;
            if !known && !sloppy {
                return Err(unknown(&item));
            }
            if known && !is_mount_helpers(&item) {
                plan.given.push(match &plan.log {
                    // The path is absolute: the daemon has another working directory.
                    Some(log) if item.starts_with("log=") => format!("log={}", log.display()),
                    _ => item,
                });
            }
        }
        plan.agree();
        let opens_locally = plan.serve_opens == Some(false);
        // The real ids: also in a set-user-ID program they are those of the user that mounts.
        let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
        plan.core.root_uid.get_or_insert(user.as_raw());
        plan.core.root_gid.get_or_insert(group.as_raw());
        refuse([
            (
                plan.serve_locks && opens_locally,
                "locks end at close(2), which the daemon does not see",
                "locks=served",
                "leave out opens=local",
            ),
            (
                plan.sees_each_read() && opens_locally,
                "files that the kernel opens are read without requests",
                "strictatime",
                "leave out opens=local",
            ),
            (
                plan.no_recovery && !plan.core.read_only,
                "without a replay of its journal a volume cannot be changed",
                "norecovery",
                "mount it read-only: -o ro,norecovery",
            ),
        ])?;
        Ok(plan)
    }

    /// Does the daemon open and close files? It must if it keeps locks, which end at a close, and
    /// if each read after an open moves the access time.
    pub(crate) fn serves_opens(&self) -> bool {
        self.serve_opens
            .unwrap_or(self.serve_locks || self.sees_each_read())
    }

    /// Does each read move an access time, so that the kernel must send a request?
    pub(crate) fn sees_each_read(&self) -> bool {
        self.core.atime == AtimePolicy::Strict && !self.core.read_only
    }

    /// Copies options known to both from the mount to the core. The mount follows mount(8), where
    /// `defaults` undoes earlier options and `atime` is not strict.
    fn agree(&mut self) {
        let (core, mount) = (&mut self.core, &self.mount);
        core.read_only = mount.read_only;
        core.nosuid = mount.nosuid;
        core.nodev = mount.nodev;
        core.noexec = mount.noexec;
        core.sync = mount.sync;
        core.dirsync = mount.dirsync;
        core.nodiratime = mount.nodiratime;
        core.lazytime = mount.lazytime;
        core.atime = match mount.atime {
            AtimeOption::Relatime => AtimePolicy::Relatime,
            AtimeOption::Strict => AtimePolicy::Strict,
            AtimeOption::None => AtimePolicy::None,
        };
    }

    /// Takes one option; `false` if it is unknown.
    fn take(&mut self, item: &str) -> Result<bool> {
        let (name, value) = match item.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (item, None),
        };
        let wrong = |reason: String| Failure::new(reason).about(format!("option {name}"));
        let needed = || value.ok_or_else(|| wrong("it needs a value".into()));
        let amount = || parse_amount(needed()?, None).map_err(wrong);
        let bytes = || parse_amount(needed()?, Some(memory_bytes())).map_err(wrong);
        match name {
            "size" => self.limits.bytes = Some(bytes()?).filter(|size| *size != 0),
            "nr_inodes" => self.limits.inodes = Some(amount()?).filter(|inodes| *inodes != 0),
            "memory" if value == Some("max") => self.core.memory = Some(u64::MAX),
            "memory" => self.core.memory = Some(bytes()?),
            #[cfg(feature = "cluster")]
            "cache" if value.is_some_and(|value| value.starts_with('/')) => {
                self.cache_dir = value.map(PathBuf::from);
            }
            #[cfg(feature = "cluster")]
            "cache_size" => self.cache_size = Some(amount()?),
            #[cfg(feature = "cluster")]
            "dirty" => self.dirty = Some(bytes()?),
            #[cfg(feature = "cluster")]
            "retry" => self.retry = Some(retry(needed()?).map_err(wrong)?),
            // `cache=` used to limit cached and dirty data separately, hence the factor of two.
            "cache" => self.core.memory = Some(bytes()?.saturating_mul(2)),
            "commit" => self.commit = Some(seconds(needed()?).map_err(wrong)?),
            "valid" => self.coherence = Some(validity(needed()?).map_err(wrong)?),
            "told" if value.is_none() => self.coherence = Some(NOTIFIED),
            "exclusive" if value.is_none() => self.coherence = Some(Coherence::Exclusive),
            "create" if value.is_none() => self.create = true,
            "create_size" => self.create_size = Some(amount()?),
            "transport" => self.transport = one_of(needed()?, &TRANSPORTS).map_err(wrong)?,
            "discard" if value.is_none() => self.discard = true,
            "nodiscard" if value.is_none() => self.discard = false,
            "norecovery" | "noload" if value.is_none() => self.no_recovery = true,
            "auto_unmount" if value.is_none() => self.auto_unmount = true,
            "noxattr" if value.is_none() => self.no_xattrs = true,
            "uid" => self.core.root_uid = Some(id(Named::User, needed()?).map_err(wrong)?),
            "gid" => self.core.root_gid = Some(id(Named::Group, needed()?).map_err(wrong)?),
            "metrics" => {
                let address = needed()?;
                metrics::check(address).map_err(wrong)?;
                self.metrics = Some(address.to_owned());
            }
            "log" => self.log = Some(log_file(needed()?).map_err(wrong)?),
            "fuseblk" => self.block = one_of(needed()?, &CHOICES).map_err(wrong)?,
            "passthrough" => self.passthrough = one_of(needed()?, &CHOICES).map_err(wrong)?,
            "locks" => self.serve_locks = one_of(needed()?, &SERVED).map_err(wrong)?,
            "opens" => self.serve_opens = Some(one_of(needed()?, &SERVED).map_err(wrong)?),
            // mount(8) passes the user that mounts, and at a remount the options of the kernel's
            // table.
            "user" | "user_id" | "group_id" | "rootmode" => {}
            _ => return self.pass_on(item, name),
        }
        Ok(true)
    }

    /// Options of the core, of the mount, or of both.
    fn pass_on(&mut self, item: &str, name: &str) -> Result<bool> {
        let wrong = |reason: String| Failure::new(reason).about(format!("option {name}"));
        let core = self.core.parse(item).map_err(|_| {
            let value = item.split_once('=').map_or("", |(_, value)| value);
            let what = match name {
                "mode" => "not octal digits",
                "statahead" => "none of on, off",
                _ => "not a number",
            };
            wrong(format!("{value:?} is {what}"))
        })?;
        self.mount
            .apply(&escaped(item))
            .map_err(|error| wrong(error.reason))?;
        let mount = self.mount.unknown.pop().is_none();
        Ok(core || mount)
    }
}

fn seconds(text: &str) -> std::result::Result<Duration, String> {
    match text.parse() {
        Ok(seconds @ 1..=COMMIT_MAX) => Ok(Duration::from_secs(seconds)),
        _ => Err(format!(
            "{text:?} is not a number of seconds from 1 to {COMMIT_MAX}"
        )),
    }
}

/// `retry=hard`: longer than any mount lasts.
#[cfg(feature = "cluster")]
const HARD: Duration = Duration::from_secs(1 << 31);

/// A time in seconds or minutes, or `hard`.
#[cfg(feature = "cluster")]
fn retry(text: &str) -> std::result::Result<Duration, String> {
    if text == "hard" {
        return Ok(HARD);
    }
    let (number, unit) = match text.strip_suffix('m') {
        Some(minutes) => (minutes, 60),
        None => (text.strip_suffix('s').unwrap_or(text), 1),
    };
    let seconds = number
        .parse::<u64>()
        .ok()
        .and_then(|it| it.checked_mul(unit));
    match seconds {
        Some(seconds @ 1..=COMMIT_MAX) => Ok(Duration::from_secs(seconds)),
        _ => Err(format!(
            "{text:?} is not a time such as 30s or 2m, and not hard"
        )),
    }
}

/// The default coherence: inotify reports changes by others, and other cached data is valid for a
/// second. Inotify does not report stores to a mapping, asynchronous writes, and writes through a
/// link made elsewhere. Open files show those after a second, attributes alone after a minute.
pub(super) const NOTIFIED: Coherence = Coherence::Notified {
    valid: Duration::from_secs(1),
    notified: Duration::from_secs(60),
};

/// The resolution is a millisecond.
fn validity(text: &str) -> std::result::Result<Coherence, String> {
    let most = COMMIT_MAX as f64;
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=most).contains(&seconds) => {
            let millis = (seconds * 1000.0) as u64;
            Ok(Coherence::For(Duration::from_millis(millis)))
        }
        _ => Err(format!("{text:?} is not a number of seconds up to {most}")),
    }
}

fn log_file(path: &str) -> std::result::Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("{path:?}: {error}"))
}

/// A user or a group, by name or number.
fn id(kind: Named, text: &str) -> std::result::Result<u32, String> {
    parse_id(kind, text).map_err(|_| match kind {
        Named::User => format!("there is no user {text:?}"),
        Named::Group => format!("there is no group {text:?}"),
    })
}

/// The words that are values of an option.
pub(crate) fn words(option: &str) -> Vec<&'static str> {
    fn of<T>(words: &[(&'static str, T)]) -> Vec<&'static str> {
        words.iter().map(|(word, _)| *word).collect()
    }
    match option {
        "transport" => of(&TRANSPORTS),
        "fuseblk" | "passthrough" => of(&CHOICES),
        "locks" | "opens" => of(&SERVED),
        "statahead" => vec!["on", "off"],
        "memory" => vec!["max"],
        "retry" => vec!["hard"],
        _ => Vec::new(),
    }
}

/// The value that one of these words stands for.
fn one_of<T: Copy>(text: &str, words: &[(&str, T)]) -> std::result::Result<T, String> {
    let found = words.iter().find(|(word, _)| *word == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        format!("{text:?} is none of {}", words.join(", "))
    })
}

#[cfg(test)]
mod tests;
