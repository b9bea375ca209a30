//! The kernel's file systems, made in image files and mounted through loop devices.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::process::Command;

/// A file system of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Tables of inodes and the journal are written at once, not behind the measurement's back.
    Ext4,
    /// With its defaults.
    Xfs,
    /// With its defaults.
    Btrfs,
}

const KINDS: [Kind; 3] = [Kind::Ext4, Kind::Xfs, Kind::Btrfs];

impl Kind {
    /// The one of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        KINDS.into_iter().find(|kind| kind.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    /// The program that makes one.
    pub(super) fn mkfs(self) -> &'static str {
        match self {
            Self::Ext4 => "mkfs.ext4",
            Self::Xfs => "mkfs.xfs",
            Self::Btrfs => "mkfs.btrfs",
        }
    }

    /// Makes one in this image file.
    pub(super) fn make(self, image: &Path) -> Command {
        let mut command = Command::new(self.mkfs());
        command.arg("-q");
        if self == Self::Ext4 {
            command.args(["-E", "lazy_itable_init=0,lazy_journal_init=0"]);
        }
        command.arg(image);
        command
    }

    /// Mounts the image.
    pub(super) fn mount(self, image: &Path, point: &Path) -> Command {
        let mut command = Command::new("mount");
        command.args(["-t", self.name(), "-o", "loop"]);
        command.args([image, point]);
        command
    }
}

/// Unmounts what is mounted there, now or when its last user has gone.
pub(super) fn unmount(point: &Path, lazily: bool) -> Command {
    let mut command = Command::new("umount");
    let options = lazily.then(|| OsString::from("-l"));
    command.args(options).arg(point);
    command
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
