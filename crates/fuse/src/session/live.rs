//! A live session, from its start to its end.

use super::{
    counters::Totals, handler::Handler, info::Info, liveness::Liveness, notifier::Notifier,
    watch::Watch,
};
use crate::mount::{UmountError, UmountFlags, umount};
use holdfast_types::Errno;
use parking_lot::Mutex;
use std::{fmt, path::Path, sync::Arc, thread::JoinHandle};

/// A mounted file system. Dropping it detaches the mount and ends the session.
pub struct Session {
    pub(super) handler: Arc<Handler>,
    pub(super) watch: Arc<Watch>,
    pub(super) notifier: Notifier,
    /// Status at the start.
    pub(super) info: Info,
    /// Guards the threads, those of the watch and of the notifier, until they are joined; `None`
    /// after that.
    pub(super) threads: Mutex<Option<[JoinHandle<()>; 2]>>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Status and counters of the session.
    #[must_use]
    pub fn info(&self) -> Info {
        Info {
            threads: self.watch.threads(),
            no_idle_policy: self
                .handler
                .service
                .policy_slots
                .refused()
                .map(str::to_owned),
            failure: self.failure(),
            totals: self.totals(),
            ..self.info.clone()
        }
    }

    /// Counts of requests and bytes up to now.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.handler.service.registry.totals()
    }

    /// Where it is mounted.
    #[must_use]
    pub fn mount_point(&self) -> &Path {
        &self.info.mount_point
    }

    /// Invalidates the kernel's caches.
    #[must_use]
    pub fn notifier(&self) -> Notifier {
        self.notifier.clone()
    }

    /// Tells whether the queues make progress.
    #[must_use]
    pub fn liveness(&self) -> Liveness {
        Liveness::new(self.watch.clone())
    }

    /// Has the connection ended?
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.handler.service.is_over()
    }

    /// Why the session aborted its connection, if it did.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.handler.service.failure().map(str::to_owned)
    }

    /// Unmounts, and waits for the end of the session. With `lazy` alone it only detaches, because
    /// the last user may stay long.
    ///
    /// # Errors
    /// [`UmountError::Busy`] lists the processes that use it; the session goes on then.
    pub fn unmount(&self, flags: UmountFlags) -> Result<(), UmountError> {
        match umount(self.mount_point(), flags) {
            // It was unmounted from outside meanwhile.
            Err(UmountError::NotMounted { .. }) if self.is_over() => {}
            result => result?,
        }
        if !flags.lazy || flags.force {
            self.wait();
        }
        Ok(())
    }

    /// Revokes the file system, as `holdfast umount --force` does before it detaches the mount.
    /// From now on every call on it fails with `EIO`, also on open files, and the kernel's caches
    /// of it are empty. Files and directories can still be closed. [`Session::wait`] returns after
    /// the last close, once the mount is detached.
    ///
    /// An access to a mapped page raises `SIGBUS`.
    ///
    /// # Errors
    /// `EIO` when earlier changes could not be made durable: the file system is revoked all the
    /// same. `ENOTTY` if the operations do not implement
    /// [`Operations::revoke`](crate::Operations::revoke).
    pub fn revoke(&self) -> Result<(), Errno> {
        self.handler.revocation.revoke(None, None)
    }

    /// Was the file system revoked? Then all calls on it fail but those that close files.
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        self.handler.revocation.is_done()
    }

    /// Waits until the connection ends, by [`Session::unmount`] or by `umount` from outside, and
    /// joins the threads. A second caller waits for the first.
    pub fn wait(&self) {
        let mut threads = self.threads.lock();
        let Some([watch, notifier]) = threads.take() else {
            return;
        };
        let service = &self.handler.service;
        service.wait();
        self.watch.close();
        // A panic of the thread was reported when it happened.
        let _ = watch.join();
        // Threads that the watch added meanwhile.
        service.wait();
        self.notifier.close();
        let _ = notifier.join();
        self.handler.operations.destroy();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let running = self.threads.lock().is_some();
        if running {
            match umount(self.mount_point(), UmountFlags::DETACH) {
                Ok(()) | Err(UmountError::NotMounted { .. }) => self.wait(),
                Err(error) => tracing::error!(%error, "a session was dropped, its mount stays"),
            }
        }
    }
}
