//! The calls that the standard library and Holdfast have in common, as one trait.

use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use holdfast::{Caller, FileSystem, Options};
use tempfile::TempDir;

/// How to open, in letters: r, w, a, t(runcate), c(reate), n(ew).
#[derive(Clone, Copy, Debug)]
pub(crate) struct How(pub(crate) &'static str, pub(crate) i32);

/// The attributes that both have; without sizes and link counts of directories, in which file
/// systems differ.
pub(crate) type Look = (u32, Option<u64>, Option<u64>, u32, u32);

/// A file system that scripts run on. Paths are relative to its root.
pub(crate) trait Subject {
    type File: Read + Write + Seek;

    fn open(&self, path: &str, how: How) -> io::Result<Self::File>;
    fn read_at(&self, file: &Self::File, buf: &mut [u8], offset: u64) -> io::Result<usize>;
    fn write_at(&self, file: &Self::File, buf: &[u8], offset: u64) -> io::Result<usize>;
    fn set_len(&self, file: &Self::File, len: u64) -> io::Result<()>;
    fn fchmod(&self, file: &Self::File, mode: u32) -> io::Result<()>;
    fn try_clone(&self, file: &Self::File) -> io::Result<Self::File>;
    fn fstat(&self, file: &Self::File) -> io::Result<Look>;
    fn create_dir(&self, path: &str) -> io::Result<()>;
    fn create_dir_all(&self, path: &str) -> io::Result<()>;
    fn remove_dir(&self, path: &str) -> io::Result<()>;
    fn remove_dir_all(&self, path: &str) -> io::Result<()>;
    fn remove_file(&self, path: &str) -> io::Result<()>;
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn copy(&self, from: &str, to: &str) -> io::Result<u64>;
    fn hard_link(&self, from: &str, to: &str) -> io::Result<()>;
    fn symlink(&self, target: &str, link: &str) -> io::Result<()>;
    fn read_link(&self, path: &str) -> io::Result<PathBuf>;
    fn canonicalize(&self, path: &str) -> io::Result<PathBuf>;
    fn read(&self, path: &str) -> io::Result<Vec<u8>>;
    fn read_to_string(&self, path: &str) -> io::Result<String>;
    fn write(&self, path: &str, content: &str) -> io::Result<()>;
    fn stat(&self, path: &str) -> io::Result<Look>;
    fn lstat(&self, path: &str) -> io::Result<Look>;
    fn try_exists(&self, path: &str) -> io::Result<bool>;
    /// Names with their modes, sorted.
    fn list(&self, path: &str) -> io::Result<Vec<(PathBuf, u32)>>;
    fn chmod(&self, path: &str, mode: u32) -> io::Result<()>;
    /// Sets both times, in seconds; returns the new ones.
    fn touch(&self, file: &Self::File, at: i64, mt: i64) -> io::Result<(SystemTime, SystemTime)>;
}

macro_rules! look {
    ($metadata:expr) => {{
        let m = $metadata;
        let of_file = |value| (!m.is_dir()).then_some(value);
        (
            m.mode(),
            of_file(m.len()),
            of_file(m.nlink()),
            m.uid(),
            m.gid(),
        )
    }};
}

macro_rules! options {
    ($new:expr, $how:expr) => {{
        let mut options = $new;
        let has = |letter| $how.0.contains(letter);
        options
            .read(has('r'))
            .write(has('w'))
            .append(has('a'))
            .truncate(has('t'));
        options
            .create(has('c'))
            .create_new(has('n'))
            .mode(0o640)
            .custom_flags($how.1);
        options
    }};
}

/// The calls that are written alike for both: those on open files, and those that only pass their
/// paths on, to a function `call!(self, NAME, PATH…)`.
macro_rules! alike {
    ($home:ident $(:: $more:ident)*, $call:ident) => {
        alike!(@paths $call, create_dir -> (), create_dir_all -> (), remove_dir -> (),
            remove_dir_all -> (), remove_file -> (), read_link -> PathBuf, read -> Vec<u8>,
            read_to_string -> String);
        alike!(@pairs $call, rename -> (), copy -> u64, hard_link -> ());
        fn read_at(&self, file: &Self::File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
            file.read_at(buf, offset)
        }
        fn write_at(&self, file: &Self::File, buf: &[u8], offset: u64) -> io::Result<usize> {
            file.write_at(buf, offset)
        }
        fn set_len(&self, file: &Self::File, len: u64) -> io::Result<()> {
            file.set_len(len)
        }
        fn fchmod(&self, file: &Self::File, mode: u32) -> io::Result<()> {
            file.set_permissions($home$(::$more)*::Permissions::from_mode(mode))
        }
        fn try_clone(&self, file: &Self::File) -> io::Result<Self::File> {
            file.try_clone()
        }
        fn fstat(&self, file: &Self::File) -> io::Result<Look> {
            Ok(look!(file.metadata()?))
        }
        fn list(&self, path: &str) -> io::Result<Vec<(PathBuf, u32)>> {
            let entries = $call!(self, read_dir, path)?.map(|entry| {
                let entry = entry?;
                Ok((entry.file_name().into(), entry.metadata()?.mode()))
            });
            let mut entries = entries.collect::<io::Result<Vec<_>>>()?;
            entries.sort();
            Ok(entries)
        }
        fn touch(
            &self,
            file: &Self::File,
            at: i64,
            mt: i64,
        ) -> io::Result<(SystemTime, SystemTime)> {
            let times = $home$(::$more)*::FileTimes::new();
            let times = times.set_accessed(after_1970(at));
            file.set_times(times.set_modified(after_1970(mt)))?;
            let metadata = file.metadata()?;
            Ok((metadata.accessed()?, metadata.modified()?))
        }
    };
    (@paths $call:ident, $($name:ident -> $out:ty),*) => {
        $(fn $name(&self, path: &str) -> io::Result<$out> {
            $call!(self, $name, path)
        })*
    };
    (@pairs $call:ident, $($name:ident -> $out:ty),*) => {
        $(fn $name(&self, from: &str, to: &str) -> io::Result<$out> {
            $call!(self, $name, from, to)
        })*
    };
}

/// A function of the standard library.
macro_rules! of_host {
    ($self:ident, $name:ident, $($path:ident),*) => {
        std::fs::$name($($self.at($path)),*)
    };
}

/// `**self` is the root directory: the methods of the trait hide those of it.
macro_rules! of_ours {
    ($self:ident, $name:ident, $($path:ident),*) => {
        (**$self).$name($($path),*)
    };
}

fn after_1970(secs: i64) -> SystemTime {
    let distance = Duration::from_secs(secs.unsigned_abs());
    if secs < 0 {
        UNIX_EPOCH - distance
    } else {
        UNIX_EPOCH + distance
    }
}

/// The host's file system, in a directory for temporary files.
pub(crate) struct Host(pub(crate) TempDir);

impl Host {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory for temporary files"))
    }

    fn at(&self, path: &str) -> PathBuf {
        // Not joined as a path: an empty path and trailing slashes must stay.
        match path {
            "" => PathBuf::new(),
            path => format!("{}/{path}", self.0.path().display()).into(),
        }
    }

    /// A file system of Holdfast for the same user with the same umask.
    pub(crate) fn twin(&self) -> FileSystem {
        let probe = self.at("probe");
        std::fs::create_dir(&probe).expect("a directory");
        let metadata = std::fs::metadata(&probe).expect("its metadata");
        std::fs::remove_dir(&probe).expect("an empty directory");
        let (uid, gid) = (metadata.uid(), metadata.gid());
        let caller = if uid == 0 {
            Caller::root()
        } else {
            Caller::user(uid, gid)
        };
        let umask = !metadata.mode() & 0o777;
        let root = std::fs::metadata(self.0.path()).expect("the root's metadata");
        let options = Options {
            root_uid: Some(uid),
            root_gid: Some(gid),
            root_perm: (root.mode() & 0o7777) as u16,
            ..Options::default()
        };
        let caller = Caller { gid, ..caller }.with_umask(umask as u16);
        FileSystem::builder()
            .options(options)
            .caller(caller)
            .build()
    }
}

