use holdfast_types::Errno;
use std::{fmt, io};

/// A result whose error is a [`DeviceError`].
pub type Result<T, E = DeviceError> = std::result::Result<T, E>;

/// What a device could not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceError {
    /// As [`BlockDevice::describe`](crate::BlockDevice::describe) calls it.
    pub device: String,
    /// What was asked.
    pub operation: Operation,
    /// Where it began, in bytes; the new size for [`Operation::Resize`].
    pub offset: u64,
    /// How many bytes it was for.
    pub length: u64,
    /// Why it failed.
    pub cause: Cause,
}

/// What was asked of a device.
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

/// Why a device could not do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// The operating system's answer, but for those that follow.
    #[error("{0}")]
    Os(Errno),
    /// The file system or the quota that the image lies in is full (the raw error tells which).
    #[error("{0}; free space where the image lies")]
    NoSpace(Errno),
    /// The range ends past the device.
    #[error("the device ends at {size}")]
    OutOfRange {
        /// Its size in bytes.
        size: u64,
    },
    /// Offset or length is no multiple of what the device needs.
    #[error("not aligned to {alignment} bytes")]
    Misaligned {
        /// That in bytes.
        alignment: u64,
    },
    /// Opened for reading only.
    #[error("it is open for reading only")]
    ReadOnly,
    /// The file has become shorter than it was: somebody cuts what we have locked.
    #[error("the file ends at {end}: something has truncated it")]
    Truncated {
        /// Where its bytes end now.
        end: u64,
    },
    /// Devices only grow.
    #[error("it has {size} bytes and cannot shrink")]
    Shrinks {
        /// Its size in bytes.
        size: u64,
    },
    /// A block device is as large as it is.
    #[error("it has {size} bytes; enlarge the device below first")]
    Fixed {
        /// Its size in bytes.
        size: u64,
    },
    /// Neither a regular file nor a block device.
    #[error("neither a regular file nor a block device")]
    NotADevice,
    /// Somebody else has it open.
    #[error("{0}")]
    Held(Holder),
    /// An earlier flush failed with this, and what it lost stays lost.
    #[error("an earlier flush failed ({0}): what was written since the one before may be lost")]
    FlushFailed(Errno),
}

/// Who keeps a device from being opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// This process, through another open device.
    ThisProcess,
    /// Another process.
    Process {
        /// Its number, as seen from here.
        pid: u32,
        /// What it runs, as in its command line.
        command: String,
    },
    /// A file system of the kernel is mounted from it.
    Mount {
        /// Where.
        target: String,
    },
    /// Another block device is made of it, such as `dm-0` or `md0`.
    Device {
        /// Its name in the kernel.
        name: String,
    },
    /// Somebody who cannot be seen from here: of another user, or another container.
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

    /// Whether space has run out below: what was asked can succeed once some is freed there.
    #[must_use]
    pub const fn is_no_space(&self) -> bool {
        matches!(self.cause, Cause::NoSpace(_))
    }

    /// The error number that says most of it.
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

    /// The kind that [`io::Error`] gives it.
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

/// As its number: there is no room for the text beside it.
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
