//! Parsing `-o`, as mount(8) passes it.
//!
//! One list has options of the store (`size=`), this command (`transport=`), the core (`noatime`)
//! and the mount (`allow_other`). Some belong to two of them. An option that none of them knows is
//! an error, unless mount(8) asks to be sloppy.

use super::metrics;
use super::nearest::nearest;
use super::size::{memory_bytes, parse_amount};
use crate::engine::names::parse_id;
use crate::message::{Failure, Result, refuse};
use holdfast::{AtimePolicy, MemoryLimits, Named, Options, core::store::Coherence};
use holdfast_fuse::{
    TransportChoice,
    mount::{AtimeOption, MountOptions},
};
use std::{path::PathBuf, time::Duration};

/// A day, in seconds.
const COMMIT_MAX: u64 = 86_400;

/// All options, for suggestions. Those that end in `=` take a value.
pub(crate) const KNOWN: [&str; 75] = [
    "create",
    "create_size=",
    "size=",
    "nr_inodes=",
    "memory=",
    "cache=",
    "log=",
    "metrics=",
    "commit=",
    "valid=",
    "told",
    "exclusive",
    "passthrough=",
    "mode=",
    "uid=",
    "gid=",
    "transport=",
    "locks=",
    "opens=",
    "noxattr",
    "statahead=",
    "fuseblk=",
    "norecovery",
    "noload",
    "auto_unmount",
    "remount",
    "ro",
    "rw",
    "suid",
    "nosuid",
    "dev",
    "nodev",
    "exec",
    "noexec",
    "sync",
    "async",
    "dirsync",
    "symfollow",
    "nosymfollow",
    "atime",
    "noatime",
    "relatime",
    "norelatime",
    "strictatime",
    "diratime",
    "nodiratime",
    "lazytime",
    "nolazytime",
    "allow_other",
    "noallow_other",
    "default_permissions",
    "nonempty",
    "fsname=",
    "subtype=",
    "max_read=",
    "blksize=",
    "defaults",
    "auto",
    "noauto",
    "user",
    "nouser",
    "users",
    "owner",
    "group",
    "_netdev",
    "nofail",
    "comment=",
    "nomand",
    "loud",
    "silent",
    "noiversion",
    "nostrictatime",
    "discard",
    "nodiscard",
    "user=",
];

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

/// The value that one of these words stands for.
fn one_of<T: Copy>(text: &str, words: &[(&str, T)]) -> std::result::Result<T, String> {
    let found = words.iter().find(|(word, _)| *word == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        format!("{text:?} is none of {}", words.join(", "))
    })
}

/// Is it an option only for mount(8) and its helpers?
fn is_mount_helpers(item: &str) -> bool {
    let name = item.split('=').next().unwrap_or(item);
    item.starts_with("x-")
        || item.starts_with("X-")
        || ["comment", "user", "users", "nouser", "owner", "group"].contains(&name)
        || ["auto", "noauto", "nofail", "_netdev", "defaults", "remount"].contains(&name)
        || ["user_id", "group_id", "rootmode"].contains(&name)
}

/// Options of other file systems that have no effect here, and the reason.
const WITHOUT_EFFECT: [(&str, &str, &str); 3] = [
    (
        "allow_root",
        "the kernel lets in all users or only the one that mounts",
        "allow_other, or leave it out",
    ),
    (
        "mand",
        "the kernel has no mandatory locks any more",
        "leave it out",
    ),
    (
        "iversion",
        "the kernel counts no versions of inodes for FUSE",
        "leave it out",
    ),
];

