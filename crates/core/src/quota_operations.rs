//! Quotas of a file system: switching, limits, usage. See [`crate::quota`].

use holdfast_cache::Pages;

use crate::core::Core;
use crate::inode::Inode;
use crate::inodes::walk::{scan_inodes, walk_inodes};
use crate::quota::{QuotaGrace, QuotaKind, QuotaLimits, QuotaRecord, QuotaUsage};
use crate::types::{Errno, Result};
use crate::{FileSystem, InodeWalk, Visit};

impl FileSystem {
    /// Switches quotas on: the pages and inodes of each user and group are counted from now on.
    /// Existing ones are counted before this returns. With `enforce`, an operation that would
    /// exceed a limit fails with `EDQUOT`, except for callers with `CAP_SYS_RESOURCE`. There are
    /// no limits at first.
    ///
    /// Operations continue meanwhile. Waits for those that are running.
    ///
    /// # Errors
    /// `EBUSY` if quotas are on. `EOPNOTSUPP` over a store that does not keep everything in
    /// memory: inodes that are not in memory would not be counted. `EIO` when revoked.
    pub fn quota_on(&self, enforce: bool) -> Result<()> {
        let core = &self.core;
        let allowed = || {
            core.alive()?;
            core.pinned.then_some(()).ok_or(Errno::EOPNOTSUPP)
        };
        core.quotas.switch_on(enforce, allowed, || {
            let walked = walk_inodes(core, &mut InodeWalk::new(), &mut |node| {
                attach_quotas(core, node.inode());
                Ok(Visit::Continue)
            });
            debug_assert!(walked.is_ok(), "only the visitor fails");
        })
    }

    /// Switches quotas off, if they are on. Limits and usage are dropped.
    ///
    /// Operations continue meanwhile. Waits for those that are running.
    pub fn quota_off(&self) {
        let core = &self.core;
        core.quotas.switch_off(|| {
            // Freeing inodes too: a mark that stays would release the inode from later accounts,
            // which never charged it.
            scan_inodes(core, (0, u64::MAX), &mut |inode| inode.mark().clear());
        });
    }

    /// Are quotas on?
    #[must_use]
    pub fn quota_is_on(&self) -> bool {
        self.core.quotas.is_on()
    }

    /// Sets the limits of one user or group. They apply to later charges; earlier usage stays, even
    /// beyond them.
    ///
    /// # Errors
    /// `ESRCH` if quotas are off; `EIO` when revoked.
    pub fn set_quota(&self, kind: QuotaKind, id: u32, limits: &QuotaLimits) -> Result<()> {
        self.core.alive()?;
        self.core.quotas.set_limits(kind, id, limits)
    }

    /// Sets how long soft limits of all users, or all groups, may be exceeded: seven days by
    /// default. Periods that have begun keep their end.
    ///
    /// # Errors
    /// `ESRCH` if quotas are off; `EIO` when revoked.
    pub fn set_quota_grace(&self, kind: QuotaKind, grace: QuotaGrace) -> Result<()> {
        self.core.alive()?;
        self.core.quotas.set_grace(kind, grace)
    }

    /// The usage of one user or group; 0 while quotas are off. Exact while no operation of it runs.
    #[must_use]
    pub fn quota_usage(&self, kind: QuotaKind, id: u32) -> QuotaUsage {
        self.core.quotas.usage(kind, id)
    }

    /// All users and groups with usage or limits: users first, each kind by number. Empty while
    /// quotas are off.
    #[must_use]
    pub fn quota_report(&self) -> Vec<QuotaRecord> {
        self.core.quotas.report()
    }
}

/// Counts an existing inode.
fn attach_quotas(core: &Core, inode: &Inode) {
    let pages = inode.regular().ok().map(Pages::lock);
    let _attributes = inode.write();
    let held = pages.as_ref().map_or(0, |pages| pages.pages());
    core.quotas.attach(inode.mark(), inode.owner(), held);
}
