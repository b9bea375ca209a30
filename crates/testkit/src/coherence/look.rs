//! Looks at names through the mount.

use super::change::{LABEL, TARGET, content};
use super::name::{Age, Kind, Name, State};
use rustix::fs::getxattr;
use rustix::io::Errno;
use rustix::pipe::fcntl_getpipe_size;
use std::fs::{self, File, FileType, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What a look found wrong.
#[derive(Debug)]
pub(super) struct Wrong(pub(super) String);

/// Looks at names of a mount.
pub(super) struct Looker {
    pub(super) mount: PathBuf,
    /// How old may be what is seen?
    pub(super) limit: Duration,
}

/// The oldest that was seen.
pub(super) type Seen = Result<Duration, Wrong>;

fn kind(of: FileType) -> Kind {
    match of {
        of if of.is_file() => Kind::File,
        of if of.is_symlink() => Kind::Link,
        of if of.is_dir() => Kind::Directory,
        of if of.is_fifo() => Kind::Pipe,
        _ => Kind::Absent,
    }
}

fn kind_of(mode: u32) -> Kind {
    match rustix::fs::FileType::from_raw_mode(mode) {
        rustix::fs::FileType::RegularFile => Kind::File,
        rustix::fs::FileType::Symlink => Kind::Link,
        rustix::fs::FileType::Directory => Kind::Directory,
        rustix::fs::FileType::Fifo => Kind::Pipe,
        _ => Kind::Absent,
    }
}

/// Does a name that something else has by now, or nothing, answer so?
fn leads_elsewhere(error: &io::Error) -> bool {
    let expected = [
        libc::ENOENT,
        libc::ENOTDIR,
        libc::EISDIR,
        libc::ELOOP,
        libc::EINVAL,
        libc::ENXIO,
        libc::ENODATA,
    ];
    error
        .raw_os_error()
        .is_some_and(|code| expected.contains(&code))
}

/// No state shows while it is being made.
pub(super) fn never(_: State) -> bool {
    false
}

/// A state of this kind shows while it is being made: with other permissions, or another size.
pub(super) fn of_kind(kind: Kind) -> impl Fn(State) -> bool {
    move |state| state.kind == kind
}

/// The version of a file that has this content; `None`: it is being written.
pub(super) fn version(bytes: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(bytes.get(..39)?).ok()?;
    let version = text.parse().ok()?;
    let state = State {
        version,
        ..State::ABSENT
    };
    (content(state) == bytes).then_some(version)
}

impl Looker {
    fn judged(
        &self,
        name: &Name,
        (what, found): (&str, String),
        during: (Instant, Instant),
        partly: impl Fn(State) -> bool,
        seen: impl Fn(State) -> bool,
    ) -> Seen {
        let is = || name.state();
        match name.age(during, partly, seen) {
            Age::Was(age) if age <= self.limit => Ok(age),
            Age::Was(age) => Err(Wrong(format!(
                "{}: {what}: {found}, {age:?} old; it is {:?}",
                name.path.display(),
                is()
            ))),
            Age::Never => Err(Wrong(format!(
                "{}: {what}: {found}, which it never was; it is {:?}",
                name.path.display(),
                is()
            ))),
        }
    }

    /// One of the looks at a name.
    pub(super) fn look(&self, name: &Name, which: u64) -> Seen {
        let path = self.mount.join(&name.path);
        match which % 5 {
            0 => self.stat(name, &path),
            1 => self.read(name, &path),
            2 => self.target(name, &path),
            3 => self.list(name, &path),
            _ => self.label(name, &path),
        }
    }

    /// All looks at a name, and at its directory.
    pub(super) fn look_at_all(&self, name: &Name) -> Seen {
        let mut oldest = self.listed(name)?;
        for which in 0..5 {
            oldest = oldest.max(self.look(name, which)?);
        }
        Ok(oldest)
    }

    /// Judges what failed: the name is not of this kind.
    fn failed(
        &self,
        name: &Name,
        (what, error): (&str, &io::Error),
        during: (Instant, Instant),
        kind: Kind,
    ) -> Seen {
        if !leads_elsewhere(error) {
            let found = format!("{}: {what}: {error}", name.path.display());
            return Err(Wrong(found));
        }
        self.judged(name, (what, error.to_string()), during, never, |state| {
            state.kind != kind
        })
    }

    fn stat(&self, name: &Name, path: &Path) -> Seen {
        let begun = Instant::now();
        // Not as std does it: a kernel asks for the time of birth each time, and so for all.
        let stat = rustix::fs::lstat(path).map_err(io::Error::from);
        let during = (begun, Instant::now());
        match stat {
            Ok(stat) => {
                let (kind, perm) = (kind_of(stat.st_mode), stat.st_mode & 0o7777);
                let size = stat.st_size.cast_unsigned();
                let found = format!("{kind:?} {perm:o} of {size} bytes");
                self.judged(name, ("lstat", found), during, of_kind(kind), |state| {
                    let is = state.kind == kind && state.perm == perm;
                    is && (kind != Kind::File || !state.is_notifying || state.size() == size)
                })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let found = error.to_string();
                self.judged(name, ("lstat", found), during, never, |state| {
                    state.kind == Kind::Absent
                })
            }
            Err(error) => Err(Wrong(format!("{}: lstat: {error}", name.path.display()))),
        }
    }

    fn read(&self, name: &Name, path: &Path) -> Seen {
        let begun = Instant::now();
        let mut options = OpenOptions::new();
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = match options.read(true).custom_flags(flags).open(path) {
            Ok(file) => file,
            Err(error) => {
                let during = (begun, Instant::now());
                return self.failed(name, ("open", &error), during, Kind::File);
            }
        };
        let bytes = file.metadata().and_then(|stat| match stat.is_file() {
            true => read_open(&file).map(Some),
            false => Ok(None),
        });
        let during = (begun, Instant::now());
        match bytes {
            Ok(Some(bytes)) => {
                let version = version(&bytes);
                let head = String::from_utf8_lossy(&bytes[..bytes.len().min(39)]).into_owned();
                let found = format!("{} bytes, {head}", bytes.len());
                self.judged(
                    name,
                    ("read", found),
                    during,
                    of_kind(Kind::File),
                    |state| state.kind == Kind::File && version == Some(state.version),
                )
            }
            Ok(None) => self.judged(name, ("open", "no file".into()), during, never, |state| {
                matches!(state.kind, Kind::Directory | Kind::Pipe)
            }),
            // The kernel opens a pipe by itself, so the mount does not hold it when others remove
            // it.
            Err(error)
                if error.raw_os_error() == Some(libc::ESTALE)
                    && fcntl_getpipe_size(&file).is_ok() =>
            {
                self.judged(name, ("open", "a pipe".into()), during, never, |state| {
                    state.kind == Kind::Pipe
                })
            }
            Err(error) => Err(Wrong(format!(
                "{}: read after open: {error}",
                name.path.display()
            ))),
        }
    }

    fn target(&self, name: &Name, path: &Path) -> Seen {
        let begun = Instant::now();
        let target = fs::read_link(path);
        let during = (begun, Instant::now());
        match target {
            Ok(target) => {
                let found = target.display().to_string();
                let version = found.strip_prefix(TARGET);
                let version = version.and_then(|version| version.parse::<u64>().ok());
                self.judged(name, ("readlink", found), during, never, |state| {
                    state.kind == Kind::Link && version == Some(state.version)
                })
            }
            Err(error) => self.failed(name, ("readlink", &error), during, Kind::Link),
        }
    }

    fn list(&self, name: &Name, path: &Path) -> Seen {
        let begun = Instant::now();
        let opened = fs::read_dir(path);
        let is_open = opened.is_ok();
        let listed = opened.and_then(|listed| {
            let names = listed.map(|entry| Ok(entry?.file_name().into_string().ok()));
            names.collect::<io::Result<Vec<_>>>()
        });
        let during = (begun, Instant::now());
        match listed {
            Ok(names) => {
                let found = format!("{names:?}");
                // A listing may show a child that is renamed twice, or not at all.
                let versions = names.into_iter().flatten().map(|name| name.parse::<u64>());
                let versions: Vec<u64> = versions.filter_map(Result::ok).collect();
                self.judged(name, ("readdir", found), during, never, |state| {
                    state.kind == Kind::Directory
                        && (versions.is_empty() || versions.contains(&state.version))
                })
            }
            // It was removed since it was opened.
            Err(error) if is_open && error.kind() == io::ErrorKind::NotFound => Ok(Duration::ZERO),
            Err(error) => {
                let what = if is_open { "readdir" } else { "opendir" };
                self.failed(name, (what, &error), during, Kind::Directory)
            }
        }
    }

    fn label(&self, name: &Name, path: &Path) -> Seen {
        let begun = Instant::now();
        let mut value = [0; 8];
        let label = match fs::symlink_metadata(path) {
            Ok(stat) if stat.is_file() => getxattr(path, LABEL, &mut value),
            _ => return Ok(Duration::ZERO),
        };
        let during = (begun, Instant::now());
        let label = match label {
            Ok(_) => u64::from_le_bytes(value),
            Err(Errno::NODATA) => 0,
            Err(error) => {
                return self.failed(name, ("getxattr", &error.into()), during, Kind::File);
            }
        };
        self.judged(
            name,
            ("getxattr", label.to_string()),
            during,
            never,
            // One of another kind has none, and one that was removed since lstat(2) may have lost
            // it.
            |state| state.label == label,
        )
    }

    /// Is it listed in its directory as what it is?
    fn listed(&self, name: &Name) -> Seen {
        let path = self.mount.join(&name.path);
        let (Some(dir), Some(own)) = (path.parent(), path.file_name()) else {
            return Ok(Duration::ZERO);
        };
        let begun = Instant::now();
        let failed = |error: io::Error| Wrong(format!("{}: listed: {error}", dir.display()));
        let mut found = Kind::Absent;
        for entry in fs::read_dir(dir).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name() == own {
                found = kind(entry.file_type().map_err(failed)?);
            }
        }
        let during = (begun, Instant::now());
        self.judged(
            name,
            ("listed", format!("{found:?}")),
            during,
            never,
            |state| state.kind == found,
        )
    }
}

/// The whole content of an open file.
pub(super) fn read_open(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 32 << 10];
    let mut len = 0;
    loop {
        match file.read_at(&mut bytes[len..], len as u64)? {
            0 => break,
            read => len += read,
        }
    }
    bytes.truncate(len);
    Ok(bytes)
}
