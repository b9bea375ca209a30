//! What is mounted: the SOURCE argument.

use crate::message::{Failure, Result};
use std::path::{Path, PathBuf};
use std::{fmt, str::FromStr};

/// What says that a path follows.
const VOLUME: &str = "volume:";

/// Where a mounted file system's content comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Memory: empty at first, gone at the end.
    Memory,
    /// A volume in an image file or on a block device.
    Volume(PathBuf),
}

impl Source {
    /// The same with a path that holds in any directory, links followed as far as it is there.
    ///
    /// # Errors
    /// If there is no current directory.
    pub(crate) fn absolute(self) -> Result<Self> {
        Ok(match self {
            Self::Memory => Self::Memory,
            Self::Volume(path) => {
                let found = path.canonicalize();
                Self::Volume(match found {
                    Ok(path) => path,
                    Err(_) => std::path::absolute(&path)?,
                })
            }
        })
    }
}

impl FromStr for Source {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self> {
        let path = text.strip_prefix(VOLUME).unwrap_or(text);
        match text {
            "mem:" => Ok(Self::Memory),
            _ if path.is_empty() => Err(Failure::new("there is no such source")
                .about(text)
                .hint("an image file, a block device, or `mem:`: a new file system in memory")),
            _ if is_scheme(path) => Err(Failure::new("there is no such kind of source")
                .about(text)
                .hint(format!(
                    "an image file, a block device, or `mem:`; for a file of this name: ./{path}"
                ))),
            _ => Ok(Self::Volume(Path::new(path).to_owned())),
        }
    }
}

/// Does it look like `name:...`, and not like a path?
fn is_scheme(text: &str) -> bool {
    let before = text.split_once(':').map_or("", |(before, _)| before);
    !before.is_empty() && !before.contains(['/', '.'])
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("mem:"),
            Self::Volume(path) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_paths_are_sources() {
        assert_eq!("mem:".parse(), Ok(Source::Memory));
        for (text, path) in [
            ("data.hf", "data.hf"),
            ("volume:data.hf", "data.hf"),
            ("volume:/dev/sda", "/dev/sda"),
            ("/a:b/c", "/a:b/c"),
            ("./mem:x", "./mem:x"),
        ] {
            assert_eq!(text.parse(), Ok(Source::Volume(path.into())), "{text}");
        }
    }

    #[test]
    fn what_is_neither_is_told_what_there_is() {
        for other in ["", "volume:", "mem:x", "redis:y"] {
            let failure = other.parse::<Source>().unwrap_err();
            assert!(failure.to_string().contains("`mem:`"), "{failure}");
        }
    }

    #[test]
    fn a_path_is_made_absolute_before_a_daemon_leaves_its_directory() {
        let source = Source::Volume("no-such-file.hf".into()).absolute().unwrap();
        let Source::Volume(path) = source else {
            panic!("still a volume");
        };
        assert!(path.is_absolute() && path.ends_with("no-such-file.hf"));
    }
}
