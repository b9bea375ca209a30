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
    /// The calling thread: its file system user and group, supplementary groups, effective
    /// capabilities and umask, as `/proc/thread-self/status` has them now.
    ///
    /// Without `/proc`, the effective user and group with umask 022, and with all capabilities if
    /// that user is 0.
    ///
    /// ```
    /// # use holdfast_types::Caller;
    /// assert_eq!(Caller::current().pid, std::process::id());
    /// ```
    #[must_use]
    pub fn current() -> Self {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        Self::of_status(&status).unwrap_or_else(|| {
            let user = Self::user(
                rustix::process::geteuid().as_raw(),
                rustix::process::getegid().as_raw(),
            );
            match user.uid {
                0 => Self {
                    gid: user.gid,
                    ..Self::root()
                },
                _ => user,
            }
        })
    }

    /// The caller that the text of `/proc/PID/status` describes; see proc_pid_status(5).
    fn of_status(status: &str) -> Option<Self> {
        let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        // Real, effective, saved and file system id.
        let id = |name| line(name)?.split_whitespace().nth(3)?.parse().ok();
        let groups = line("Groups:")?.split_whitespace();
        Some(Self {
            groups: groups.map_while(|id| id.parse().ok()).collect(),
            caps: Caps::from_bits_truncate(u64::from_str_radix(line("CapEff:")?.trim(), 16).ok()?),
            umask: u16::from_str_radix(line("Umask:")?.trim(), 8).ok()?,
            ..Self::user(id("Uid:")?, id("Gid:")?)
        })
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_what_the_status_of_its_thread_says() {
        let status = "Name:\tcat\nUmask:\t0027\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n\
                      Groups:\t8 20 \nCapEff:\t000001ff00200003\n";
        let caller = Caller::of_status(status).unwrap();
        assert_eq!((caller.uid, caller.gid, caller.umask), (4, 8, 0o027));
        assert_eq!(&*caller.groups, [8, 20]);
        assert_eq!(
            caller.caps,
            Caps::CHOWN | Caps::DAC_OVERRIDE | Caps::SYS_ADMIN
        );
        assert_eq!(Caller::of_status("Uid:\t1\t2\t3\n"), None);
    }

    #[test]
    fn the_current_caller_owns_what_this_process_makes() {
        use std::os::unix::fs::MetadataExt as _;
        let made = tempfile::tempfile().unwrap().metadata().unwrap();
        let caller = Caller::current();
        assert_eq!((caller.uid, caller.gid), (made.uid(), made.gid()));
    }
}
