//! The host kernel's tmpfs as a target.
//!
//! The mount is a detached one (fsopen, fsmount): no mount point, nothing to clean up, gone
//! with the last descriptor. Each caller is a thread with its own credentials, root and
//! descriptors; the driver's thread is the inspector and enters the mount, too.
//!
//! *Invariant*: after [`HostTarget::enter`] the calling thread's root directory is the mount.
//! It should be a thread that ends with the run; [`crate::diff::run::on_own_thread`] gives one.

mod calls;
mod inspect;
mod sys;
mod worker;

use crate::diff::op::{Bytes, Op};
use crate::diff::outcome::Outcome;
use crate::diff::target::{Step, Target};
use crate::diff::view::{Detail, View};
use holdfast_types::{Caller, Errno, Result};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use worker::Worker;

pub(super) use calls::slices;
pub(super) use inspect::LAST_PAGE;

/// How the two sides keep times of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum AtimeRule {
    /// Every access counts.
    Strict,
    /// Only the first after a change, and one a day.
    Relative,
    /// None does.
    Never,
    /// Access times are not compared: over FUSE, reads that the kernel's page cache serves are
    /// never told to the file system.
    Ignored,
}

/// Callers on the host, inside a directory that they take for the root.
#[derive(Debug)]
pub struct HostCallers {
    workers: Vec<Mutex<Worker>>,
}

impl HostCallers {
    /// Starts the callers inside `dir`: a directory of any file system, mounted anywhere.
    ///
    /// # Errors
    /// Those of opening the directory, and of taking on credentials (root is needed).
    pub fn inside(dir: &Path, cast: &[Caller]) -> Result<Self> {
        Self::start(open_directory(dir)?, cast)
    }

    /// Starts the callers inside a fresh tmpfs.
    ///
    /// # Errors
    /// Those of mounting, and of taking on credentials (root is needed).
    pub fn on_tmpfs(cast: &[Caller]) -> Result<Self> {
        Self::start(mount(AtimeRule::Strict)?, cast)
    }

    fn start(root: OwnedFd, cast: &[Caller]) -> Result<Self> {
        let root = Arc::new(root);
        let start = |who| Worker::start(who, &root).map(Mutex::new);
        Ok(Self {
            workers: cast.iter().map(start).collect::<Result<_>>()?,
        })
    }

    /// Runs an operation as one of the callers; several callers can be at work at once.
    pub fn call(&self, caller: usize, op: &Op) -> Outcome {
        let worker = self.workers[caller]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        worker.step(op, &[]).outcome
    }
}

/// A fresh tmpfs of the host.
#[derive(Debug)]
pub struct HostTarget {
    workers: Vec<Worker>,
}

fn errno(error: rustix::io::Errno) -> Errno {
    Errno::from_raw(error.raw_os_error())
}

impl HostTarget {
    /// Why the host cannot be a target here, if it cannot.
    #[must_use]
    pub fn obstacle() -> Option<String> {
        if !rustix::process::geteuid().is_root() {
            return Some("needs root: a tmpfs of its own, and other users' credentials".into());
        }
        mount(AtimeRule::Strict)
            .err()
            .map(|error| format!("cannot mount a tmpfs: {error}"))
    }

    /// Makes a tmpfs and enters it: the calling thread's root becomes the mount.
    ///
    /// # Errors
    /// Those of mounting, of unsharing, and of taking on credentials.
    pub fn enter(cast: &[Caller], atime: AtimeRule) -> Result<Self> {
        Self::enter_root(mount(atime)?, cast)
    }

    /// Makes a directory inside `parent`, and enters it.
    ///
    /// # Errors
    /// Those of making it, of unsharing, and of taking on credentials.
    pub fn enter_new_directory(parent: &Path, cast: &[Caller]) -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = parent.join(format!("differential-{}-{number}", std::process::id()));
        std::fs::create_dir(&dir)?;
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o755))?;
        Self::enter_root(open_directory(&dir)?, cast)
    }

    fn enter_root(root: OwnedFd, cast: &[Caller]) -> Result<Self> {
        let mount = Arc::new(root);
        let workers = cast
            .iter()
            .map(|who| Worker::start(who, &mount))
            .collect::<Result<Vec<_>>>()?;
        sys::unshare_fs()?;
        enter_root(&mount)?;
        rustix::process::umask(Mode::empty());
        Ok(Self { workers })
    }
}

fn open_directory(dir: &Path) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, dir, flags, Mode::empty()).map_err(errno)
}

fn mount(atime: AtimeRule) -> Result<OwnedFd> {
    let context = rustix::mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).map_err(errno)?;
    for (key, value) in [("mode", "755"), ("size", "4g"), ("nr_inodes", "4m")] {
        rustix::mount::fsconfig_set_string(&context, key, value).map_err(errno)?;
    }
    rustix::mount::fsconfig_create(&context).map_err(errno)?;
    let times = match atime {
        AtimeRule::Strict | AtimeRule::Ignored => MountAttrFlags::MOUNT_ATTR_STRICTATIME,
        AtimeRule::Relative => MountAttrFlags::empty(),
        AtimeRule::Never => MountAttrFlags::MOUNT_ATTR_NOATIME,
    };
    let flags = MountAttrFlags::MOUNT_ATTR_NODEV | times;
    rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, flags).map_err(errno)
}

fn enter_root(mount: &OwnedFd) -> Result<()> {
    rustix::process::fchdir(mount).map_err(errno)?;
    rustix::process::chroot(".").map_err(errno)
}

impl Target for HostTarget {
    fn run(&mut self, caller: usize, op: &Op, slots: &[usize]) -> Step {
        self.workers[caller].step(op, slots)
    }

    fn look(&mut self, path: &Bytes, follow: bool, detail: Detail) -> Result<View> {
        inspect::look(path, follow, detail)
    }
}
