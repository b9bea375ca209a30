//! The two sides of `holdfast cp`: a path of the host, or one in a volume.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// An optional prefix of a volume, as for `holdfast mount`.
const VOLUME: &[u8] = b"volume:";
/// The separator between a volume and the absolute path in it.
const PARTS: &[u8] = b":/";

/// A source or target of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A path of the host.
    Host(PathBuf),
    /// A path in a volume.
    Volume {
        /// Its image file or block device.
        image: PathBuf,
        /// The path, from its root.
        path: PathBuf,
    },
}

impl Place {
    /// Parses an argument of the command. `VOLUME:/PATH` is in a volume, unless that file does not
    /// exist and a directory of the host has the name `VOLUME:`.
    pub(crate) fn of(text: &OsStr) -> Self {
        let bytes = text.as_bytes();
        let named = bytes.strip_prefix(VOLUME);
        let rest = named.unwrap_or(bytes);
        let Some(at) = rest.windows(PARTS.len()).position(|window| window == PARTS) else {
            return Self::Host(text.into());
        };
        let image = PathBuf::from(OsString::from_vec(rest[..at].to_vec()));
        let path = PathBuf::from(OsString::from_vec(rest[at + 1..].to_vec()));
        let dir = OsString::from_vec(rest[..=at].to_vec());
        let is_of_host = !image.exists() && Path::new(&dir).is_dir();
        if image.as_os_str().is_empty() || (named.is_none() && is_of_host) {
            return Self::Host(text.into());
        }
        Self::Volume { image, path }
    }

    /// The image of the volume, if the place is in one.
    pub(crate) fn image(&self) -> Option<&Path> {
        match self {
            Self::Host(_) => None,
            Self::Volume { image, .. } => Some(image),
        }
    }

    /// The path on its side.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Host(path) | Self::Volume { path, .. } => path,
        }
    }

    /// The same side with another path.
    pub(crate) fn with(&self, path: PathBuf) -> Self {
        match self {
            Self::Host(_) => Self::Host(path),
            Self::Volume { image, .. } => Self::Volume {
                image: image.clone(),
                path,
            },
        }
    }
}

impl FromStr for Place {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self::of(OsStr::new(text)))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(path) => write!(f, "{}", path.display()),
            Self::Volume { image, path } => write!(f, "{}:{}", image.display(), path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(image: &str, path: &str) -> Place {
        Place::Volume {
            image: image.into(),
            path: path.into(),
        }
    }

    #[test]
    fn what_follows_a_colon_and_a_slash_lies_in_a_volume() {
        for (text, place) in [
            ("data.hf:/", volume("data.hf", "/")),
            ("./a/data.hf:/b/c", volume("./a/data.hf", "/b/c")),
            ("/dev/sda:/etc", volume("/dev/sda", "/etc")),
            ("volume:data.hf:/x", volume("data.hf", "/x")),
            ("data.hf:/a:/b", volume("data.hf", "/a:/b")),
        ] {
            assert_eq!(Place::of(text.as_ref()), place, "{text}");
            let shown = place.to_string();
            assert_eq!(shown.parse(), Ok(place), "{text}");
        }
    }

    #[test]
    fn all_else_is_a_path_of_the_host() {
        for text in ["data.hf", "a:b", "/a/b", ":/x", "", "c:"] {
            assert_eq!(Place::of(text.as_ref()), Place::Host(text.into()), "{text}");
        }
    }

    #[test]
    fn a_directory_of_the_host_may_end_with_a_colon() {
        let dir = tempfile::tempdir().unwrap();
        let odd = dir.path().join("odd:");
        std::fs::create_dir(&odd).unwrap();
        let file = odd.join("file");
        assert_eq!(Place::of(file.as_os_str()), Place::Host(file.clone()));
        std::fs::write(dir.path().join("odd"), "").unwrap();
        let image = Place::of(file.as_os_str());
        assert_eq!(image.path(), Path::new("/file"));
    }
}
