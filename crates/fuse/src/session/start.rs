//! From a mount point to a live session.

use super::{
    Config, Negotiated, Notifier, Session, Threads, Transport, TransportChoice, handler::Handler,
    handshake::Handshake, queues::Queues, revoke::Revocation, service::Service,
};
use crate::{
    interrupt::Interrupts,
    mount::{self, Attached, MountError, UmountFlags, umount},
    operations::Operations,
    transport::{device, frame::Frame, sys::clone_device, uring::Nudger},
    wire::{
        Dialect, InitFlags,
        device::pack,
        reply::{Validities, Validity},
    },
};
use parking_lot::Mutex;
use std::{
    io,
    num::NonZero,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
    thread::{self, JoinHandle},
};

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
pub(super) struct Start<'a> {
    pub(super) operations: Arc<dyn Operations>,
    pub(super) config: &'a Config,
    pub(super) notifier: Notifier,
    pub(super) nudger: Nudger,
    /// Whether to offer io_uring, or why not.
    pub(super) plan: Result<(), String>,
}

impl Start<'_> {
    pub(super) fn run(mut self, mount_point: &Path) -> Result<Session, MountError> {
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
        if let Ok(Some(mounted)) = mount::mounted_at(&fresh.dir) {
            let device = pack(libc::makedev(0, mounted.device_minor));
            self.nudger.aim(device, fresh.dir.clone());
        }
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
            nudger: self.nudger,
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
            match Queues::build(device, self.config.ring_depth, &self.nudger) {
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
            revocation: Revocation::new(self.notifier.clone()),
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
            // Without a clone (no permission for the device, say) all read from one queue.
            let own = match index {
                0 => device.clone(),
                _ => clone_device(device).map_or_else(|_| device.clone(), Arc::new),
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
