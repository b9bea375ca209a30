use bitflags::bitflags;
use std::sync::Arc;

bitflags! {
    /// Capabilities (capabilities(7)) that a file system checks.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Caps: u64 {
        /// Change owners at will.
        const CHOWN = 1 << 0;
        /// Pass by read, write and (where any x bit is set) execute permission.
        const DAC_OVERRIDE = 1 << 1;
        /// Read files and search directories at will.
        const DAC_READ_SEARCH = 1 << 2;
        /// Act as the owner of any file.
        const FOWNER = 1 << 3;
        /// Keep set-id bits when they would be cleared.
        const FSETID = 1 << 4;
        /// Set and clear the flags *immutable* and *append* of a file.
        const LINUX_IMMUTABLE = 1 << 9;
        /// Set privileged flags, trusted attributes.
        const SYS_ADMIN = 1 << 21;
        /// Exceed limits.
        const SYS_RESOURCE = 1 << 24;
        /// Make device nodes.
        const MKNOD = 1 << 27;
        /// Set file capabilities.
        const SETFCAP = 1 << 31;
    }
}

/// The process for which an operation runs.
///
/// FUSE with `default_permissions` has the kernel check permissions, and sets [`Caller::checked`].
/// The core then checks none again, but still takes owner, group and umask from here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// File system user id.
    pub uid: u32,
    /// File system group id.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Arc<[u32]>,
    /// Effective capabilities.
    pub caps: Caps,
    /// Bits cleared from the mode of new inodes.
    pub umask: u16,
    /// Process id, as record locks report it.
    pub pid: u32,
    /// Has the front end's kernel checked permissions already?
    pub checked: bool,
}

impl Caller {
    /// The superuser: uid 0, every capability, umask 022.
    #[must_use]
    pub fn root() -> Self {
        Self {
            caps: Caps::all(),
            ..Self::user(0, 0)
        }
    }

    /// A user without capabilities (even for uid 0), umask 022, no supplementary groups.
    #[must_use]
    pub fn user(uid: u32, gid: u32) -> Self {
        Self {
            uid,
            gid,
            groups: Arc::new([]),
            caps: Caps::empty(),
            umask: 0o022,
            pid: std::process::id(),
            checked: false,
        }
    }

    /// The same caller with these supplementary groups.
    #[must_use]
    pub fn with_groups(mut self, groups: &[u32]) -> Self {
        self.groups = groups.into();
        self
    }

    /// The same caller with this umask.
    #[must_use]
    pub fn with_umask(mut self, umask: u16) -> Self {
        self.umask = umask & 0o777;
        self
    }

    /// Is `gid` the caller's group or one of the supplementary ones?
    #[must_use]
    pub fn in_group(&self, gid: u32) -> bool {
        self.gid == gid || self.groups.contains(&gid)
    }

    /// Has the caller this capability (a checked caller has them all)?
    #[must_use]
    pub fn has(&self, caps: Caps) -> bool {
        self.checked || self.caps.contains(caps)
    }
}
