//! The SOURCE argument of a mount.

use crate::message::{Failure, Result};
#[cfg(feature = "cluster")]
use holdfast_cluster::address::Address;
use std::{
    borrow::Cow,
    ffi::{OsStr, OsString},
    fmt,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// Prefixes of the path of a volume and of a directory.
const VOLUME: &str = "volume:";
const DIRECTORY: &str = "dir:";

/// What is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A new file system in memory, lost at unmount.
    Memory,
    /// A volume in an image file or on a block device.
    Volume(PathBuf),
    /// A directory of the host.
    Directory(PathBuf),
    /// A file system of several machines.
    #[cfg(feature = "cluster")]
    Cluster(Box<Address>),
}

/// The type of a source, as of mount(8)'s `-t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// A new file system in memory
    Mem,
    /// A volume in an image file or on a block device
    Volume,
    /// A directory of the host
    Dir,
    /// A file system of several machines, pg://...
    #[cfg(feature = "cluster")]
    Cluster,
    // In the release before, `-t` was short for `--transport`.
    #[value(hide = true)]
    Auto,
    #[value(hide = true)]
    Dev,
    #[value(hide = true)]
    Uring,
}

impl Kind {
    /// The transport that this word is the name of.
    pub(crate) fn transport(self) -> Option<String> {
        let is_one = matches!(self, Self::Auto | Self::Dev | Self::Uring);
        is_one.then(|| format!("{self:?}").to_lowercase())
    }
}

impl Source {
    /// The same with an absolute path, links resolved if the path exists.
    ///
    /// # Errors
    /// If there is no current directory.
    pub(crate) fn absolute(self) -> Result<Self> {
        Ok(match self {
            Self::Memory => Self::Memory,
            Self::Volume(path) => Self::Volume(absolute(path)?),
            Self::Directory(path) => Self::Directory(absolute(path)?),
            #[cfg(feature = "cluster")]
            Self::Cluster(mut address) => {
                address.begin_paths_in(&absolute(".".into())?);
                Self::Cluster(address)
            }
        })
    }
}

fn absolute(path: PathBuf) -> Result<PathBuf> {
    match path.canonicalize() {
        Ok(path) => Ok(path),
        Err(_) => std::path::absolute(&path).map_err(|error| {
            let failure = Failure::new(format!("the current directory is unknown: {error}"));
            failure.at(&path).hint("give the whole path")
        }),
    }
}

impl Source {
    /// Parses an argument. The path of an existing directory means the directory.
    ///
    /// # Errors
    /// If it is neither a path nor the name of a source.
    pub(crate) fn of(given: &OsStr) -> Result<Self> {
        #[cfg(feature = "cluster")]
        if let Some(address) = crate::cluster::parse(given)? {
            return Ok(Self::Cluster(Box::new(address)));
        }
        let text = given.to_string_lossy();
        let bytes = given.as_bytes();
        let path = OsStr::from_bytes(bytes.strip_prefix(VOLUME.as_bytes()).unwrap_or(bytes));
        match bytes {
            b"mem:" => Ok(Self::Memory),
            [b'd', b'i', b'r', b':', path @ ..] if !path.is_empty() => {
                Ok(Self::Directory(OsStr::from_bytes(path).into()))
            }
            _ if path.is_empty() => Err(Failure::new("there is no such source")
                .about(format!("{text:?}"))
                .hint("an image file, a block device, a directory, or `mem:`: a new file system in memory")),
            _ if is_scheme(path) => Err(Failure::new("there is no such kind of source")
                .about(text)
                .hint(format!(
                    "an image file, a block device, a directory, or `mem:`; for a file of this name: ./{}",
                    path.display()
                ))),
            _ if path.len() == bytes.len() && Path::new(path).is_dir() => {
                Ok(Self::Directory(path.into()))
            }
            _ => Ok(Self::Volume(path.into())),
        }
    }

    /// Parses an argument of this type, or of any.
    ///
    /// # Errors
    /// If the argument means a source of another type.
    pub(crate) fn of_type(given: &OsStr, kind: Option<Kind>) -> Result<Self> {
        let (found, other) = match (Self::of(given), kind) {
            (_, Some(Kind::Mem)) if given == "mem" || given == "none" => return Ok(Self::Memory),
            (Ok(Self::Volume(path)), Some(Kind::Dir)) if !path.exists() => {
                return Ok(Self::Directory(path));
            }
            #[cfg(feature = "cluster")]
            (Ok(Self::Cluster(_)), Some(Kind::Mem | Kind::Volume | Kind::Dir)) => {
                ("a file system of several machines", "cluster")
            }
            #[cfg(feature = "cluster")]
            (Ok(Self::Memory), Some(Kind::Cluster)) => ("a file system in memory", "mem"),
            #[cfg(feature = "cluster")]
            (Ok(Self::Directory(_)), Some(Kind::Cluster)) => ("a directory", "dir"),
            #[cfg(feature = "cluster")]
            (Ok(Self::Volume(_)), Some(Kind::Cluster)) => ("an image or a device", "volume"),
            (Ok(Self::Memory), Some(Kind::Volume | Kind::Dir)) => {
                ("a file system in memory", "mem")
            }
            (Ok(Self::Directory(_)), Some(Kind::Mem | Kind::Volume)) => ("a directory", "dir"),
            (Ok(Self::Volume(_)), Some(Kind::Mem | Kind::Dir)) => {
                ("an image or a device", "volume")
            }
            (source, _) => return source,
        };
        let failure = Failure::new(format!("is {found}, which -t does not ask for"));
        let failure = failure.about(given.display());
        Err(failure.hint(format!("-t {other}, or leave -t out")))
    }

