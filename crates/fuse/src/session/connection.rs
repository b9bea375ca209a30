//! Aborting a connection from this side, without memory and without another thread: for a session
//! that cannot go on.

use crate::mount::Mounted;
use rustix::{
    io::Errno,
    mount::{UnmountFlags, unmount},
};
use std::{fs::File, path::PathBuf};

/// Where connections can be aborted.
const CONNECTIONS: &str = "/sys/fs/fuse/connections";

/// The kernel's side of a session.
pub(super) struct Connection {
    pub(super) dir: PathBuf,
    /// Aborts the connection when written to, if the fusectl file system is mounted. It is opened
    /// at the start, because at the end there may be no descriptor left.
    abort: Option<File>,
}

impl Connection {
    pub(super) fn new(dir: PathBuf, mounted: Option<&Mounted>) -> Self {
        let abort = mounted.and_then(|mounted| {
            let path = format!("{CONNECTIONS}/{}/abort", mounted.connection());
            File::options().write(true).open(path).ok()
        });
        Self { dir, abort }
    }

    /// Aborts the connection: pending requests fail, and every later call does.
    pub(super) fn abort(&self) {
        if let Some(abort) = &self.abort {
            match rustix::io::write(abort, b"1") {
                Ok(_) => return,
                Err(error) => tracing::warn!(%error, "the connection's switch refused"),
            }
        }
        // A forced unmount aborts the connection first, even if the mount is busy and stays.
        match unmount(&self.dir, UnmountFlags::FORCE | UnmountFlags::NOFOLLOW) {
            Ok(()) | Err(Errno::BUSY) => {}
            Err(error) => tracing::error!(
                mount_point = %self.dir.display(),
                %error,
                "the connection could not be cut, callers may hang: end this process, or umount -f"
            ),
        }
    }
}
