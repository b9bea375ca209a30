//! A mounted file system: from mount to the last request.
//!
//! # Invariants
//! [`Session::mount`] returns a live mount or none: whatever fails on the way is undone. The
//! session's threads end when the connection does, by whichever way it was unmounted;
//! [`Operations::destroy`] is called after them all, and before the answer to DESTROY, which umount(2) waits for where the
//! kernel sends it.

mod answer;
mod backing;
mod config;
mod connection;
mod counters;
mod encode;
pub(crate) mod handler;
mod handshake;
mod info;
mod late;
mod mapped;
mod negotiate;
mod notifier;
mod policy;
pub(crate) mod pool;
mod queues;
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
use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    thread::JoinHandle,
};

/// A mounted file system. Dropping it detaches the mount and ends the session.
pub struct Session {
    service: Arc<Service>,
    notifier: Notifier,
    mount_point: PathBuf,
    transport: Transport,
    why: String,
    no_block: Option<String>,
    no_passthrough: Option<String>,
    negotiated: Negotiated,
    /// Guards the threads until somebody joins them; none are left after that.
    threads: Mutex<Option<Threads>>,
}

struct Threads {
    watch: JoinHandle<()>,
    notifier: JoinHandle<()>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("mount_point", &self.mount_point)
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Mounts `operations` at `mount_point`. When this returns, the mount is live.
    ///
    /// `Operations::init` is called before the first request; once more if io_uring turns out
    /// not to work after the kernel promised it, and the session starts anew without.
    ///
    /// # Errors
    /// [`MountError`], whose text says what can be done; nothing stays mounted.
    pub fn mount(
        operations: Arc<dyn Operations>,
        mount_point: &Path,
        config: &Config,
    ) -> Result<Self, MountError> {
        Self::mount_with(operations, mount_point, config, Notifier::new())
    }

    /// As [`Session::mount`], with a notifier that was made before, so that the operations can
    /// hold it.
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

    /// What the session tells about itself, counts up to now.
    #[must_use]
    pub fn info(&self) -> Info {
        Info {
            mount_point: self.mount_point.clone(),
            transport: self.transport,
            why: self.why.clone(),
            threads: self.service.watch.threads(),
            no_idle_policy: self.service.watch.policy_slots.refused().map(str::to_owned),
            no_block: self.no_block.clone(),
            no_passthrough: self.no_passthrough.clone(),
            failure: self.failure(),
            negotiated: self.negotiated,
            totals: self.service.registry.totals(),
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
        &self.mount_point
    }

    /// Tells the kernel to forget what it has cached.
    #[must_use]
    pub fn notifier(&self) -> Notifier {
        self.notifier.clone()
    }

    /// Has the connection ended?
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.service.is_over()
    }

    /// Why the session ended, if it could not go on: it cut the connection then.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.service.failure().map(str::to_owned)
    }

    /// Unmounts, and waits for the end of the session. With `lazy` that may be long: until the
    /// last user lets go; then this only detaches and does not wait.
    ///
    /// # Errors
    /// [`UmountError::Busy`] names who uses it; the session goes on then.
    pub fn unmount(&self, flags: UmountFlags) -> Result<(), UmountError> {
        match umount(&self.mount_point, flags) {
            // Somebody was faster.
            Err(UmountError::NotMounted { .. }) if self.is_over() => {}
            result => result?,
        }
        if !flags.lazy || flags.force {
            self.wait();
        }
        Ok(())
    }

    /// Takes the file system away from all who use it, as `holdfast umount --force` does before
    /// it detaches the mount: from now on every call on it fails with `EIO`, on open files too, and
    /// whatever the kernel has cached of it answers no more. Files and directories can be closed, and
    /// each gives back what it held; [`Session::wait`] returns after the last, once the mount is
    /// detached.
    ///
    /// Mapped files: whatever touches their pages gets `SIGBUS`.
    ///
    /// # Errors
    /// `EIO` when what was done before could not be made durable: the file system is revoked all
    /// the same. `ENOTTY` if the operations know no [`Operations::revoke`].
    pub fn revoke(&self) -> Result<(), Errno> {
        self.service.handler.revoke(None, None)
    }

    /// Waits until the connection ends (by [`Session::unmount`], or by `umount` from outside),
    /// and everything with it. A second caller waits for the first.
    pub fn wait(&self) {
        let mut threads = self.threads.lock();
        let Some(running) = threads.take() else {
            return;
        };
        self.service.wait();
        self.service.watch.close();
        // A panic of its own was told when it happened.
        let _ = running.watch.join();
        // Those that the watch added meanwhile.
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
            let gone = umount(
                &self.mount_point,
                UmountFlags {
                    lazy: true,
                    force: true,
                },
            );
            match gone {
                Ok(()) | Err(UmountError::NotMounted { .. }) => self.wait(),
                Err(error) => tracing::error!(%error, "a session was dropped, its mount stays"),
            }
        }
    }
}
