//! What tests need to mount something, where this machine lets them.

use crate::skip::{mount_obstacle, skipped, skipped_by_kernel};
use holdfast_core::FileSystem;
use holdfast_fuse::{Config, Session, TransportChoice, mount::UmountError, serve};
use std::{path::Path, thread, time::Duration};

/// A file system that is mounted on a directory.
#[derive(Debug)]
pub struct Mount(Session);

impl Mount {
    /// Mounts a file system; `None`, with a word why: nothing can be mounted here.
    ///
    /// # Panics
    /// If the kernel refuses the mount.
    #[must_use]
    pub fn new(fs: &FileSystem, dir: &Path) -> Option<Self> {
        let config = config(TransportChoice::Dev)?;
        let session = serve::mount(fs, dir, &config, None);
        Some(Self(session.expect("an empty directory")))
    }

    /// Unmounts.
    ///
    /// # Panics
    /// If the mount stays busy, or a thread that served it failed.
    pub fn end(self) {
        unmount(&self.0);
        self.0.wait();
        assert_eq!(self.0.failure(), None);
    }
}

/// A configuration for the transport, or none, with a word why, if it cannot be had.
#[must_use]
pub fn config(transport: TransportChoice) -> Option<Config> {
    if let Some(obstacle) = mount_obstacle() {
        skipped(obstacle);
        return None;
    }
    if transport == TransportChoice::Uring {
        let switch = "/sys/module/fuse/parameters/enable_uring";
        if std::fs::write(switch, "Y").is_err() {
            skipped_by_kernel("it has no FUSE over io_uring");
            return None;
        }
    }
    Some(Config {
        transport,
        ..Config::default()
    })
}

/// Unmounts. Other tests of this process start children, which hold its files for the moment
/// between fork and exec: a mount that is busy gets a little time.
///
/// # Panics
/// If the mount stays busy, or cannot be unmounted.
pub fn unmount(session: &Session) {
    for _ in 0..100 {
        match session.unmount(Default::default()) {
            Err(UmountError::Busy { .. }) => thread::sleep(Duration::from_millis(20)),
            result => return result.expect("a mount of this process"),
        }
    }
    panic!("the mount stays busy");
}
