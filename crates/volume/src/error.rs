//! What can go wrong with a volume.

use holdfast_device::DeviceError;
use holdfast_types::Errno;
use thiserror::Error;

use crate::superblock::SlotError;
use crate::{journal, space, tree};

/// A result whose error is a volume's.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong with a volume.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The device below.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// There is no superblock that can be used.
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
        /// What it holds, as the sentence goes on.
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
    /// The device cannot be told what is free.
    #[error("{device} takes no discards")]
    NoDiscard {
        /// The device.
        device: String,
    },
    /// A volume of this shape cannot be.
    #[error("{0}")]
    Geometry(String),
    /// A tree.
    #[error(transparent)]
    Tree(#[from] tree::Error),
    /// Space.
    #[error(transparent)]
    Space(#[from] space::Error),
    /// The journal.
    #[error("journal: {0}")]
    Journal(#[from] journal::Error),
    /// Something on the volume contradicts itself.
    #[error("damaged: {0}")]
    Damaged(String),
    /// A thread panicked in the midst of changing something.
    #[error("a panic during {0}")]
    Panicked(&'static str),
    /// The thread that commits cannot be started.
    #[error("the volume's thread cannot be started: {0}")]
    Thread(#[source] std::io::Error),
    /// An earlier error stopped all writing.
    #[error("an earlier error stopped all writing: {0}")]
    Stopped(String),
}

impl Error {
    /// What the core answers.
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

/// What is wrong with each slot, said once where it is the same.
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
