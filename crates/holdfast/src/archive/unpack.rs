//! Unpacking an archive into a directory.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::header::{Kind, Member};
use super::members::{Found, Members};
use super::sparse::Runs;
use super::{UnpackOptions, damaged};
use crate::copy::counts::count;
use crate::copy::tree::{About, Tree as _, Xattrs};
use crate::copy::walk::is_fatal;
use crate::copy::{Copied, CopyError, CopyEvent, Inside, Side};
use crate::stop::check_stop;
use crate::types::{Errno, FileType};
use crate::{Dir, File, FileSystem};

/// Bytes of content at once.
const CHUNK: usize = 1 << 20;
/// The name of a directory in itself.
const SELF: &str = ".";

/// Unpacks an archive: see [`FileSystem::unpack`].
pub(super) fn unpack(
    fs: &FileSystem,
    archive: &mut dyn io::Read,
    to: &Path,
    options: &UnpackOptions,
    watch: &mut dyn FnMut(CopyEvent<'_>),
) -> Result<Copied, CopyError> {
    let inside = fs.side();
    let top = inside.open_dir(to);
    let top = top.map_err(|error| CopyError::new(Side::To, to, error))?;
    let unpack = Unpack {
        inside,
        to,
        caller: (fs.caller().uid, fs.caller().gid),
        umask: fs.caller().umask,
        options,
        watch,
        levels: vec![(PathBuf::new(), top)],
        directories: BTreeMap::new(),
        copied: Copied::default(),
        buffer: vec![0; CHUNK],
    };
    unpack.all(archive)
}

struct Unpack<'u> {
    inside: Inside,
    to: &'u Path,
    caller: (u32, u32),
    umask: u16,
    options: &'u UnpackOptions,
    watch: &'u mut dyn FnMut(CopyEvent<'_>),
    /// The open directories on the path to the last member, with their paths below the top.
    levels: Vec<(PathBuf, Dir)>,
    /// Attributes that directories get at the end, since unpacking members needs write permission
    /// and changes times. The last entry of a directory counts.
    directories: BTreeMap<PathBuf, (About, Xattrs)>,
    copied: Copied,
    buffer: Vec<u8>,
}

