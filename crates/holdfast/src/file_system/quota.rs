//! Usage and limits of users and groups.

use std::io;

use super::FileSystem;
use crate::{QuotaGrace, QuotaKind, QuotaLimits, QuotaRecord, QuotaUsage};

impl FileSystem {
    /// Switches quotas on: the usage of each user and group is counted, including existing files.
    /// With `enforce`, an operation beyond a limit fails with `EDQUOT`, except for callers with
    /// `CAP_SYS_RESOURCE`. There are no limits at first.
    ///
    /// Concurrent operations are allowed.
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
    /// `EPERM` without `CAP_SYS_ADMIN`; `EBUSY` if quotas are on; `EIO` when revoked. `EOPNOTSUPP`
    /// over a store that does not keep everything in memory, since inodes elsewhere would not be
    /// counted.
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

    /// Sets the limits of one user or group. They apply to later allocations; existing usage may
    /// exceed them.
    ///
    /// # Errors
    /// `EPERM` without `CAP_SYS_ADMIN`; `ESRCH` if quotas are off; `EIO` when revoked.
    pub fn set_quota(&self, kind: QuotaKind, id: u32, limits: &QuotaLimits) -> io::Result<()> {
        self.as_administrator()?;
        Ok(self.core().set_quota(kind, id, limits)?)
    }

    /// Sets the grace period of soft limits of all users, or all groups; the default is seven days.
    /// Running periods keep their end.
    ///
    /// # Errors
    /// As [`FileSystem::set_quota`].
    pub fn set_quota_grace(&self, kind: QuotaKind, grace: QuotaGrace) -> io::Result<()> {
        self.as_administrator()?;
        Ok(self.core().set_quota_grace(kind, grace)?)
    }

    /// The usage of one user or group; zero while quotas are off. It is exact unless its files
    /// change concurrently.
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

    /// Usage, limits and ends of grace periods of all users and groups with usage or limits: users
    /// first, each kind by number. Empty while quotas are off.
    ///
    /// # Errors
    /// `EPERM` without `CAP_SYS_ADMIN`.
    pub fn quota_report(&self) -> io::Result<Vec<QuotaRecord>> {
        self.as_administrator()?;
        Ok(self.core().quota_report())
    }
}
