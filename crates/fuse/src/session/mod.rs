//! A mounted file system: from mount to the last request.
//!
//! # Invariants
//! [`Session::mount`] returns a live mount or none: whatever fails on the way is undone. The
//! session's threads end when the connection does, by whichever way it was unmounted;
//! [`Operations::destroy`] is called once, after them all.

mod answer;
mod config;
mod counters;
mod encode;
pub(crate) mod handler;
mod handshake;
mod info;
mod negotiate;
mod notifier;
mod queues;
pub(crate) mod service;
mod workers;

pub use config::{Config, ListingChoice, TransportChoice};
pub(crate) use counters::Counters;
pub use counters::Totals;
pub use info::{Info, Transport};
pub use negotiate::Negotiated;
pub use notifier::Notifier;

use crate::{
    interrupt::Interrupts,
    mount::{self, Attached, MountError, UmountError, UmountFlags, umount},
    operations::Operations,
    transport::{device, frame::Frame, sys::clone_device, uring},
    wire::{
        Dialect, InitFlags,
        reply::{Validities, Validity},
    },
};
use handler::Handler;
use handshake::Handshake;
use parking_lot::Mutex;
use queues::Queues;
use service::Service;
use std::{
    fmt, io,
    num::NonZero,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
    thread::{self, JoinHandle},
};

/// A mounted file system. Dropping it detaches the mount and ends the session.
pub struct Session {
    service: Arc<Service>,
    notifier: Notifier,
    mount_point: PathBuf,
    transport: Transport,
    why: String,
    ring_depth: usize,
    thread_count: usize,
    negotiated: Negotiated,
    /// Guards the threads until somebody joins them; none are left after that.
    threads: Mutex<Option<Threads>>,
}

struct Threads {
    transport: Vec<JoinHandle<()>>,
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
            threads: self.thread_count,
            ring_depth: self.ring_depth,
            negotiated: self.negotiated,
            totals: self.service.registry.totals(),
        }
    }

    /// A source of [`Info`] that can be asked from anywhere while the session lives.
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

    /// Waits until the connection ends (by [`Session::unmount`], or by `umount` from outside),
    /// and everything with it. A second caller waits for the first.
    pub fn wait(&self) {
        let mut threads = self.threads.lock();
        let Some(running) = threads.take() else {
            return;
        };
        // Threads catch what requests do to them; should one have died, it is gone all the same.
        for thread in running.transport {
            let _ = thread.join();
        }
        self.service.close();
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

/// A mount on the way to a session; undone when dropped.
struct Fresh {
    device: Arc<OwnedFd>,
    dir: PathBuf,
    keep: bool,
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if !self.keep
            && let Err(error) = umount(
                &self.dir,
                UmountFlags {
                    lazy: true,
                    force: true,
                },
            )
        {
            tracing::error!(%error, "undoing a mount failed");
        }
    }
}

/// What a session starts from.
struct Start<'a> {
    operations: Arc<dyn Operations>,
    config: &'a Config,
    notifier: Notifier,
    /// Whether to offer io_uring, or why not.
    plan: Result<(), String>,
}

impl Start<'_> {
    fn run(mut self, mount_point: &Path) -> Result<Session, MountError> {
        let Attached { device, dir } = mount::attach(mount_point, &self.config.mount)?;
        let device = Arc::new(device);
        let mut fresh = Fresh {
            device,
            dir,
            keep: false,
        };
        let device = fresh.device.clone();
        let mut handshake = Handshake::begin(&device)?;
        let queues = self.queues(&handshake, &device)?;
        let negotiated = handshake.negotiate(self.config, queues.is_some())?;
        if let Err(errno) = self.operations.init(&negotiated) {
            handshake.refuse();
            return Err(MountError::Init { errno });
        }
        let service = Arc::new(self.service(&negotiated));
        handshake.finish(&negotiated)?;
        let mut transport = Vec::new();
        let mut readers = self.readers();
        let uring = queues.is_some();
        if let Some(queues) = queues {
            transport = queues.register(&service)?;
            readers = 1;
        }
        let started = self.start_threads(&service, &device, readers, &mut transport);
        let notifier_thread = started.map_err(|source| MountError::Start { source })?;
        fresh.keep = true;
        Ok(Session {
            service,
            notifier: self.notifier,
            mount_point: std::mem::take(&mut fresh.dir),
            transport: if uring {
                Transport::Uring
            } else {
                Transport::Dev
            },
            why: self
                .plan
                .err()
                .unwrap_or_else(|| "io_uring is faster".into()),
            ring_depth: if uring { self.config.ring_depth } else { 0 },
            thread_count: transport.len(),
            negotiated,
            threads: Mutex::new(Some(Threads {
                transport,
                notifier: notifier_thread,
            })),
        })
    }

    /// The rings, if they are to be had.
    fn queues(
        &mut self,
        handshake: &Handshake<'_>,
        device: &Arc<OwnedFd>,
    ) -> Result<Option<Queues>, MountError> {
        if self.plan.is_ok() && !handshake.offers(InitFlags::OVER_IO_URING | InitFlags::INIT_EXT) {
            self.plan = Err("the kernel does not offer it for this mount".into());
        }
        if self.plan.is_ok() {
            match Queues::build(device, self.config.ring_depth) {
                Ok(queues) => return Ok(Some(queues)),
                Err(error) => self.plan = Err(format!("no ring could be made: {error}")),
            }
        }
        match (&self.plan, self.config.transport) {
            (Err(reason), TransportChoice::Uring) => Err(MountError::NoUring {
                reason: reason.clone(),
            }),
            _ => Ok(None),
        }
    }

    fn service(&self, negotiated: &Negotiated) -> Service {
        let config = self.config;
        let validities = Validities {
            entry: Validity::new(config.entry_timeout),
            attr: Validity::new(config.attr_timeout),
            negative: Validity::new(config.negative_timeout),
            block_size: config.mount.block_size.unwrap_or(config.block_size),
        };
        let handler = Handler {
            operations: self.operations.clone(),
            validities,
            dialect: Dialect {
                setxattr_ext: negotiated.flags.contains(InitFlags::SETXATTR_EXT),
            },
            interrupts: Interrupts::default(),
        };
        Service::new(
            handler,
            negotiated.payload_max(),
            config.workers,
            config.lock_waiters,
        )
    }

    /// How many threads read the device when it carries everything.
    fn readers(&self) -> usize {
        match self.config.threads {
            0 => thread::available_parallelism().map_or(2, NonZero::get),
            threads => threads,
        }
    }

    fn start_threads(
        &self,
        service: &Arc<Service>,
        device: &Arc<OwnedFd>,
        readers: usize,
        transport: &mut Vec<JoinHandle<()>>,
    ) -> io::Result<JoinHandle<()>> {
        for index in 0..readers {
            let own = if index == 0 {
                device.clone()
            } else {
                Arc::new(clone_device(device)?)
            };
            let frame = Frame::new(service.payload_max)?;
            let service = service.clone();
            transport.push(
                thread::Builder::new()
                    .name(format!("holdfast-dev{index}"))
                    .spawn(move || device::run(&service, &own, frame))?,
            );
        }
        let (notifier, device) = (self.notifier.clone(), device.clone());
        thread::Builder::new()
            .name("holdfast-notify".into())
            .spawn(move || notifier.run(&device))
    }
}
