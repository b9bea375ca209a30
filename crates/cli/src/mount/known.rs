//! The names of all options of a mount, and what is said of other names.

use super::nearest::nearest;
use crate::message::Failure;

/// All options, for suggestions. Those that end in `=` take a value.
pub(crate) const KNOWN: &[&str] = &[
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
    #[cfg(feature = "cluster")]
    "retry=",
    #[cfg(feature = "cluster")]
    "dirty=",
    #[cfg(feature = "cluster")]
    "cache_size=",
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

/// Is it an option only for mount(8) and its helpers?
pub(super) fn is_mount_helpers(item: &str) -> bool {
    let name = item.split('=').next().unwrap_or(item);
    item.starts_with("x-")
        || item.starts_with("X-")
        || ["comment", "user", "users", "nouser", "owner", "group"].contains(&name)
        || ["auto", "noauto", "nofail", "_netdev", "defaults", "remount"].contains(&name)
        || ["user_id", "group_id", "rootmode"].contains(&name)
}

/// Options of other file systems that have no effect here, and the reason.
pub(super) const WITHOUT_EFFECT: [(&str, &str, &str); 3] = [
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

pub(super) fn unknown(item: &str) -> Failure {
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
