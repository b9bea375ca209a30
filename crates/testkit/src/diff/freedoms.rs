//! Where the kernel's tmpfs and this file system may differ, and why: the one list.
//!
//! Everything not named here must be equal.

use crate::diff::op::{Object, Op};
use crate::diff::outcome::Outcome;
use crate::diff::view::View;
use holdfast_types::{Caller, Caps, FileType, OpenFlags, S_ISGID, S_ISUID};

/// A difference that is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freedom {
    /// Sizes and blocks of directories.
    DirectorySize,
    /// Blocks of what is not a regular file.
    BlocksOfOthers,
    /// The numbers of inodes, and the order of names in a directory.
    NumbersAndOrder,
    /// A time that both set within one tick of the clock.
    WithinOneTick,
    /// Access times under relatime, once the two sides' earlier stamps decide differently.
    RelativeAtime,
    /// What opening a fifo answers.
    FifoOpen,
    /// Links to other users' files where `fs.protected_hardlinks` forbids them.
    ProtectedHardlinks,
    /// Opening with O_CREAT what another user has put into a sticky directory.
    ProtectedCreation,
    /// Which of several locks in the way is reported.
    ReportedLock,
    /// The time of modification after truncate(2), by path, to the length a file has.
    SameLength,
    /// SEEK_DATA and SEEK_HOLE in a file that was preallocated.
    Preallocated,
    /// SEEK_DATA and SEEK_HOLE in a file that has the last page there can be.
    LastPage,
    /// Blocks and holes of a file that copy_file_range(2) wrote to.
    CopiedHoles,
    /// SEEK_DATA and SEEK_HOLE in a directory on a mount.
    DirectoryHoles,
}

impl Freedom {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::DirectorySize,
        Self::BlocksOfOthers,
        Self::NumbersAndOrder,
        Self::WithinOneTick,
        Self::RelativeAtime,
        Self::FifoOpen,
        Self::ProtectedHardlinks,
        Self::ProtectedCreation,
        Self::ReportedLock,
        Self::CopiedHoles,
        Self::LastPage,
        Self::Preallocated,
        Self::SameLength,
        Self::DirectoryHoles,
    ];

    /// Why it is allowed.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::DirectorySize => {
                "POSIX leaves st_size and st_blocks of a directory open; tmpfs says 20 bytes a name"
            }
            Self::BlocksOfOthers => {
                "a long symlink target takes a page in tmpfs and none here; no program counts on it"
            }
            Self::NumbersAndOrder => {
                "numbers must map one to one, and each listing must be complete; nothing fixes \
                 which numbers, or which order"
            }
            Self::WithinOneTick => {
                "both stamp from the kernel's tick: a second change within one leaves the same time"
            }
            Self::RelativeAtime => {
                "relatime compares stamps that are equal on one side and a tick apart on the other"
            }
            Self::FifoOpen => {
                "a fifo's ends are the kernel's affair on every mount; the core has only its name"
            }
            Self::ProtectedHardlinks => {
                "a policy of the host's administrator (sysctl), above any file system"
            }
            Self::SameLength => {
                "tmpfs moves it if the file has pages, other file systems do not: POSIX asks for \
                 it only where the length changes"
            }
            Self::Preallocated => {
                "tmpfs calls preallocated pages a hole, and data once they are preallocated \
                 twice; lseek(2) leaves it open (fsx holds the answers against the bytes)"
            }
            Self::LastPage => "tmpfs overflows there and does not find the data that read(2) finds",
            Self::CopiedHoles => {
                "tmpfs copies a hole as pages of zeros, this file system as a hole: the bytes are \
                 the same, the space is not"
            }
            Self::DirectoryHoles => {
                "a FUSE directory's seek is the kernel's own and never asks the daemon"
            }
            Self::ProtectedCreation => {
                "the same kind of policy (fs.protected_regular, fs.protected_fifos), which the \
                 kernel applies to devices and sockets in any case"
            }
            Self::ReportedLock => {
                "F_GETLK reports *a* lock that blocks; which of several, nobody promises"
            }
        }
    }
}

