//! A loop device for a mount of the type `fuseblk`, which the kernel gives only to what lies on a block device.
//!
//! Nothing is read from it or written to it: it stands for the image file or device that a daemon serves. It is there until the
//! kernel unmounts, whatever becomes of the daemon: the kernel takes a loop device away with its last
//! user.

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

/// How often another process may take the device that was free.
const TRIES: u32 = 32;

/// A loop device that goes when this is dropped, unless it is mounted then.
#[derive(Debug)]
pub(super) struct LoopDevice {
    pub(super) path: PathBuf,
    _open: OwnedFd,
}

impl LoopDevice {
    /// One over an image file or block device. Where that cannot be written to, a mount that is read-only gets one that is
    /// read-only as well, and stays so.
    ///
    /// # Errors
    /// `EACCES`, `EPERM` without the right; `ENOENT` where there are no loop devices; `EROFS` and the like where the file
    /// cannot be written to.
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

/// The image file or device that a loop device stands for; `None` for what is none.
#[must_use]
pub fn backing_of(device: &Path) -> Option<PathBuf> {
    let name = device.strip_prefix("/dev").ok()?;
    name.to_str().filter(|name| name.starts_with("loop"))?;
    let file = Path::new("/sys/block").join(name).join("loop/backing_file");
    let path = fs::read(file).ok()?;
    let path = path.strip_suffix(b"\n").unwrap_or(&path);
    Some(PathBuf::from(OsStr::from_bytes(path)))
}
