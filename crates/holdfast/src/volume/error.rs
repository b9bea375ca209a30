use std::error::Error;
use std::{fmt, io};

use holdfast_device::DeviceError;

use crate::types::Errno;

/// The error of an operation on a [`Volume`](super::Volume): Linux's number and the reason.
///
/// The text names the device and a remedy. Conversion into a [`std::io::Error`], which cannot hold
/// both, keeps the number.
///
/// ```
/// use std::io::{self, ErrorKind};
/// use holdfast::Volume;
///
/// let error = Volume::open("/nowhere/data.hf").unwrap_err();
/// assert_eq!(error.raw_os_error(), Some(2));
/// assert_eq!(error.kind(), ErrorKind::NotFound);
/// assert!(error.to_string().contains("/nowhere/data.hf"));
/// assert_eq!(io::Error::from(error).raw_os_error(), Some(2));
/// ```
#[derive(Debug)]
pub struct VolumeError {
    errno: Errno,
    reason: Box<dyn Error + Send + Sync>,
}

impl VolumeError {
    pub(super) fn new(errno: Errno, reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            errno,
            reason: reason.into(),
        }
    }

    /// The number, as [`io::Error::raw_os_error`] returns it; never `None`.
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        Some(self.errno.raw())
    }

    /// The kind, as [`io::Error::kind`] gives it.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        io::Error::from(self.errno).kind()
    }

    /// The number, in the core's type.
    #[must_use]
    pub fn errno(&self) -> Errno {
        self.errno
    }
}

impl fmt::Display for VolumeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl Error for VolumeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.reason.source()
    }
}

impl From<VolumeError> for io::Error {
    fn from(error: VolumeError) -> Self {
        error.errno.into()
    }
}

impl From<holdfast_volume::Error> for VolumeError {
    fn from(error: holdfast_volume::Error) -> Self {
        Self::new(error.errno(), error)
    }
}

impl From<DeviceError> for VolumeError {
    fn from(error: DeviceError) -> Self {
        Self::new(error.errno(), error)
    }
}

impl From<Errno> for VolumeError {
    fn from(errno: Errno) -> Self {
        Self::new(errno, errno)
    }
}

/// An error of a system call, or of the file system on the volume.
impl From<io::Error> for VolumeError {
    fn from(error: io::Error) -> Self {
        let errno = error.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
        Self::new(errno, error)
    }
}

impl From<rustix::io::Errno> for VolumeError {
    fn from(errno: rustix::io::Errno) -> Self {
        Errno::from_raw(errno.raw_os_error()).into()
    }
}