fn unknown(item: &str) -> Failure {
    let name = item.split('=').next().unwrap_or(item);
    if let Some((name, reason, hint)) = WITHOUT_EFFECT.iter().find(|(name, ..)| *name == item) {
        return Failure::new(*reason)
            .about(format!("option {name}"))
            .hint(*hint);
    }
    let failure = Failure::new("there is no such option").about(format!("option {name}"));
    let names = KNOWN.iter().map(|known| known.trim_end_matches('='));
    failure.hint(match nearest(name, names) {
        Some(known) if known == name && KNOWN.contains(&known) => {
            format!("it takes no value: {known}")
        }
        Some(known) if known == name => format!("it needs a value: {known}=…"),
        Some(near) => format!("did you mean {near}?"),
        None => "`holdfast mount --help` lists the options".into(),
    })
}

/// Splits a list at its commas; `\,` is a comma within a value, `\\` a backslash.
pub(crate) fn split(list: &str) -> Vec<String> {
    let mut items = vec![String::new()];
    let mut letters = list.chars();
    while let Some(letter) = letters.next() {
        let last = items.len() - 1;
        match letter {
            ',' => items.push(String::new()),
            '\\' => items[last].push(letters.next().unwrap_or('\\')),
            other => items[last].push(other),
        }
    }
    items.retain(|item| !item.is_empty());
    items
}

