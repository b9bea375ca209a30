//! Errors of a volume.

use holdfast_device::DeviceError;
use holdfast_types::Errno;
use thiserror::Error;

use crate::superblock::SlotError;
use crate::{journal, space, tree};

/// A result with a volume's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a volume.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// No superblock is usable.
    #[error("{device}: no usable superblock ({})", reasons(slots))]
    Superblock {
        /// The device.
        device: String,
        /// What is wrong with each slot.
        slots: [SlotError; 2],
    },
    /// The device holds something else.
    #[error("{device} holds no Holdfast volume{instead}")]
    NoVolume {
        /// The device.
        device: String,
        /// What it holds, as the end of the sentence.
        instead: String,
    },
    /// The device is shorter than the volume on it.
    #[error("{device} has {found} blocks of the {expected} that its volume has: it was cut short")]
    CutShort {
        /// The device.
        device: String,
        /// Blocks of the device.
        found: u64,
        /// Blocks of the volume.
        expected: u64,
    },
    /// The volume has features without which it must not be changed.
    #[error(
        "the volume on {device} has read-only compatible features {features:#x} that this Holdfast does not know: \
         use a newer one, or only read it (`-o ro,norecovery`)"
    )]
    ReadOnlyFeatures {
        /// The device.
        device: String,
        /// The unknown features, a bit each.
        features: u64,
    },
    /// The device does not support discards.
    #[error("{device} takes no discards")]
    NoDiscard {
        /// The device.
        device: String,
    },
    /// The requested size or layout is impossible.
    #[error("{0}")]
    Geometry(String),
    /// A tree.
    #[error(transparent)]
    Tree(#[from] tree::Error),
    /// The allocator.
    #[error(transparent)]
    Space(#[from] space::Error),
    /// The journal.
    #[error("journal: {0}")]
    Journal(#[from] journal::Error),
    /// Structures of the volume contradict each other.
    #[error("damaged: {0}")]
    Damaged(String),
    /// A thread panicked during a change.
    #[error("a panic during {0}")]
    Panicked(&'static str),
    /// The volume's thread could not be started.
    #[error("the volume's thread cannot be started: {0}")]
    Thread(#[source] std::io::Error),
    /// An earlier error stopped all writing.
    #[error("an earlier error stopped all writing: {0}")]
    Stopped(String),
}

impl Error {
    /// The core's view of the error.
    #[must_use]
    pub fn errno(&self) -> Errno {
        match self {
            Self::Device(error) => error.errno(),
            Self::Tree(tree::Error::Device { errno, .. })
            | Self::Space(space::Error::Unread { errno, .. }) => *errno,
            Self::Tree(tree::Error::NoSpace)
            | Self::Space(space::Error::Full { .. } | space::Error::Later { .. })
            | Self::Journal(journal::Error::Full | journal::Error::TooLarge { .. }) => {
                Errno::ENOSPC
            }
            Self::Journal(journal::Error::Device(_) | journal::Error::Failed)
            | Self::Panicked(_)
            | Self::Stopped(_) => Errno::EIO,
            Self::Geometry(_) => Errno::EINVAL,
            Self::Thread(error) => error.raw_os_error().map_or(Errno::EAGAIN, Errno::from_raw),
            Self::NoDiscard { .. } => Errno::EOPNOTSUPP,
            Self::ReadOnlyFeatures { .. } => Errno::EROFS,
            Self::Superblock { .. }
            | Self::NoVolume { .. }
            | Self::CutShort { .. }
            | Self::Tree(_)
            | Self::Space(_)
            | Self::Journal(_)
            | Self::Damaged(_) => Errno::EUCLEAN,
        }
    }
}

impl From<Error> for Errno {
    fn from(error: Error) -> Self {
        error.errno()
    }
}

/// The slots' errors, stated once if they are the same.
fn reasons(slots: &[SlotError; 2]) -> String {
    let [first, second] = slots.each_ref().map(ToString::to_string);
    if first == second {
        return first;
    }
    format!("{first}; {second}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_with_one_fault_share_one_reason() {
        let text = |slots| {
            let device = "image file x".to_owned();
            Error::Superblock { device, slots }.to_string()
        };
        assert_eq!(
            text([SlotError::Version(9), SlotError::Version(9)]),
            "image file x: no usable superblock (format version 9, and this Holdfast knows 1: use a newer one)"
        );
        let two = text([SlotError::Field("size"), SlotError::Version(9)]);
        assert!(
            two.contains("size is impossible; format version 9"),
            "{two}"
        );
    }
}