    /// The argument that means this.
    pub(crate) fn argument(&self) -> Cow<'_, OsStr> {
        match self {
            Self::Memory => Cow::Borrowed("mem:".as_ref()),
            Self::Volume(path) => Cow::Borrowed(path.as_os_str()),
            #[cfg(feature = "cluster")]
            Self::Cluster(address) => Cow::Owned(address.argument().into()),
            Self::Directory(path) => {
                let mut argument = OsString::from(DIRECTORY);
                argument.push(path);
                Cow::Owned(argument)
            }
        }
    }
}

/// Does it look like `name:...`, and not like a path?
fn is_scheme(path: &OsStr) -> bool {
    let bytes = path.as_bytes();
    let colon = bytes.iter().position(|&byte| byte == b':').unwrap_or(0);
    let before = &bytes[..colon];
    !before.is_empty() && !before.contains(&b'/') && !before.contains(&b'.')
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("mem:"),
            Self::Volume(path) | Self::Directory(path) => write!(f, "{}", path.display()),
            #[cfg(feature = "cluster")]
            Self::Cluster(address) => write!(f, "{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_paths_are_sources() {
        assert_eq!(Source::of("mem:".as_ref()), Ok(Source::Memory));
        for (text, path) in [
            ("data.hf", "data.hf"),
            ("volume:data.hf", "data.hf"),
            ("volume:/dev/sda", "/dev/sda"),
            ("/a:b/c", "/a:b/c"),
            ("./mem:x", "./mem:x"),
        ] {
            let source = Source::of(text.as_ref());
            assert_eq!(source, Ok(Source::Volume(path.into())), "{text}");
        }
        for text in ["dir:/no/such", "/tmp", "/tmp/."] {
            let source = Source::of(text.as_ref()).unwrap();
            let path = text.trim_start_matches(DIRECTORY);
            assert_eq!(source, Source::Directory(path.into()), "{text}");
            assert_eq!(Source::of(&source.argument()), Ok(source));
        }
        let volume = Source::Volume("/tmp".into());
        assert_eq!(Source::of("volume:/tmp".as_ref()), Ok(volume));
        let bytes = OsStr::from_bytes(b"volume:/\xff:\xfe");
        let source = Source::of(bytes).unwrap();
        assert_eq!(source.argument().as_bytes(), b"/\xff:\xfe");
    }

    #[cfg(feature = "cluster")]
    #[test]
    fn an_address_is_a_source_that_is_shown_without_its_password() {
        let given = "pg://u:verysecret@db/files?fs=team&sslrootcert=ca.crt&bucket=s3://b";
        let source = Source::of(given.as_ref()).unwrap().absolute().unwrap();
        assert_eq!(source.to_string(), "pg://u@db/files?fs=team");
        let argument = source.argument().to_string_lossy().into_owned();
        assert!(argument.starts_with("pg://u@db/files?fs=team&sslrootcert=/"));
        assert!(argument.contains("/ca.crt"), "{argument}");
        for text in [argument, format!("{source:?}")] {
            assert!(!text.contains("verysecret"), "{text}");
        }
        let given = "pg://u:verysecret@db:port/files".as_ref();
        let refused = Source::of(given).unwrap_err().to_string();
        assert!(
            refused.contains("port") && !refused.contains("verysecret"),
            "{refused}"
        );
        for kind in [Kind::Mem, Kind::Volume, Kind::Dir] {
            let refused = Source::of_type("pg://db/x".as_ref(), Some(kind)).unwrap_err();
            assert!(refused.to_string().contains("-t cluster"), "{refused}");
        }
        assert!(Source::of_type("pg://db/x".as_ref(), Some(Kind::Cluster)).is_ok());
        assert!(Source::of_type("mem:".as_ref(), Some(Kind::Cluster)).is_err());
    }

    #[test]
    fn a_type_agrees_with_its_source() {
        let of = |kind, given: &str| Source::of_type(given.as_ref(), Some(kind));
        for given in ["mem:", "mem", "none"] {
            assert_eq!(of(Kind::Mem, given), Ok(Source::Memory), "{given}");
        }
        assert_eq!(of(Kind::Volume, "a.hf"), Ok(Source::Volume("a.hf".into())));
        assert_eq!(of(Kind::Dir, "/tmp"), Ok(Source::Directory("/tmp".into())));
        let missing = Source::Directory("/no/such".into());
        assert_eq!(of(Kind::Dir, "/no/such"), Ok(missing));
        assert_eq!(of(Kind::Dev, "mem:"), Ok(Source::Memory));
        for (kind, given, hint) in [
            (Kind::Mem, "a.hf", "-t volume"),
            (Kind::Volume, "/tmp", "-t dir"),
            (Kind::Volume, "mem:", "-t mem"),
            (Kind::Dir, "mem:", "-t mem"),
            (Kind::Dir, "/proc/self/exe", "-t volume"),
        ] {
            let failure = of(kind, given).unwrap_err().to_string();
            assert!(failure.starts_with(&format!("{given}: ")), "{failure}");
            assert!(failure.contains(hint), "{failure}");
        }
    }

    #[test]
    fn what_is_neither_is_told_what_there_is() {
        for other in ["", "volume:", "dir:", "mem:x", "redis:y"] {
            let failure = Source::of(other.as_ref()).unwrap_err();
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
