//! Locks on the whole file, as the standard library's (flock(2)), and on ranges of bytes (open file
//! description locks of fcntl(2)). Both belong to the open file: clones share them, and dropping
//! the last one releases them.

use std::fs::TryLockError;
use std::io;
use std::ops::{Bound, RangeBounds};

use holdfast_core::LockSpace;

use super::File;
use crate::types::{Errno, Result};
use crate::view::View;
use crate::{Cancel, HeldLock, LockKind, LockRange};

impl File {
    /// Locks the file exclusively; waits until that is possible. A shared lock of this file is
    /// converted, which is not atomic.
    ///
    /// # Errors
    /// `EBADF` for a handle to the name only.
    pub fn lock(&self) -> io::Result<()> {
        Ok(self.flock(Some(LockKind::Write), true)?)
    }

    /// Locks the file together with other shared locks; waits until that is possible.
    ///
    /// # Errors
    /// As [`File::lock`].
    pub fn lock_shared(&self) -> io::Result<()> {
        Ok(self.flock(Some(LockKind::Read), true)?)
    }

    /// Locks the file exclusively, if that is possible now.
    ///
    /// ```
    /// use holdfast::FileSystem;
    /// use std::fs::TryLockError;
    ///
    /// let fs = FileSystem::memory();
    /// let (mine, yours) = (fs.create("/lock")?, fs.open("/lock")?);
    /// mine.lock()?;
    /// assert!(matches!(yours.try_lock(), Err(TryLockError::WouldBlock)));
    /// drop(mine);
    /// yours.try_lock()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// `WouldBlock` if another open file has a lock; otherwise as [`File::lock`].
    pub fn try_lock(&self) -> Result<(), TryLockError> {
        self.flock(Some(LockKind::Write), false).map_err(refusal)
    }

    /// Locks the file together with other shared locks, if that is possible now.
    ///
    /// # Errors
    /// `WouldBlock` if another open file has an exclusive lock; otherwise as [`File::lock`].
    pub fn try_lock_shared(&self) -> Result<(), TryLockError> {
        self.flock(Some(LockKind::Read), false).map_err(refusal)
    }

    /// Releases the lock, if there is one.
    ///
    /// # Errors
    /// As [`File::lock`].
    pub fn unlock(&self) -> io::Result<()> {
        Ok(self.flock(None, false)?)
    }

    /// Locks a range of bytes; waits until that is possible. The range may extend beyond the end of
    /// the file; one without an end locks all future bytes. It replaces earlier locks of this file
    /// in the range.
    ///
    /// ```
    /// use holdfast::{FileSystem, LockKind, OpenOptions};
    ///
    /// let fs = FileSystem::memory();
    /// fs.write("/table", [0; 100])?;
    /// let both = || fs.open_with("/table", OpenOptions::new().read(true).write(true));
    /// let (mine, yours) = (both()?, both()?);
    /// mine.lock_range(0..50, LockKind::Write)?;
    /// yours.lock_range(50.., LockKind::Write)?;
    /// assert!(yours.try_lock_range(..10, LockKind::Read).is_err());
    /// let holder = yours.range_lock_holder(.., LockKind::Read)?.expect("mine has a lock");
    /// assert_eq!((holder.range.start, holder.range.end), (0, 49));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// `EBADF` for a read lock of a file not open for reading, or a write lock of one not open
    /// for writing; `EINVAL` for an empty range.
    pub fn lock_range(&self, range: impl RangeBounds<u64>, kind: LockKind) -> io::Result<()> {
        Ok(self.set_range(&range, Some(kind), Some(&Cancel::new()))?)
    }

    /// As [`File::lock_range`]; another thread can cancel the wait.
    ///
    /// # Errors
    /// `EINTR` when cancelled; otherwise as [`File::lock_range`].
    pub fn lock_range_cancellable(
        &self,
        range: impl RangeBounds<u64>,
        kind: LockKind,
        cancel: &Cancel,
    ) -> io::Result<()> {
        Ok(self.set_range(&range, Some(kind), Some(cancel))?)
    }

    /// Locks a range of bytes, if that is possible now.
    ///
    /// # Errors
    /// `WouldBlock` if another open file has a conflicting lock; otherwise as [`File::lock_range`].
    pub fn try_lock_range(
        &self,
        range: impl RangeBounds<u64>,
        kind: LockKind,
    ) -> Result<(), TryLockError> {
        self.set_range(&range, Some(kind), None).map_err(refusal)
    }

    /// Releases the locks of this file in a range.
    ///
    /// # Errors
    /// `EINVAL` for an empty range.
    pub fn unlock_range(&self, range: impl RangeBounds<u64>) -> io::Result<()> {
        Ok(self.set_range(&range, None, None)?)
    }

    /// The first lock that conflicts with this one; `None` if there is none.
    ///
    /// # Errors
    /// `EINVAL` for an empty range.
    pub fn range_lock_holder(
        &self,
        range: impl RangeBounds<u64>,
        kind: LockKind,
    ) -> io::Result<Option<HeldLock>> {
        let (core, file) = (&self.view().core, self.core_file());
        let range = bytes(&range)?;
        Ok(core.get_lock(file.node(), file.owner(), LockSpace::Ofd, kind, range)?)
    }

    fn flock(&self, kind: Option<LockKind>, wait: bool) -> Result<()> {
        self.opened_node()?;
        let cancel = wait.then(Cancel::new);
        self.set_lock(LockSpace::Flock, kind, LockRange::WHOLE, cancel.as_ref())
    }

    fn set_range(
        &self,
        range: &impl RangeBounds<u64>,
        kind: Option<LockKind>,
        wait: Option<&Cancel>,
    ) -> Result<()> {
        let flags = self.core_file().flags();
        let allowed = match kind {
            Some(LockKind::Read) => flags.readable(),
            Some(LockKind::Write) => flags.writable(),
            None => self.opened_node().is_ok(),
        };
        if !allowed {
            return Err(Errno::EBADF);
        }
        self.set_lock(LockSpace::Ofd, kind, bytes(range)?, wait)
    }

    fn set_lock(
        &self,
        space: LockSpace,
        kind: Option<LockKind>,
        range: LockRange,
        wait: Option<&Cancel>,
    ) -> Result<()> {
        let View { core, who } = self.view();
        let (node, owner) = (self.node(), self.core_file().owner());
        core.set_lock(node, owner, space, kind, range, who.pid, wait)
    }
}

/// The error of the standard library's `try_lock`.
fn refusal(error: Errno) -> TryLockError {
    match error {
        Errno::EAGAIN => TryLockError::WouldBlock,
        error => TryLockError::Error(error.into()),
    }
}

/// A range with an inclusive end.
fn bytes(range: &impl RangeBounds<u64>) -> Result<LockRange> {
    let start = match range.start_bound() {
        Bound::Included(&start) => Some(start),
        Bound::Excluded(&before) => before.checked_add(1),
        Bound::Unbounded => Some(0),
    };
    let end = match range.end_bound() {
        Bound::Included(&end) => Some(end),
        Bound::Excluded(&end) => end.checked_sub(1),
        Bound::Unbounded => Some(u64::MAX),
    };
    match (start, end) {
        (Some(start), Some(end)) if start <= end => Ok(LockRange { start, end }),
        _ => Err(Errno::EINVAL),
    }
}