/// An item, escaped for a list.
pub(crate) fn escaped(item: &str) -> String {
    item.replace('\\', "\\\\").replace(',', "\\,")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(list: &str) -> Plan {
        Plan::parse([list], false).unwrap()
    }

    fn refusal(list: &str) -> String {
        Plan::parse([list], false).unwrap_err().to_string()
    }

    #[test]
    fn every_option_of_the_list_is_understood_and_every_value_checked() {
        for option in KNOWN {
            let value = match option {
                "transport=" => "dev",
                "fuseblk=" | "statahead=" | "passthrough=" => "off",
                "locks=" | "opens=" => "served",
                "subtype=" | "fsname=" | "comment=" | "user=" | "log=" => "x",
                "mode=" => "755",
                "metrics=" => "127.0.0.1:0",
                _ if option.ends_with('=') => "4096",
                "norecovery" | "noload" => ",ro",
                _ => "",
            };
            plan(&format!("{option}{value}"));
            if option.ends_with('=') && value != "x" {
                let refused = refusal(&format!("{option}%"));
                assert!(refused.contains(option.trim_end_matches('=')), "{refused}");
            }
        }
    }

    #[test]
    fn options_reach_their_owners_and_later_ones_win() {
        let lists = [
            "ro,noatime,size=1g,nr_inodes=2k",
            "rw,nosuid,mode=1777,transport=dev",
        ];
        let plan = Plan::parse(lists, false).unwrap();
        assert!(!plan.core.read_only && !plan.mount.read_only);
        assert!(plan.core.nosuid && plan.mount.nosuid);
        assert_eq!(plan.core.atime, AtimePolicy::None);
        assert_eq!(plan.core.root_perm, 0o1777);
        assert_eq!(
            plan.limits,
            MemoryLimits {
                bytes: Some(1 << 30),
                inodes: Some(2048)
            }
        );
        assert_eq!(plan.transport, TransportChoice::Dev);
        assert_eq!(plan.given.len(), 8);
    }

    #[test]
    fn defaults_take_back_what_stands_before_them() {
        let plan = plan("ro,nosuid,defaults,atime");
        assert!(!plan.core.read_only && !plan.core.nosuid);
        assert_eq!(plan.core.atime, AtimePolicy::Relatime);
    }

    #[test]
    fn zero_is_no_limit_and_half_of_memory_is_the_default() {
        let without = plan("size=0,nr_inodes=0");
        assert_eq!(without.limits, MemoryLimits::default());
        assert_eq!(plan("").limits.bytes, Some(memory_bytes() / 2));
        assert_eq!(plan("size=50%").limits.bytes, plan("").limits.bytes);
    }

    #[test]
    fn memory_is_one_number_and_cache_was_half_of_it() {
        assert_eq!(plan("").core.memory, None);
        assert_eq!(plan("memory=256m").core.memory, Some(256 << 20));
        assert_eq!(plan("memory=25%").core.memory, Some(memory_bytes() / 4));
        assert_eq!(plan("memory=max").core.memory, Some(u64::MAX));
        assert_eq!(plan("cache=100m").core.memory, Some(200 << 20));
        assert!(refusal("memory=most").contains("\"most\" is not a number of bytes"));
    }

    #[test]
    fn inodes_come_ahead_unless_that_is_switched_off() {
        assert!(plan("").core.statahead);
        assert!(!plan("statahead=off").core.statahead);
        assert!(plan("statahead=off,statahead=on").core.statahead);
    }

    #[test]
    fn an_unknown_option_is_named_with_the_one_nearest_to_it() {
        assert!(refusal("rw,notime").contains("option notime"));
        assert!(refusal("rw,notime").contains("did you mean noatime?"));
        assert!(refusal("ro=yes").contains("it takes no value: ro"));
        assert!(refusal("encryption=aes").contains("--help"));
        assert!(refusal("size").contains("needs a value"));
        for (name, reason, _) in WITHOUT_EFFECT {
            assert!(refusal(name).contains(reason), "{name}");
        }
        assert!(refusal("auto_unmount=1").contains("takes no value"));
        assert!(Plan::parse(["rw,encryption=aes"], true).unwrap().given == ["rw"]);
    }

    #[test]
    fn values_that_make_no_sense_are_told_with_their_option() {
        for (list, part) in [
            ("size=lots", "\"lots\" is not a number of bytes"),
            ("mode=9", "\"9\" is not octal"),
            ("uid=no-such-user", "there is no user \"no-such-user\""),
            ("gid=", "there is no group"),
            ("transport=pigeon", "none of auto, uring, dev"),
            ("locks=never", "none of local, served"),
            ("statahead=no", "none of on, off"),
            ("statahead", "none of on, off"),
            ("commit=0", "seconds from 1"),
            ("commit=1.5", "seconds from 1"),
            ("metrics=9464", "is no HOST:PORT"),
            ("opens=local,locks=served", "leave out opens=local"),
            ("opens=local,strictatime", "leave out opens=local"),
            ("max_read=1", "from 4096"),
        ] {
            let refused = refusal(list);
            assert!(refused.contains(part), "{refused}");
            assert!(
                refused.contains(list.split('=').next().unwrap()),
                "{refused}"
            );
        }
    }

    #[test]
    fn validity_is_a_time_and_the_last_word_counts() {
        let millis = |millis| Some(Coherence::For(Duration::from_millis(millis)));
        assert_eq!(plan("").coherence, None);
        assert_eq!(plan("valid=0.5").coherence, millis(500));
        assert_eq!(plan("exclusive,valid=0").coherence, millis(0));
        assert_eq!(
            plan("valid=3,exclusive").coherence,
            Some(Coherence::Exclusive)
        );
        for wrong in ["valid=-1", "valid=nan", "valid=86401", "valid=1s"] {
            assert!(refusal(wrong).contains("number of seconds"), "{wrong}");
        }
    }

    #[test]
    fn the_kernel_opens_files_unless_the_daemon_keeps_locks() {
        assert!(!plan("").serves_opens());
        assert!(plan("locks=served").serves_opens());
        assert!(plan("opens=served").serves_opens() && !plan("opens=served").serve_locks);
        assert!(plan("strictatime").serves_opens());
        assert!(!plan("strictatime,ro").serves_opens());
        assert!(!plan("strictatime,relatime,opens=local").serves_opens());
    }

    #[test]
    fn a_comma_can_be_part_of_a_value() {
        let plan = plan(r"fsname=a\,b\\c,x-systemd.automount,comment=x");
        assert_eq!(plan.mount.fsname, r"a,b\c");
        assert_eq!(plan.given, [r"fsname=a,b\c"]);
        assert_eq!(escaped(&plan.given[0]), r"fsname=a\,b\\c");
    }
}
