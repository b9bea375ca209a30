//! From a request's context to a caller of the core.

use crate::Context;
use holdfast_core::types::{Caller, Caps};
use std::sync::Arc;

thread_local! {
    /// No groups: per thread, because counting references of one for all would be shared.
    static NO_GROUPS: Arc<[u32]> = Arc::new([]);
}

/// The caller of a request that passed the kernel's permission checks.
pub(super) fn caller(cx: &Context<'_>) -> Caller {
    let mut groups = cx.extensions.groups().peekable();
    let groups = if groups.peek().is_some() {
        groups.collect()
    } else {
        NO_GROUPS.with(Arc::clone)
    };
    Caller {
        uid: cx.uid,
        gid: cx.gid,
        groups,
        caps: powers(cx.uid),
        umask: cx.umask,
        pid: cx.pid,
        checked: true,
    }
}

/// Capabilities that the kernel has not decided on: all, but `CAP_SYS_RESOURCE` only for root.
/// Where ids are mapped the kernel sends no user id, and limits are left to the kernel.
fn powers(uid: u32) -> Caps {
    if uid == 0 || uid == u32::MAX {
        Caps::all()
    } else {
        Caps::all().difference(Caps::SYS_RESOURCE)
    }
}

/// The same, without the power of keeping set-id bits.
pub(super) fn caller_without_fsetid(cx: &Context<'_>) -> Caller {
    Caller {
        caps: powers(cx.uid).difference(Caps::FSETID),
        checked: false,
        ..caller(cx)
    }
}

/// The caller of a request without permission checks, from its process: its groups, and its
/// capabilities if its user is root here. Capabilities of another user may belong to its own user
/// namespace. A process that cannot be read has uid `u32::MAX` and no capabilities. The header's
/// user is not used, because with mapped ids the kernel does not send it.
pub(super) fn unchecked_caller(cx: &Context<'_>) -> Caller {
    let status = status(cx.pid).unwrap_or_default();
    let uid = file_system_uid(&status).unwrap_or(u32::MAX);
    let mut groups = groups(&status);
    Caller {
        uid,
        gid: groups.next().unwrap_or(u32::MAX),
        groups: groups.collect(),
        caps: if uid == 0 {
            effective(&status)
        } else {
            Caps::empty()
        },
        checked: false,
        ..caller(cx)
    }
}

/// Does this kernel run a security module (SELinux) that keeps labels in extended attributes?
pub(super) fn uses_labels() -> bool {
    // Where that cannot be told, it might.
    std::fs::read_to_string("/proc/filesystems").map_or(true, |known| known.contains("selinuxfs"))
}

/// Has this process these capabilities? One that cannot be looked at has not.
pub(super) fn has_caps(pid: u32, caps: Caps) -> bool {
    status(pid).is_some_and(|status| effective(&status).contains(caps))
}

/// The file system user of this process; `None` if it cannot be read.
pub(super) fn uid(pid: u32) -> Option<u32> {
    file_system_uid(&status(pid)?)
}

/// May this process keep the set-group-id bit of a file of group `gid`? One that cannot be looked
/// at may not.
pub(super) fn keeps_set_gid(pid: u32, gid: u32) -> bool {
    status(pid).is_some_and(|status| {
        effective(&status).contains(Caps::FSETID) || groups(&status).any(|group| group == gid)
    })
}

/// The `status` file of a process that can be looked at. Its name need not be text.
fn status(pid: u32) -> Option<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/status")).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The file system user in a process's `status` file.
fn file_system_uid(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_ascii_whitespace().nth(3)?.parse().ok()
}

/// The file system group and the supplementary groups in a process's `status` file.
fn groups(status: &str) -> impl Iterator<Item = u32> {
    let words = |label| {
        let line = status.lines().find_map(|line| line.strip_prefix(label));
        line.unwrap_or_default().split_ascii_whitespace()
    };
    words("Gid:")
        .skip(3)
        .chain(words("Groups:"))
        .filter_map(|word| word.parse().ok())
}

/// The effective capabilities in a process's `status` file; none if it is not understood.
fn effective(status: &str) -> Caps {
    let caps = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = caps.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    bits.map_or(Caps::empty(), Caps::from_bits_truncate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Extensions;

    #[test]
    fn capabilities_are_read_from_a_status_file() {
        let status = "Name:\tcat\nCapPrm:\t0000000000000000\nCapEff:\t000001ffffffffff\n";
        assert!(effective(status).contains(Caps::SYS_ADMIN));
        assert!(effective("CapEff:\t0000000000000000\n").is_empty());
        assert!(effective("CapEff:\tlots\n").is_empty() && effective("").is_empty());
        assert!(!has_caps(u32::MAX, Caps::SYS_ADMIN));
    }

    #[test]
    fn groups_are_read_from_a_status_file() {
        let status = "Uid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t9 10 \n";
        assert_eq!(groups(status).collect::<Vec<_>>(), [8, 9, 10]);
        assert_eq!(groups("Gid:\t5\n").count(), 0);
    }

    #[test]
    fn the_user_is_read_from_a_status_file() {
        let status = "Name:\tcat\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n";
        assert_eq!(file_system_uid(status), Some(4));
        assert_eq!(file_system_uid("Uid:\t1\t2\n"), None);
        assert_eq!(uid(u32::MAX), None);
    }

    #[test]
    fn a_caller_who_may_not_keep_set_id_bits_may_do_everything_else() {
        let cx = Context {
            uid: 5,
            gid: 6,
            pid: 7,
            umask: 0o27,
            extensions: Extensions::default(),
        };
        assert!(caller(&cx).has(Caps::FSETID) && caller(&cx).checked);
        let limited = caller_without_fsetid(&cx);
        assert!(!limited.has(Caps::FSETID) && limited.has(Caps::FOWNER));
        assert_eq!((limited.uid, limited.umask), (5, 0o27));
    }
}
