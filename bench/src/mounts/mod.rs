//! File systems that a run makes, mounts, and takes away again: ours, and the kernel's on loop
//! devices.
//!
//! *Invariants.* An image is a new file, never one that was there. Dropping a [`Place`] unmounts
//! and removes what it made, also when the run failed or was interrupted. A mount point is removed
//! only as an empty directory.

mod holdfast;
mod kernel;
mod place;

pub(crate) use holdfast::{Holdfast, HoldfastArgs, ask};
pub(crate) use kernel::Kind;
pub(crate) use place::{Need, Place};

use crate::commands;
use crate::targets::Parent;
use anyhow::{Error, Result, bail};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// What the command line names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mountable {
    /// `mem:`: our mount of a file system in memory.
    Memory,
    /// `hf:IMAGE`: our mount of a volume in a new image file.
    Volume(PathBuf),
    /// `ext4:IMAGE` and others: a file system of the kernel on a loop device over a new image file.
    Kernel(Kind, PathBuf),
    /// `dir:PATH`: a directory that is there already, of whatever file system.
    Directory(PathBuf),
}

impl Mountable {
    /// Is it this program's own? Others are what it is measured against.
    pub(crate) fn is_ours(&self) -> bool {
        matches!(self, Self::Memory | Self::Volume(_))
    }

    /// Can it be emptied from memory, and be there again?
    pub(crate) fn can_be_cold(&self) -> bool {
        *self != Self::Memory
    }

    /// Programs of the host that it needs.
    pub(crate) fn programs(&self) -> Vec<&'static str> {
        match self {
            Self::Kernel(kind, _) => vec![kind.mkfs(), "mount", "umount"],
            Self::Memory | Self::Volume(_) | Self::Directory(_) => Vec::new(),
        }
    }
}

/// What a run's targets have in common.
pub(crate) struct Ready {
    /// The command that mounts those that are ours, if any is.
    pub(crate) holdfast: Option<Holdfast>,
    _parents: Vec<Parent>,
}

/// Sees to what these targets need, for as long as the result is kept.
///
/// # Errors
/// Names a program that is missing, or a directory that cannot be made.
pub(crate) fn ready(targets: &[Mountable], args: &HoldfastArgs) -> Result<Ready> {
    commands::require(targets.iter().flat_map(Mountable::programs))?;
    let ours = targets.iter().any(Mountable::is_ours);
    let parents = targets.iter().filter_map(|target| match target {
        Mountable::Directory(path) => Some(Parent::ready(path)),
        _ => None,
    });
    Ok(Ready {
        holdfast: ours.then(|| Holdfast::find(args)).transpose()?,
        _parents: parents.collect::<Result<_>>()?,
    })
}

impl FromStr for Mountable {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (word, path) = text.split_once(':').unwrap_or((text, ""));
        if word == "mem" && text.ends_with(':') && path.is_empty() {
            return Ok(Self::Memory);
        }
        let kind = Kind::named(word);
        match (word, kind) {
            _ if path.is_empty() => {}
            ("hf", _) => return Ok(Self::Volume(path.into())),
            ("dir", _) => return Ok(Self::Directory(path.into())),
            (_, Some(kind)) => return Ok(Self::Kernel(kind, path.into())),
            _ => {}
        }
        bail!(
            "not a target: `{text}` (known are `mem:`, `hf:IMAGE`, `ext4:IMAGE`, `xfs:IMAGE`, `btrfs:IMAGE` and `dir:PATH`)"
        )
    }
}

impl fmt::Display for Mountable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("mem:"),
            Self::Volume(path) => write!(f, "hf:{}", path.display()),
            Self::Kernel(kind, path) => write!(f, "{kind}:{}", path.display()),
            Self::Directory(path) => write!(f, "dir:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_and_shown_alike_and_others_are_refused() {
        for text in [
            "mem:",
            "hf:/x/h.hf",
            "ext4:e",
            "xfs:/x:y",
            "btrfs:/b",
            "dir:/tmp",
        ] {
            let target: Mountable = text.parse().expect("a target");
            assert_eq!(target.to_string(), text);
            assert_eq!(
                target.is_ours(),
                text.starts_with("mem") || text.starts_with("hf")
            );
        }
        for text in [
            "mem",
            "mem:x",
            "hf:",
            "ext4:",
            "ext3:/x",
            "/tmp",
            "volume:/x",
            "",
        ] {
            let error = text.parse::<Mountable>().expect_err("refused");
            assert!(error.to_string().contains("known are `mem:`"), "{error}");
        }
    }
}
