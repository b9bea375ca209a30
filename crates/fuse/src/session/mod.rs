//! A mounted file system: from mount to the last request.
//!
//! # Invariants
//! [`Session::mount`] returns a live mount, or undoes all that it did. The session's threads end
//! with the connection, regardless of how it was unmounted. [`Operations::destroy`] is called after
//! them. If the kernel sends DESTROY, the call precedes the answer, which umount(2) waits for.

mod backing;
mod config;
mod connection;
mod counters;
mod encode;
pub(crate) mod handler;
mod handshake;
mod info;
mod mapped;
mod negotiate;
mod notifier;
mod policy;
pub(crate) mod pool;
mod queues;
mod resend;
mod revoke;
pub(crate) mod service;
mod start;
mod sys;
mod timing;
mod watch;
pub(crate) mod worker;

pub use backing::BackingFiles;
pub use config::{Config, KeptContent, ListingChoice, Passthrough, TransportChoice};
pub use counters::Totals;
pub use info::{Info, Transport};
pub use negotiate::Negotiated;
pub use notifier::Notifier;
pub(crate) use revoke::REVOKE;
pub use timing::Times;

use crate::{
    mount::{MountError, UmountError, UmountFlags, umount},
    operations::Operations,
    transport::uring,
};
use holdfast_types::Errno;
use parking_lot::Mutex;
use service::Service;
use start::Start;
use std::{fmt, path::Path, sync::Arc, thread::JoinHandle};

/// A mounted file system. Dropping it detaches the mount and ends the session.
pub struct Session {
    service: Arc<Service>,
    notifier: Notifier,
    /// Status at the start.
    info: Info,
    /// Guards the threads until they are joined; `None` after that.
    threads: Mutex<Option<Threads>>,
}

struct Threads {
    watch: JoinHandle<()>,
    notifier: JoinHandle<()>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Mounts `operations` at `mount_point`. When this returns, the mount is live.
    ///
    /// `Operations::init` is called before the first request. It is called again if io_uring fails
    /// although the kernel offered it, and the session starts anew without.
    ///
    ///
    /// # Errors
    /// [`MountError`], with a message that says what can be done; nothing stays mounted.
    pub fn mount(
        operations: Arc<dyn Operations>,
        mount_point: &Path,
        config: &Config,
    ) -> Result<Self, MountError> {
        Self::mount_with(operations, mount_point, config, Notifier::new())
    }

    /// As [`Session::mount`], with an existing notifier, so that the operations can hold it.
    ///
    /// # Errors
    /// As [`Session::mount`].
    pub fn mount_with(
        operations: Arc<dyn Operations>,
        mount_point: &Path,
        config: &Config,
        notifier: Notifier,
    ) -> Result<Self, MountError> {
        let plan = match (config.transport, uring::available()) {
            (TransportChoice::Dev, _) => Err("the configuration says /dev/fuse".to_owned()),
            (TransportChoice::Uring, Err(reason)) => return Err(MountError::NoUring { reason }),
            (TransportChoice::Uring | TransportChoice::Auto, available) => available,
        };
        let start = |plan| {
            Start {
                operations: operations.clone(),
                config,
                notifier: notifier.clone(),
                plan,
            }
            .run(mount_point)
        };
        match start(plan) {
            Err(MountError::Queue { qid, source }) if config.transport == TransportChoice::Auto => {
                tracing::warn!(qid, %source, "io_uring failed, mounting without");
                start(Err(format!("the kernel refused queue {qid}: {source}")))
            }
            result => result,
        }
    }

    /// Status and counters of the session.
    #[must_use]
    pub fn info(&self) -> Info {
        Info {
            threads: self.service.watch.threads(),
            no_idle_policy: self.service.watch.policy_slots.refused().map(str::to_owned),
            failure: self.failure(),
            totals: self.totals(),
            ..self.info.clone()
        }
    }

    /// Counts of requests and bytes up to now.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.service.registry.totals()
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

    /// Has the connection ended?
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.service.is_over()
    }

    /// Why the session aborted its connection, if it did.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.service.failure().map(str::to_owned)
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
    /// same. `ENOTTY` if the operations do not implement [`Operations::revoke`].
    pub fn revoke(&self) -> Result<(), Errno> {
        self.service.handler.revoke(None, None)
    }

    /// Waits until the connection ends, by [`Session::unmount`] or by `umount` from outside, and
    /// joins the threads. A second caller waits for the first.
    pub fn wait(&self) {
        let mut threads = self.threads.lock();
        let Some(running) = threads.take() else {
            return;
        };
        self.service.wait();
        self.service.watch.close();
        // A panic of the thread was reported when it happened.
        let _ = running.watch.join();
        // Threads that the watch added meanwhile.
        self.service.wait();
        self.notifier.close();
        let _ = running.notifier.join();
        self.service.handler.operations.destroy();
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
