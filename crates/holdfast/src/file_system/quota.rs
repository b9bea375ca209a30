//! What users and groups have, and how much they may have.

use std::io;

use super::FileSystem;
use crate::{QuotaGrace, QuotaKind, QuotaLimits, QuotaRecord, QuotaUsage};

impl FileSystem {
    /// Switches quotas on: from now on it is known what each user and group has, what is there
    /// already included. With `enforce`, what would pass a limit fails with `EDQUOT`, except for
    /// callers with `CAP_SYS_RESOURCE`. There are no limits at first.
    ///
    /// Others may go on working meanwhile.
    ///
    /// ```
    /// use holdfast::{Caller, FileSystem, Permissions, QuotaKind, QuotaLimit, QuotaLimits};
    /// use std::io::ErrorKind;
    ///
    /// let fs = FileSystem::memory();
    /// fs.create_dir("/home")?;
    /// fs.set_permissions("/home", Permissions::from_mode(0o777))?;
    /// fs.quota_on(true)?;
    ///
    /// let mut limits = QuotaLimits::default();
    /// limits.bytes.hard = Some(2 * 4096);
    /// limits.inodes.hard = Some(1);
    /// fs.set_quota(QuotaKind::User, 1815, &limits)?;
    ///
    /// let ada = fs.as_user(Caller::user(1815, 1815));
    /// ada.write("/home/notes", [0; 8192])?;
    /// for error in [
    ///     ada.write("/home/notes", [0; 8193]).unwrap_err(),
    ///     ada.create_dir("/home/engines").unwrap_err(),
    /// ] {
    ///     assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
    /// }
    /// let usage = ada.quota_usage(QuotaKind::User, 1815)?;
    /// assert_eq!((usage.bytes, usage.inodes), (8192, 1));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// `EPERM` without `CAP_SYS_ADMIN`; `EBUSY` if quotas are on; `EOPNOTSUPP` over a store that
    /// does not keep everything in memory: what is not there would not be counted; `EIO` when
    /// revoked.
    pub fn quota_on(&self, enforce: bool) -> io::Result<()> {
        self.as_administrator()?;
        Ok(self.core().quota_on(enforce)?)
    }

    /// Switches quotas off, if they are on. Limits and usage are forgotten.
    ///
    /// # Errors
    /// `EPERM` without `CAP_SYS_ADMIN`.
    pub fn quota_off(&self) -> io::Result<()> {
        self.as_administrator()?;
        self.core().quota_off();
        Ok(())
    }

    /// Are quotas on?
    #[must_use]
    pub fn quota_is_on(&self) -> bool {
        self.core().quota_is_on()
    }

    /// Sets the limits of one user or group. They hold for what it takes from now on; what it has
    /// already stays, even beyond them.
    ///
    /// # Errors
    /// `EPERM` without `CAP_SYS_ADMIN`; `ESRCH` if quotas are off; `EIO` when revoked.
    pub fn set_quota(&self, kind: QuotaKind, id: u32, limits: &QuotaLimits) -> io::Result<()> {
        self.as_administrator()?;
        Ok(self.core().set_quota(kind, id, limits)?)
    }

    /// Sets for how long soft limits of all users, or all groups, may be exceeded: seven days
    /// otherwise. Periods that have begun already end when they would have ended.
    ///
    /// # Errors
    /// As [`FileSystem::set_quota`].
    pub fn set_quota_grace(&self, kind: QuotaKind, grace: QuotaGrace) -> io::Result<()> {
        self.as_administrator()?;
        Ok(self.core().set_quota_grace(kind, grace)?)
    }

    /// What one user or group has; nothing while quotas are off. Exact while nobody changes its
    /// files.
    ///
    /// # Errors
    /// `EPERM` for another user, or a group of others, without `CAP_SYS_ADMIN`.
    pub fn quota_usage(&self, kind: QuotaKind, id: u32) -> io::Result<QuotaUsage> {
        let mine = match kind {
            QuotaKind::User => self.caller().uid == id,
            QuotaKind::Group => self.caller().in_group(id),
        };
        if !mine {
            self.as_administrator()?;
        }
        Ok(self.core().quota_usage(kind, id))
    }

    /// Usage, limits and the ends of grace periods of all users and groups that have anything or
    /// have limits: users first, each kind by number. Empty while quotas are off.
    ///
    /// # Errors
    /// `EPERM` without `CAP_SYS_ADMIN`.
    pub fn quota_report(&self) -> io::Result<Vec<QuotaRecord>> {
        self.as_administrator()?;
        Ok(self.core().quota_report())
    }
}
