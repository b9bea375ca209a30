//! What is listed.

use anyhow::{Error, bail};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// What the command line names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Listed {
    /// `volume:PATH`: a volume in this process, on a new image file beside this path, which becomes slow.
    Volume(PathBuf),
}

impl FromStr for Listed {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text.split_once(':') {
            Some(("volume", path)) if !path.is_empty() => Ok(Self::Volume(path.into())),
            _ => bail!("not a target: `{text}` (known is `volume:PATH`)"),
        }
    }
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Volume(path) => write!(f, "volume:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_and_shown_alike_and_others_are_refused() {
        let target: Listed = "volume:/tmp/x:y".parse().expect("a target");
        assert_eq!(target.to_string(), "volume:/tmp/x:y");
        for text in ["volume:", "volume", "mem:", ""] {
            let error = text.parse::<Listed>().expect_err("refused");
            assert!(error.to_string().contains("volume:PATH"), "{error}");
        }
    }
}
