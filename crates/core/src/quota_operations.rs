//! Quotas of a file system: switching them, limits, usage. The rules stand in [`crate::quota`].

use holdfast_cache::Pages;

use crate::file_system::Core;
use crate::inode::Inode;
use crate::quota::{QuotaGrace, QuotaKind, QuotaLimits, QuotaRecord, QuotaUsage};
use crate::types::{Errno, Result};
use crate::{FileSystem, InodeWalk, Visit};

impl FileSystem {
    /// Switches quotas on: from now on it is known what each user and group has, in pages and
    /// inodes; what is there already is counted before this returns. With `enforce`, what would
    /// pass a limit fails with `EDQUOT`, except for callers with `CAP_SYS_RESOURCE`. There are no
    /// limits at first.
    ///
    /// Operations go on meanwhile. Waits for those that run now.
    ///
    /// # Errors
    /// `EBUSY` if quotas are on. `EOPNOTSUPP` over a store that does not keep everything in
    /// memory: what is not there would not be counted. `EIO` when revoked.
    pub fn quota_on(&self, enforce: bool) -> Result<()> {
        let core = &self.core;
        let allowed = || {
            core.alive()?;
            core.pinned.then_some(()).ok_or(Errno::EOPNOTSUPP)
        };
        core.quotas.switch_on(enforce, allowed, || {
            let walked = core.walk_inodes(&mut InodeWalk::new(), &mut |node| {
                core.attach(node.inode());
                Ok(Visit::Continue)
            });
            debug_assert!(walked.is_ok(), "only the visitor fails");
        })
    }

    /// Switches quotas off, if they are on. Limits and usage are forgotten.
    ///
    /// Operations go on meanwhile. Waits for those that run now.
    pub fn quota_off(&self) {
        let core = &self.core;
        core.quotas.switch_off(|| {
            // The unsafe iterator: who lets go of a dying inode must not find a mark, either,
            // which would release it from accounts that never counted it.
            core.scan_inodes((0, u64::MAX), &mut |inode| inode.mark().clear());
        });
    }

    /// Are quotas on?
    #[must_use]
    pub fn quota_is_on(&self) -> bool {
        self.core.quotas.is_on()
    }

    /// Sets the limits of one user or group. They hold for what it takes from now on; what it has
    /// already stays, even beyond them.
    ///
    /// # Errors
    /// `ESRCH` if quotas are off; `EIO` when revoked.
    pub fn set_quota(&self, kind: QuotaKind, id: u32, limits: &QuotaLimits) -> Result<()> {
        self.core.alive()?;
        self.core.quotas.set_limits(kind, id, limits)
    }

    /// Sets for how long soft limits of all users, or all groups, may be exceeded: seven days
    /// otherwise. Periods that have begun already end when they would have ended.
    ///
    /// # Errors
    /// `ESRCH` if quotas are off; `EIO` when revoked.
    pub fn set_quota_grace(&self, kind: QuotaKind, grace: QuotaGrace) -> Result<()> {
        self.core.alive()?;
        self.core.quotas.set_grace(kind, grace)
    }

    /// What one user or group has; nothing while quotas are off. Exact while no operation of its
    /// own runs.
    #[must_use]
    pub fn quota_usage(&self, kind: QuotaKind, id: u32) -> QuotaUsage {
        self.core.quotas.usage(kind, id)
    }

    /// What is known of all users and groups that have anything or have limits: users first, each
    /// kind by number. Empty while quotas are off.
    #[must_use]
    pub fn quota_report(&self) -> Vec<QuotaRecord> {
        self.core.quotas.report()
    }
}

impl Core {
    /// Counts an inode that is there already.
    fn attach(&self, inode: &Inode) {
        let pages = inode.regular().ok().map(Pages::lock);
        let _attributes = inode.write();
        let held = pages.as_ref().map_or(0, |pages| pages.pages());
        self.quotas.attach(inode.mark(), inode.owner(), held);
    }

    /// An inode that nobody uses goes for good: its owner has it no more.
    pub(crate) fn detach(&self, inode: &Inode) {
        // Else there is nothing to be looked at.
        if self.quotas.is_on() {
            let pages = inode.regular().map_or(0, Pages::pages);
            self.quotas.detach(inode.mark(), inode.owner(), pages);
        }
    }
}
