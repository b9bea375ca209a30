//! What is listed.

use super::phase::Phase;
use anyhow::{Error, bail};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// How a directory is come by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// `volume:`: of a volume in this process, on a new image file, which becomes slow.
    Volume,
    /// `host:`: a slow host's, behind the host-directory store in this process.
    Host,
    /// `mount:`: a slow host's, behind a mount of it, by system calls.
    Mount,
    /// `dir:`: a slow host's, by system calls.
    Plain,
}

const WAYS: [(&str, Way); 4] = [
    ("volume", Way::Volume),
    ("host", Way::Host),
    ("mount", Way::Mount),
    ("dir", Way::Plain),
];

/// What the command line names: `volume:PATH` and others. What is made for it lies beside that
/// path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) way: Way,
    path: PathBuf,
}

impl Listed {
    /// Is there a call for this?
    pub(super) fn can(&self, phase: Phase) -> bool {
        match self.way {
            Way::Volume | Way::Host => true,
            Way::Mount | Way::Plain => phase != Phase::ListingPlus,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl FromStr for Listed {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if let Some((word, path)) = text.split_once(':').filter(|(_, path)| !path.is_empty())
            && let Some((_, way)) = WAYS.iter().find(|(name, _)| *name == word)
        {
            let (way, path) = (*way, path.into());
            return Ok(Self { way, path });
        }
        bail!(
            "not a target: `{text}` (known are `volume:PATH`, `host:PATH`, `mount:PATH` and `dir:PATH`)"
        )
    }
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = WAYS.iter().find(|(_, way)| *way == self.way);
        let name = named.map_or("", |(name, _)| name);
        write!(f, "{name}:{}", self.path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_and_shown_alike_and_others_are_refused() {
        for text in ["volume:/tmp/x:y", "host:x", "mount:/x", "dir:/x"] {
            let target: Listed = text.parse().expect("a target");
            assert_eq!(target.to_string(), text);
        }
        for text in ["volume:", "volume", "mem:", "host", ""] {
            let error = text.parse::<Listed>().expect_err("refused");
            assert!(error.to_string().contains("volume:PATH"), "{error}");
        }
    }
}