/// Must this operation be skipped, given what the kernel's side has at the paths it names (after
/// following links)? Skipped operations are run on neither side. `opens_local`: the other side is a
/// mount, and its kernel opens files by itself.
pub(crate) fn skips(
    op: &Op,
    who: &Caller,
    found: &[Option<View>],
    opens_local: bool,
) -> Option<Freedom> {
    let is_fifo = found
        .iter()
        .flatten()
        .any(|view| view.kind == FileType::Fifo);
    match op {
        Op::Open { flags, .. } if is_fifo && !flags.contains(OpenFlags::PATH) => {
            Some(Freedom::FifoOpen)
        }
        Op::Open { flags, .. } if flags.contains(OpenFlags::CREATE) => {
            let risky = found.iter().flatten().any(|view| match view.kind {
                FileType::Directory => false,
                FileType::Symlink => flags.contains(OpenFlags::NOFOLLOW),
                FileType::Regular => protected("regular") && view.uid != who.uid,
                _ => true,
            });
            risky.then_some(Freedom::ProtectedCreation)
        }
        // Such a kernel sends for it what it sends for O_TRUNC, which moves the times.
        Op::Truncate {
            object: Object::Path(_) | Object::Link(_),
            len: 0,
        } if opens_local && found.iter().flatten().any(is_empty) => Some(Freedom::SameLength),
        Op::Link { .. } | Op::LinkOpen { .. } if protected("hardlinks") => {
            let risky = found
                .iter()
                .flatten()
                .any(|view| !is_safe_source(who, view));
            risky.then_some(Freedom::ProtectedHardlinks)
        }
        _ => None,
    }
}

fn is_empty(view: &View) -> bool {
    view.kind == FileType::Regular && view.size == 0
}

/// Would `fs.protected_hardlinks` let the caller link this? Access by ACL is not looked at: the
/// file counts as unsafe where the mode alone does not give both rights.
fn is_safe_source(who: &Caller, view: &View) -> bool {
    if who.uid == view.uid || who.caps.contains(Caps::FOWNER) {
        return true;
    }
    let set_group = view.perm & (S_ISGID | 0o010) == S_ISGID | 0o010;
    if view.kind != FileType::Regular || view.perm & S_ISUID != 0 || set_group {
        return false;
    }
    if who.caps.contains(Caps::DAC_OVERRIDE) {
        return true;
    }
    // With an ACL the group bits are its mask: ask for all of them, which no mask reduces.
    view.perm & 0o666 == 0o666
}

/// Is this `fs.protected_*` in force?
fn protected(what: &str) -> bool {
    use std::sync::OnceLock;
    static SETTINGS: OnceLock<[bool; 2]> = OnceLock::new();
    let read = |what| {
        let setting = std::fs::read(format!("/proc/sys/fs/protected_{what}"));
        setting.is_ok_and(|value| value.first() != Some(&b'0'))
    };
    let [hardlinks, regular] = *SETTINGS.get_or_init(|| [read("hardlinks"), read("regular")]);
    if what == "regular" {
        regular
    } else {
        hardlinks
    }
}

/// Reads what must be read before the run's thread leaves the host's root behind.
pub(crate) fn prepare() {
    protected("hardlinks");
}

/// May these outcomes of one operation stand side by side, although they differ?
pub(crate) fn excuses(kernel: &Outcome, library: &Outcome) -> Option<Freedom> {
    match (kernel, library) {
        (Outcome::Lock(Some(_)), Outcome::Lock(Some(_))) => Some(Freedom::ReportedLock),
        _ => None,
    }
}

/// Is the operation one on a symbolic link itself?
pub(crate) const fn spares_last_link(op: &Op) -> bool {
    match op {
        Op::Open { flags, .. } => flags.contains(OpenFlags::NOFOLLOW),
        Op::Link { follow, .. } | Op::Access { follow, .. } => !*follow,
        Op::Stat { object }
        | Op::Chmod { object, .. }
        | Op::Chown { object, .. }
        | Op::Truncate { object, .. }
        | Op::Utimens { object, .. }
        | Op::GetXattr { object, .. }
        | Op::SetXattr { object, .. }
        | Op::ListXattr { object }
        | Op::RemoveXattr { object, .. } => matches!(object, Object::Link(_)),
        Op::StatFs { .. } => false,
        _ => true,
    }
}
