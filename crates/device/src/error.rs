use holdfast_types::Errno;
use std::{fmt, io};

/// A result with a [`DeviceError`].
pub type Result<T, E = DeviceError> = std::result::Result<T, E>;

/// A failed operation of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceError {
    /// The device, as named by [`BlockDevice::describe`](crate::BlockDevice::describe).
    pub device: String,
    /// The operation.
    pub operation: Operation,
    /// Its first byte; the new size for [`Operation::Resize`].
    pub offset: u64,
    /// Its length in bytes.
    pub length: u64,
    /// The cause.
    pub cause: Cause,
}

/// An operation of a device.
#[expect(missing_docs, reason = "each is what its name says")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    Create,
    Open,
    Read,
    Write,
    Flush,
    Discard,
    Resize,
}

/// The cause of a failure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// An error of the operating system, other than the following.
    #[error("{0}")]
    Os(Errno),
    /// The file system or quota of the image is full (the errno tells which).
    #[error("{0}; free space where the image lies")]
    NoSpace(Errno),
    /// The range ends past the device.
    #[error("the device ends at {size}")]
    OutOfRange {
        /// Its size in bytes.
        size: u64,
    },
    /// Offset or length is not aligned.
    #[error("not aligned to {alignment} bytes")]
    Misaligned {
        /// The alignment in bytes.
        alignment: u64,
    },
    /// Opened read-only.
    #[error("it is open for reading only")]
    ReadOnly,
    /// The file was truncated despite the lock.
    #[error("the file ends at {end}: something has truncated it")]
    Truncated {
        /// The present end of the file.
        end: u64,
    },
    /// Devices only grow.
    #[error("it has {size} bytes and cannot shrink")]
    Shrinks {
        /// Its size in bytes.
        size: u64,
    },
    /// A block device has a fixed size.
    #[error("it has {size} bytes; enlarge the device below first")]
    Fixed {
        /// Its size in bytes.
        size: u64,
    },
    /// Neither a regular file nor a block device.
    #[error("neither a regular file nor a block device")]
    NotADevice,
    /// The device is open elsewhere.
    #[error("{0}")]
    Held(Holder),
    /// An earlier flush failed with this error, and its writes remain lost.
    #[error("an earlier flush failed ({0}): what was written since the one before may be lost")]
    FlushFailed(Errno),
}

/// The holder of a device that cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// This process, by another open device.
    ThisProcess,
    /// Another process.
    Process {
        /// Its number, as seen from here.
        pid: u32,
        /// The beginning of its command line.
        command: String,
    },
    /// A file system of the kernel is mounted from it.
    Mount {
        /// The mount point.
        target: String,
    },
    /// Another block device is built on it, such as `dm-0` or `md0`.
    Device {
        /// Its name in the kernel.
        name: String,
    },
    /// Not visible from here: of another user, or in another container.
    Unknown,
}

impl DeviceError {
    /// An error of `operation` on a device.
    #[must_use]
    pub const fn new(
        device: String,
        operation: Operation,
        offset: u64,
        length: u64,
        cause: Cause,
    ) -> Self {
        Self {
            device,
            operation,
            offset,
            length,
            cause,
        }
    }

    /// Has space run out below? The operation can succeed once some is freed there.
    #[must_use]
    pub const fn is_no_space(&self) -> bool {
        matches!(self.cause, Cause::NoSpace(_))
    }

    /// The errno that describes it best.
    #[must_use]
    pub const fn errno(&self) -> Errno {
        match self.cause {
            Cause::Os(errno) | Cause::NoSpace(errno) | Cause::FlushFailed(errno) => errno,
            Cause::OutOfRange { .. } | Cause::Misaligned { .. } | Cause::Shrinks { .. } => {
                Errno::EINVAL
            }
            Cause::ReadOnly => Errno::EROFS,
            Cause::Truncated { .. } => Errno::EIO,
            Cause::Fixed { .. } => Errno::ENOSPC,
            Cause::NotADevice => Errno::EINVAL,
            Cause::Held(_) => Errno::EBUSY,
        }
    }

    /// The kind of the corresponding [`io::Error`].
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        io::Error::from(self.errno()).kind()
    }
}

impl From<Errno> for Cause {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::ENOSPC | Errno::EDQUOT => Self::NoSpace(errno),
            _ => Self::Os(errno),
        }
    }
}

impl From<rustix::io::Errno> for Cause {
    fn from(errno: rustix::io::Errno) -> Self {
        Errno::from_raw(errno.raw_os_error()).into()
    }
}

/// As an errno: there is no room for the text.
impl From<DeviceError> for io::Error {
    fn from(error: DeviceError) -> Self {
        error.errno().into()
    }
}

impl std::error::Error for DeviceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.cause {
            Cause::Os(errno) => Some(errno),
            _ => None,
        }
    }
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            device,
            operation,
            offset,
            length,
            cause,
        } = self;
        match operation {
            Operation::Create => write!(f, "cannot create {device}: {cause}"),
            Operation::Open => write!(f, "cannot open {device}: {cause}"),
            Operation::Read => write!(
                f,
                "cannot read {length} bytes at {offset} of {device}: {cause}"
            ),
            Operation::Write => write!(
                f,
                "cannot write {length} bytes at {offset} of {device}: {cause}"
            ),
            Operation::Flush => write!(f, "cannot flush {device}: {cause}"),
            Operation::Discard => {
                write!(
                    f,
                    "cannot discard {length} bytes at {offset} of {device}: {cause}"
                )
            }
            Operation::Resize => write!(f, "cannot resize {device} to {offset} bytes: {cause}"),
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ThisProcess => {
                f.write_str("this process has it open already; close it there first")
            }
            Self::Process { pid, command } => write!(
                f,
                "it is in use by process {pid} ({command}); unmount it there or end that process first"
            ),
            Self::Mount { target } => write!(
                f,
                "a file system of the kernel is mounted from it at {target}; unmount that first"
            ),
            Self::Device { name } => write!(
                f,
                "the block device {name} is made of it; take that down first, or open {name} instead"
            ),
            Self::Unknown => f.write_str(
                "it is in use by somebody who cannot be seen from here; \
                 as root, fuser(1) may name the process to end first",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_device_operation_place_and_cause() {
        let cause = Cause::from(Errno::EIO);
        let error = DeviceError::new("image file a.hf".into(), Operation::Read, 4096, 512, cause);
        assert_eq!(
            error.to_string(),
            "cannot read 512 bytes at 4096 of image file a.hf: Input/output error (os error 5)"
        );
        assert_eq!(error.errno(), Errno::EIO);
    }

    #[test]
    fn a_full_host_is_told_from_other_failures_and_keeps_its_kind() {
        for (errno, kind) in [
            (Errno::ENOSPC, io::ErrorKind::StorageFull),
            (Errno::EDQUOT, io::ErrorKind::QuotaExceeded),
        ] {
            let error = DeviceError::new("x".into(), Operation::Write, 0, 512, Cause::from(errno));
            assert!(error.is_no_space());
            let error = io::Error::from(error);
            assert_eq!(error.kind(), kind);
            assert_eq!(error.raw_os_error(), Some(errno.raw()));
        }
        let other = DeviceError::new("x".into(), Operation::Write, 0, 0, Errno::EIO.into());
        assert!(!other.is_no_space());
    }
}
