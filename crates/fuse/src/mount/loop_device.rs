//! A loop device for a mount of the type `fuseblk`, which must lie on a block device.
//!
//! It is not read or written: it stands for the image file or device that the daemon serves. The
//! kernel removes it with its last user, at the unmount, even if the daemon is gone.

use super::sys;
use rustix::{
    fs::{Mode, OFlags},
    io::Errno as Code,
};
use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

/// Where a loop device is asked for.
const CONTROL: &str = "/dev/loop-control";

/// Tries, because another process may take the free device first.
const TRIES: u32 = 32;

/// A loop device. It is removed when this is dropped, unless it is mounted then.
#[derive(Debug)]
pub(super) struct LoopDevice {
    pub(super) path: PathBuf,
    _open: OwnedFd,
}

impl LoopDevice {
    /// Creates one over an image file or block device. If that is not writable, a read-only mount
    /// gets a read-only device.
    ///
    /// # Errors
    /// `EACCES`, `EPERM` without permission; `ENOENT` without loop devices; `EROFS` and the like if
    /// the file is not writable.
    pub(super) fn over(path: &Path, read_only: bool) -> io::Result<Self> {
        let (backing, read_only) = match File::options().read(true).write(true).open(path) {
            Err(_) if read_only => (File::open(path)?, true),
            backing => (backing?, false),
        };
        let control = open(Path::new(CONTROL))?;
        for _ in 0..TRIES {
            let number = sys::free_loop_device(&control)?;
            let device = PathBuf::from(format!("/dev/loop{number}"));
            let open = open(&device)?;
            match sys::configure_loop_device(&open, &backing, read_only) {
                Ok(()) => {
                    return Ok(Self {
                        path: device,
                        _open: open,
                    });
                }
                Err(Code::BUSY) => {}
                Err(code) => return Err(code.into()),
            }
        }
        Err(Code::BUSY.into())
    }
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
        .map_err(|code| io::Error::new(code.kind(), format!("{}: {code}", path.display())))
}

/// The image file or device behind a loop device; `None` for other devices.
#[must_use]
pub fn backing_of(device: &Path) -> Option<PathBuf> {
    let name = device.strip_prefix("/dev").ok()?;
    name.to_str().filter(|name| name.starts_with("loop"))?;
    let file = Path::new("/sys/block").join(name).join("loop/backing_file");
    let path = fs::read(file).ok()?;
    let path = path.strip_suffix(b"\n").unwrap_or(&path);
    Some(PathBuf::from(OsStr::from_bytes(path)))
}