impl Unpack<'_> {
    fn all(mut self, archive: &mut dyn io::Read) -> Result<Copied, CopyError> {
        match self.members(&mut Members::new(archive)) {
            Err(error) if error.side == Side::To => return Err(error),
            // Directories get their attributes also if the archive is truncated.
            read => read.and(self.finish_directories())?,
        }
        if self.options.drain {
            io::copy(archive, &mut io::sink()).map_err(|error| {
                let what = format!("behind the last member: {error}: the copy may be wrong");
                of_archive(Path::new(""), io::Error::new(error.kind(), what))
            })?;
        }
        Ok(self.copied)
    }

    fn members(&mut self, members: &mut Members<'_>) -> Result<(), CopyError> {
        let mut shown = PathBuf::new();
        loop {
            let stop = check_stop(&self.options.stop);
            stop.map_err(|error| self.failed(Path::new(""), error))?;
            let mut found = Found::default();
            let next = members.next(&mut found);
            let member = next.map_err(|error| of_archive(&shown, error));
            if let Ok(Some(member)) = &member {
                shown = PathBuf::from(OsStr::from_bytes(&member.path));
            }
            let done = match &member {
                Ok(Some(member)) => self.one(member, members, &mut found),
                _ => Ok(()),
            };
            for text in found.warnings {
                // After the last member, a warning is about the archive itself.
                let path = member.as_ref().ok().and_then(Option::as_ref);
                let path = path.map_or(Path::new(""), |_| &shown);
                (self.watch)(CopyEvent::Warning { path, text: &text });
            }
            for text in found.wrong {
                self.count_failed(&of_archive(&shown, damaged(text)));
            }
            match done {
                Ok(()) => {}
                Err(Trouble::Archive(error)) => return Err(of_archive(&shown, error)),
                Err(Trouble::Member(error)) => self.unless_fatal(&shown, error)?,
            }
            if member?.is_none() {
                return Ok(());
            }
            (self.watch)(CopyEvent::Progress(&self.copied));
        }
    }

    /// Bottom up, since a finished directory may deny access to the caller.
    fn finish_directories(&mut self) -> Result<(), CopyError> {
        while let Some((path, (about, xattrs))) = self.directories.pop_last() {
            let finished = self
                .enter(&path, true)
                .and_then(|dir| self.finish(&dir, OsStr::new(SELF), &path, about, &xattrs));
            if let Err(error) = finished {
                self.unless_fatal(&path, error)?;
            }
        }
        Ok(())
    }

    fn failed(&self, path: &Path, error: io::Error) -> CopyError {
        CopyError::new(Side::To, &self.to.join(path), error)
    }

    /// Reports an error of one member, and goes on; passes a fatal error on.
    fn unless_fatal(&mut self, path: &Path, error: io::Error) -> Result<(), CopyError> {
        let path = path.strip_prefix("/").unwrap_or(path);
        let failed = self.failed(path, error);
        if is_fatal(&failed) {
            return Err(failed);
        }
        self.count_failed(&failed);
        Ok(())
    }

    fn count_failed(&mut self, failed: &CopyError) {
        self.copied.failed += 1;
        (self.watch)(CopyEvent::Failed(failed));
    }

    fn one(
        &mut self,
        member: &Member,
        members: &mut Members<'_>,
        found: &mut Found,
    ) -> Result<(), Trouble> {
        let kind = match member.kind {
            Kind::File(kind) => kind,
            Kind::HardLink => return Ok(self.hard_link(member)?),
            Kind::Label => return Ok(()),
            Kind::Continued => {
                return Err(damaged("goes on from another archive: not unpacked").into());
            }
        };
        let path = below(&member.path)?;
        if let Some(why) = &member.broken {
            return Err(damaged(why).into());
        }
        if let Some(letter) = member.unknown_type() {
            let what = format!("its type {letter:?} is not known: unpacked as a file");
            found.warnings.push(what);
        }
        let names = self.options.names.as_deref();
        let mut about = member.about(kind, self.caller, names, &mut found.wrong);
        if !self.options.permissions {
            about.perm &= 0o777 & !self.umask;
        }
        let (xattrs, lost) = member.xattrs(names);
        if lost > 0 {
            count(&mut self.copied.lost.xattrs, &path);
        }
        let (above, name) = match (path.parent(), path.file_name()) {
            (Some(above), Some(name)) => (above, name),
            // The top itself.
            _ if kind.is_dir() => {
                self.directories.insert(path, (about, xattrs));
                return Ok(());
            }
            _ => return Err(damaged("has no name").into()),
        };
        let dir = self.enter(above, true)?;
        match kind {
            FileType::Directory => {
                self.make_dir(&dir, name)?;
                if self.directories.insert(path, (about, xattrs)).is_none() {
                    self.copied.directories += 1;
                }
                return Ok(());
            }
            FileType::Regular => {
                let make = |inside: &Inside| inside.make_file(&dir, name, &about);
                let file = self.replacing(&path, (&dir, name), make)?;
                self.content(&file, member, members)?;
                self.copied.files += 1;
            }
            FileType::Symlink => {
                let target = OsStr::from_bytes(&member.target);
                let make = |inside: &Inside| inside.make_symlink(&dir, name, target);
                self.replacing(&path, (&dir, name), make)?;
                self.copied.symlinks += 1;
            }
            _ => {
                let make = |inside: &Inside| inside.make_special(&dir, name, &about);
                self.replacing(&path, (&dir, name), make)?;
                self.copied.special += 1;
            }
        }
        Ok(self.finish(&dir, name, &path, about, &xattrs)?)
    }

    /// Makes another name of an existing file.
    fn hard_link(&mut self, member: &Member) -> io::Result<()> {
        let path = below(&member.path)?;
        let target = below(behind_climbs(&member.target))?;
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(damaged("has no name"));
        };
        let dir = self.enter(above, true)?;
        let (Some(target_above), Some(target_name)) = (target.parent(), target.file_name()) else {
            return Err(damaged("is a link to nothing"));
        };
        let place = self.enter(target_above, false)?;
        let place = self.inside.place(&target, &place, target_name)?;
        if target == path {
            return Ok(());
        }
        let make = |inside: &Inside| inside.link(&dir, &place, &dir, name);
        self.replacing(&path, (&dir, name), make)?;
        self.copied.links += 1;
        Ok(())
    }

    /// Makes a name; an existing name is removed first, unless it is a non-empty directory.
    fn replacing<R>(
        &mut self,
        path: &Path,
        (dir, name): (&Dir, &OsStr),
        make: impl Fn(&Inside) -> io::Result<R>,
    ) -> io::Result<R> {
        match make(&self.inside) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let is_dir = self.inside.about(dir, name)?.kind.is_dir();
                self.inside.remove_name(dir, name, is_dir)?;
                if is_dir {
                    self.directories.remove(path);
                    self.levels.retain(|(at, _)| !at.starts_with(path));
                }
                make(&self.inside)
            }
            made => made,
        }
    }

    /// Makes a directory, unless it exists. Other existing names are replaced.
    fn make_dir(&self, dir: &Dir, name: &OsStr) -> io::Result<()> {
        match self.inside.make_dir(dir, name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if self.inside.about(dir, name)?.kind.is_dir() {
                    return Ok(());
                }
                self.inside.remove(dir, name)?;
                self.inside.make_dir(dir, name)
            }
            made => made,
        }
    }

    /// The directory at a path below the top; with `make`, missing directories are made.
    fn enter(&mut self, path: &Path, make: bool) -> io::Result<Dir> {
        while self.levels.len() > 1
            && self
                .levels
                .last()
                .is_some_and(|(at, _)| !path.starts_with(at))
        {
            self.levels.pop();
        }
        let Some((at, dir)) = self.levels.last() else {
            return Err(Errno::ENOENT.into());
        };
        let (mut at, mut dir) = (at.clone(), dir.clone());
        let rest = path.strip_prefix(&at).unwrap_or(path).to_owned();
        for name in rest.iter() {
            let below = match self.inside.enter(&dir, name) {
                Err(error) if make && error.kind() == io::ErrorKind::NotFound => {
                    let perm = 0o777 & !self.umask;
                    dir.make(Path::new(name), perm)?;
                    self.inside.enter(&dir, name)?
                }
                entered => entered?,
            };
            at.push(name);
            dir = below;
            self.levels.push((at.clone(), dir.clone()));
        }
        Ok(dir)
    }

    fn content(
        &mut self,
        file: &File,
        member: &Member,
        members: &mut Members<'_>,
    ) -> Result<(), Trouble> {
        let whole = std::iter::once(0..member.stored).collect::<Runs>();
        let runs: &[Range<u64>] = member.runs.as_deref().unwrap_or(&whole);
        for run in runs {
            let mut at = run.start;
            while at < run.end {
                check_stop(&self.options.stop)?;
                let most = usize::try_from(run.end - at).map_or(CHUNK, |left| left.min(CHUNK));
                let mut filled = 0;
                // Fills whole chunks: reads from a pipe are small.
                while filled < most {
                    let read = members.read(&mut self.buffer[filled..most]);
                    match read.map_err(Trouble::Archive)? {
                        0 => return Err(Trouble::Archive(io::ErrorKind::UnexpectedEof.into())),
                        read => filled += read,
                    }
                }
                self.inside.write_all_at(file, &self.buffer[..filled], at)?;
                at += filled as u64;
                self.copied.bytes += filled as u64;
                if filled == CHUNK {
                    (self.watch)(CopyEvent::Progress(&self.copied));
                }
            }
        }
        if member.runs.is_some() {
            self.inside.set_len(file, member.size)?;
        }
        Ok(())
    }

    fn finish(
        &mut self,
        dir: &Dir,
        name: &OsStr,
        path: &Path,
        mut about: About,
        xattrs: &Xattrs,
    ) -> io::Result<()> {
        if !self.options.owners {
            let now = self.inside.about(dir, name)?;
            (about.uid, about.gid) = (now.uid, now.gid);
        }
        let lost = self.inside.finish(dir, name, &about, xattrs)?;
        self.copied.lost.note(lost, about.clamped, path);
        Ok(())
    }
}

/// An error of the archive, or of one of its members.
fn of_archive(path: &Path, error: io::Error) -> CopyError {
    CopyError::new(Side::From, path, error)
}

/// Why a member is not unpacked.
enum Trouble {
    /// The archive cannot be read further.
    Archive(io::Error),
    /// An error of this member alone.
    Member(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Member(error)
    }
}

/// The part of a hard link's target after the last `..`, as in GNU tar.
fn behind_climbs(target: &[u8]) -> &[u8] {
    let mut climbs = target.windows(2).enumerate().filter(|(at, two)| {
        let begins = target[..*at].last().is_none_or(|byte| *byte == b'/');
        begins && *two == b".." && target.get(at + 2).is_none_or(|byte| *byte == b'/')
    });
    climbs
        .next_back()
        .map_or(target, |(at, _)| &target[at + 2..])
}

/// The path of a member below the top, without a leading slash.
///
/// # Errors
/// If it has a `..`.
fn below(path: &[u8]) -> io::Result<PathBuf> {
    let mut found = PathBuf::new();
    for name in path.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." => return Err(damaged("its name has a `..`: not unpacked")),
            name => found.push(OsStr::from_bytes(name)),
        }
    }
    Ok(found)
}
