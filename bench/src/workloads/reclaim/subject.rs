//! What is measured.

use crate::mounts::Mountable;
use anyhow::{Error, Result, bail};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// What the command line names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// `volume:PATH`: a volume in a process of its own, on a new image file beside this path.
    Volume(PathBuf),
    /// `ext4:IMAGE` and others: a file system of the kernel, which has no budget but that of its control group.
    Host(Mountable),
}

impl Subject {
    /// Where what is made for it may lie.
    pub(super) fn beside(&self) -> PathBuf {
        match self {
            Self::Host(Mountable::Directory(_) | Mountable::Memory) => std::env::temp_dir(),
            Self::Volume(path)
            | Self::Host(Mountable::Kernel(_, path) | Mountable::Volume(path)) => {
                match path.parent() {
                    Some(parent) if parent != Path::new("") => parent.to_owned(),
                    _ => PathBuf::from("."),
                }
            }
        }
    }
}

impl FromStr for Subject {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if let Some(path) = text.strip_prefix("volume:").filter(|path| !path.is_empty()) {
            return Ok(Self::Volume(path.into()));
        }
        match text.parse() {
            Ok(host @ (Mountable::Kernel(..) | Mountable::Directory(_))) => Ok(Self::Host(host)),
            _ => bail!(
                "not a target: `{text}` (known are `volume:PATH`, `ext4:IMAGE`, `xfs:IMAGE`, `btrfs:IMAGE` and `dir:PATH`)"
            ),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Volume(path) => write!(f, "volume:{}", path.display()),
            Self::Host(host) => host.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_and_shown_alike_and_others_are_refused() {
        for (text, beside) in [
            ("volume:/x/v", "/x"),
            ("volume:v", "."),
            ("ext4:/y/e:f", "/y"),
            ("xfs:x", "."),
        ] {
            let target: Subject = text.parse().expect("a target");
            assert_eq!(target.to_string(), text);
            assert_eq!(target.beside(), Path::new(beside));
        }
        for text in ["volume:", "mem:", "hf:/x", "ext3:/x", "/x", ""] {
            let error = text.parse::<Subject>().expect_err("refused");
            assert!(
                error.to_string().contains("known are `volume:PATH`"),
                "{error}"
            );
        }
    }
}
