//! What is mounted: the SOURCE argument.

use crate::message::{Failure, Result};
use std::{fmt, str::FromStr};

/// Where a mounted file system's content comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Memory: empty at first, gone at the end.
    Memory,
}

impl FromStr for Source {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "mem:" => Ok(Self::Memory),
            _ => Err(Failure::new("there is no such kind of source")
                .about(text)
                .hint("`mem:` is the one there is: a new, empty file system in memory")),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "mem:",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_memory_is_a_source_and_others_are_told_so() {
        assert_eq!("mem:".parse(), Ok(Source::Memory));
        for other in ["", "mem", "mem:x", "volume:/dev/sda", "/dev/sda"] {
            let failure = other.parse::<Source>().unwrap_err();
            assert!(failure.to_string().contains("`mem:`"), "{failure}");
        }
        assert_eq!(Source::Memory.to_string().parse(), Ok(Source::Memory));
    }
}
