//! The callers of a run and their credentials.

use holdfast_types::{Caller, Caps};

/// The callers of a run: the superuser, users with shared groups, and users with single
/// capabilities, each with its own umask. A caller is a *process* too: it has its own open
/// files, and its record locks are its own.
#[must_use]
pub fn cast() -> Vec<Caller> {
    let file_caps = Caps::CHOWN
        | Caps::DAC_OVERRIDE
        | Caps::DAC_READ_SEARCH
        | Caps::FOWNER
        | Caps::FSETID
        | Caps::MKNOD;
    let root = || Caller::root();
    vec![
        root(),
        Caller::user(1000, 1000).with_groups(&[1000, 2000]),
        Caller::user(1001, 1001)
            .with_groups(&[2000, 3000])
            .with_umask(0o002),
        Caller::user(1002, 1000)
            .with_groups(&[3000])
            .with_umask(0o077),
        // Root that has put on another user's file system id, as an NFS server does: the
        // kernel takes the file capabilities away and leaves the others.
        Caller {
            uid: 1000,
            caps: Caps::all() - file_caps,
            ..root()
        },
        Caller {
            caps: Caps::CHOWN | Caps::FOWNER,
            ..Caller::user(1001, 1000)
        }
        .with_umask(0),
        Caller {
            caps: Caps::DAC_READ_SEARCH | Caps::FSETID,
            ..Caller::user(1003, 3000)
        },
    ]
}

/// User and group ids that operations pass: those of the cast, and one that no caller has.
pub(crate) const IDS: [u32; 7] = [0, 1000, 1001, 1002, 2000, 3000, 65_534];