impl Subject for Host {
    type File = std::fs::File;

    alike!(std::fs, of_host);

    fn open(&self, path: &str, how: How) -> io::Result<Self::File> {
        options!(std::fs::OpenOptions::new(), how).open(self.at(path))
    }
    fn symlink(&self, target: &str, link: &str) -> io::Result<()> {
        std::os::unix::fs::symlink(target, self.at(link))
    }
    fn canonicalize(&self, path: &str) -> io::Result<PathBuf> {
        let found = std::fs::canonicalize(self.at(path))?;
        let root = std::fs::canonicalize(self.0.path())?;
        let below = found.strip_prefix(root).map_err(io::Error::other)?;
        Ok(Path::new("/").join(below))
    }
    fn write(&self, path: &str, content: &str) -> io::Result<()> {
        std::fs::write(self.at(path), content)
    }
    fn stat(&self, path: &str) -> io::Result<Look> {
        Ok(look!(std::fs::metadata(self.at(path))?))
    }
    fn lstat(&self, path: &str) -> io::Result<Look> {
        Ok(look!(std::fs::symlink_metadata(self.at(path))?))
    }
    fn try_exists(&self, path: &str) -> io::Result<bool> {
        std::fs::exists(self.at(path))
    }
    fn chmod(&self, path: &str, mode: u32) -> io::Result<()> {
        std::fs::set_permissions(self.at(path), std::fs::Permissions::from_mode(mode))
    }
}

impl Subject for FileSystem {
    type File = holdfast::File;

    alike!(holdfast, of_ours);

    fn open(&self, path: &str, how: How) -> io::Result<Self::File> {
        self.open_with(path, &options!(holdfast::OpenOptions::new(), how))
    }
    fn symlink(&self, target: &str, link: &str) -> io::Result<()> {
        (**self).symlink(target, link)
    }
    fn canonicalize(&self, path: &str) -> io::Result<PathBuf> {
        self.canonicalize(path)
    }
    fn write(&self, path: &str, content: &str) -> io::Result<()> {
        (**self).write(path, content)
    }
    fn stat(&self, path: &str) -> io::Result<Look> {
        Ok(look!(self.metadata(path)?))
    }
    fn lstat(&self, path: &str) -> io::Result<Look> {
        Ok(look!(self.symlink_metadata(path)?))
    }
    fn try_exists(&self, path: &str) -> io::Result<bool> {
        (**self).try_exists(path)
    }
    fn chmod(&self, path: &str, mode: u32) -> io::Result<()> {
        self.set_permissions(path, holdfast::Permissions::from_mode(mode))
    }
}
