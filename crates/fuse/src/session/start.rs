//! From a mount point to a live session.

use super::{
    BackingFiles, Config, Info, Negotiated, Notifier, Session, Totals, Transport, TransportChoice,
    connection::Connection,
    handler::Handler,
    handshake::Handshake,
    mapped::Mappings,
    policy,
    pool::{SpawnWorker, StartingWorker, WorkerPool},
    queues::Queues,
    revoke::Revocation,
    service::Service,
    watch::Watch,
};
use crate::{
    mount::{self, Attached, MountError, Mounted, UmountFlags, umount},
    operations::Operations,
    transport::{
        device::SpawnDeviceWorker,
        uring::{self, Kicker},
    },
    wire::{Dialect, InitFlags, MINOR_WITH_EPOCHS, device::pack, reply::Validities},
};
use parking_lot::Mutex;
use std::{
    num::NonZero,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
    thread::{self, JoinHandle},
};

impl Session {
    /// Mounts `operations` at `mount_point`. When this returns, the mount is live.
    ///
    /// `Operations::init` is called before the first request. It is called again if io_uring fails
    /// although the kernel offered it, and the session starts anew without.
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
        let mut start = Start {
            operations,
            config,
            notifier,
            plan,
        };
        match start.run(mount_point) {
            Err(MountError::Queue { qid, source }) if config.transport == TransportChoice::Auto => {
                tracing::warn!(qid, %source, "io_uring failed, mounting without");
                start.plan = Err(format!("the kernel refused queue {qid}: {source}"));
                start.run(mount_point)
            }
            result => result,
        }
    }
}

/// A mount without a session; undone when dropped.
struct Fresh {
    device: Arc<OwnedFd>,
    dir: PathBuf,
    keep: bool,
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if !self.keep
            && let Err(error) = umount(&self.dir, UmountFlags::DETACH)
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
    fn run(&mut self, mount_point: &Path) -> Result<Session, MountError> {
        let Attached {
            device,
            dir,
            no_block,
        } = mount::attach(mount_point, &self.config.mount)?;
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
        let mounted = mount::mounted_at(&fresh.dir).ok().flatten();
        let connection = Connection::new(fresh.dir.clone(), mounted.as_ref());
        let handler = Arc::new(self.handler(&negotiated, connection));
        if queues.is_some()
            && let Err(reason) = policy::may_return()
        {
            handler.service.policy_slots.refuse(reason);
        }
        self.notifier.begin(&device);
        handshake.finish(&negotiated)?;
        let no_passthrough = self.pass_through(&negotiated, &device).err();
        let transport = match queues {
            Some(_) => Transport::Uring,
            None => Transport::Dev,
        };
        let (watch, threads) = self.start_threads(&handler, &device, queues, mounted.as_ref())?;
        fresh.keep = true;
        Ok(Session {
            handler,
            watch,
            notifier: self.notifier.clone(),
            info: Info {
                mount_point: std::mem::take(&mut fresh.dir),
                transport,
                why: self
                    .plan
                    .clone()
                    .err()
                    .unwrap_or_else(|| "io_uring is faster".into()),
                threads: 0,
                no_idle_policy: None,
                no_block,
                no_passthrough,
                failure: None,
                negotiated,
                totals: Totals::default(),
            },
            threads: Mutex::new(Some(threads)),
        })
    }

    /// Enables passthrough if it is wanted, or says why it cannot be.
    fn pass_through(&self, negotiated: &Negotiated, device: &Arc<OwnedFd>) -> Result<(), String> {
        if !self.config.passes_through() {
            return Ok(());
        }
        if !negotiated.flags.contains(InitFlags::PASSTHROUGH) {
            return Err("the kernel does not offer it".into());
        }
        self.operations.pass_through(BackingFiles::of(device)?);
        Ok(())
    }

    /// The rings, if io_uring can be used.
    fn queues(
        &mut self,
        handshake: &Handshake<'_>,
        device: &Arc<OwnedFd>,
    ) -> Result<Option<Queues>, MountError> {
        if self.plan.is_ok() && !handshake.offers(InitFlags::OVER_IO_URING | InitFlags::INIT_EXT) {
            self.plan = Err("the kernel does not offer it for this mount".into());
        }
        if self.plan.is_ok() {
            match Queues::build(device) {
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

    fn handler(&self, negotiated: &Negotiated, connection: Connection) -> Handler {
        let config = self.config;
        let validities = Validities {
            entry: config.entry_timeout,
            attr: config.attr_timeout,
            negative: config.negative_timeout,
            // Without epochs there may be more names to invalidate than is possible.
            notified: config
                .notified_timeout
                .filter(|_| negotiated.kernel_minor >= MINOR_WITH_EPOCHS),
            block_size: config.mount.block_size.unwrap_or(config.block_size),
        }
        .limited();
        let service = Arc::new(Service::new(
            negotiated.payload_max(),
            config.lock_waiters,
            connection,
        ));
        let operations = self.operations.clone();
        Handler {
            operations: operations.clone(),
            validities,
            interruptible: config.interruptible,
            dialect: Dialect {
                setxattr_ext: negotiated.flags.contains(InitFlags::SETXATTR_EXT),
            },
            service: service.clone(),
            revocation: Revocation {
                done: AtomicBool::new(false),
                operations,
                service,
                notifier: self.notifier.clone(),
            },
            mappings: Mappings::default(),
        }
    }

    fn start_threads(
        &self,
        handler: &Arc<Handler>,
        device: &Arc<OwnedFd>,
        queues: Option<Queues>,
        mounted: Option<&Mounted>,
    ) -> Result<(Arc<Watch>, [JoinHandle<()>; 2]), MountError> {
        let failed = |source| MountError::Start { source };
        let threads_max = self.config.threads_max.max(1);
        let mut pools = Vec::new();
        // When the device carries all requests.
        let mut readers = match self.config.threads {
            0 => thread::available_parallelism().map_or(2, NonZero::get),
            threads => threads,
        };
        if let Some(queues) = queues {
            let number = mounted.map_or(0, |it| {
                pack(libc::makedev(it.device_major, it.device_minor))
            });
            let kicker = Kicker::start(number, handler.service.dir()).map_err(failed)?;
            pools = queues.register(handler, device, kicker, threads_max)?;
            readers = 1;
        }
        let spawn_worker = || SpawnDeviceWorker {
            device: device.clone(),
            handler: handler.clone(),
        };
        let pool = WorkerPool::new(
            "/dev/fuse".into(),
            threads_max.max(readers),
            Box::new(spawn_worker()),
            &handler.service,
        );
        for _ in 0..readers {
            spawn_worker()
                .spawn_worker(StartingWorker::new(&pool))
                .map_err(failed)?;
        }
        pools.push(pool);
        let watch = Arc::new(Watch {
            service: handler.service.clone(),
            pools: Mutex::new(pools),
        });
        let owner = watch.clone();
        let watching = thread::Builder::new()
            .name("holdfast-watch".into())
            .spawn(move || owner.run())
            .map_err(failed)?;
        let (notifier, device, owner) = (self.notifier.clone(), device.clone(), handler.clone());
        let notifying = thread::Builder::new()
            .name("holdfast-notify".into())
            .spawn(move || notifier.run(&device, &owner.service, &*owner.operations))
            .map_err(|source| {
                watch.close();
                failed(source)
            })?;
        Ok((watch, [watching, notifying]))
    }
}
