//! What a workload runs on: a tree of files, used by path.
//!
//! A [`Target`] is what the command line names. Each round makes a fresh, empty [`Tree`] of it;
//! each thread uses the tree through a [`Session`] of its own. A workload is generic over the
//! tree, so all targets run the same code around calls of their own.
//!
//! Paths are absolute within the tree and end with the NUL that system calls need. Targets in this
//! process leave it out at no cost.

mod directory;
mod folder;
mod memory;
pub(crate) mod names;
mod sys;
mod volume;

pub(crate) use directory::DirectoryTree;
pub(crate) use folder::{Folder, Parent};
pub(crate) use memory::MemoryTree;
pub(crate) use volume::{Kept, drop_host_caches, kept, volume, volume_over};

use anyhow::{Error, Result, bail};
use holdfast_types::Errno;
use serde::{Deserialize, Serialize};
use std::ffi::CStr;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// What the command line names.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) enum Target {
    /// `mem:`: a memory file system in this process.
    Memory,
    /// `volume:PATH`: a volume in this process, on a new image file beside this path.
    Volume(PathBuf),
    /// `dir:PATH`: a directory of the host, through system calls.
    Directory(PathBuf),
}

/// A tree of files, empty when it is made.
pub(crate) trait Tree: Sync + 'static {
    /// One thread's way into it; what can be done there differs.
    type Session<'t>: Send
    where
        Self: 't;

    /// A way into it for one more thread.
    fn session(&self) -> Self::Session<'_>;

    /// Removes it with all that is left in it. Dropping it does so too, but tells no errors.
    ///
    /// # Errors
    /// If it cannot be removed.
    fn close(self) -> Result<()>;
}

/// Calls on a tree, by path.
pub(crate) trait Session {
    /// Makes a directory.
    fn make_dir(&mut self, path: &CStr) -> Result<(), Errno>;

    /// Makes a file that must not be there (`O_CREAT | O_EXCL`), and closes it.
    fn create(&mut self, path: &CStr) -> Result<(), Errno>;

    /// Asks for its attributes.
    fn stat(&mut self, path: &CStr) -> Result<(), Errno>;

    /// Opens it to read, and closes it.
    fn open(&mut self, path: &CStr) -> Result<(), Errno>;

    /// Lists a directory with the attributes of each entry; gives the number of entries, `.`
    /// and `..` left out.
    fn walk(&mut self, path: &CStr) -> Result<u64, Errno>;

    /// Changes its permissions.
    fn chmod(&mut self, _path: &CStr) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Asks for the attributes of all inodes that are in one of so many parts, by no path; gives
    /// their number.
    fn bulkstat(&mut self, _part: usize, _parts: usize) -> Result<u64, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Makes everything durable that was done in the tree.
    fn sync(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    /// Gives up what it holds of the tree, so that the tree can be made cold.
    fn leave(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    /// Lets nothing of the tree be in memory, the host's caches included. Every session has left.
    fn chill(&mut self) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Comes back to the tree that it left.
    fn enter(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    /// Removes a file's name.
    fn unlink(&mut self, path: &CStr) -> Result<(), Errno>;

    /// Removes an empty directory.
    fn remove_dir(&mut self, path: &CStr) -> Result<(), Errno>;
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenHow {
    /// To be written, and made if it is not there.
    Make,
    /// To be written.
    Write,
    /// To be written at its end.
    Append,
    /// To be read.
    Read,
}

/// Calls on open files.
pub(crate) trait Io {
    /// An open file, closed when it is dropped.
    type File: Send;

    /// Opens a file.
    fn open_file(&mut self, path: &CStr, how: OpenHow) -> Result<Self::File, Errno>;

    /// Reads; gives the number of bytes that there were.
    fn read_at(
        &mut self,
        file: &Self::File,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, Errno>;

    /// Writes; gives the number of bytes written.
    fn write_at(&mut self, file: &Self::File, offset: u64, data: &[u8]) -> Result<usize, Errno>;

    /// Writes at the end of a file that was opened for it.
    fn append(&mut self, file: &Self::File, data: &[u8]) -> Result<usize, Errno>;

    /// Makes it so long (ftruncate(2)).
    fn set_size(&mut self, file: &Self::File, size: u64) -> Result<(), Errno>;

    /// Makes its bytes durable, and the names that lead to it (fsync(2)).
    fn fsync(&mut self, _file: &Self::File) -> Result<(), Errno> {
        Ok(())
    }

    /// In how many pieces its bytes lie; `None` where they lie nowhere.
    fn extents(&mut self, _file: &Self::File) -> Result<Option<u64>, Errno> {
        Ok(None)
    }
}

impl Target {
    /// Do its files live in the memory of the process that uses them?
    pub(crate) fn in_process(&self) -> bool {
        !matches!(self, Self::Directory(_))
    }
}

impl Target {
    /// Can it tell the attributes of all inodes, by no path?
    pub(crate) fn has_bulkstat(&self) -> bool {
        /// `XFS_SUPER_MAGIC` of the kernel's `magic.h`.
        const XFS: rustix::fs::FsWord = 0x5846_5342;
        match self {
            Self::Volume(_) => true,
            Self::Directory(path) => {
                rustix::fs::statfs(path).is_ok_and(|found| found.f_type == XFS)
            }
            _ => false,
        }
    }
}

impl FromStr for Target {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once(':') {
            Some(("mem", "")) => Ok(Self::Memory),
            Some(("volume", path)) if !path.is_empty() => Ok(Self::Volume(path.into())),
            Some(("dir", path)) if !path.is_empty() => Ok(Self::Directory(path.into())),
            _ => bail!("not a target: `{text}` (known are `mem:`, `volume:PATH` and `dir:PATH`)"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("mem:"),
            Self::Volume(path) => write!(f, "volume:{}", path.display()),
            Self::Directory(path) => write!(f, "dir:{}", path.display()),
        }
    }
}

impl TryFrom<String> for Target {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Target> for String {
    fn from(target: Target) -> Self {
        target.to_string()
    }
}

/// Sees to the directories that trees are made in, for as long as the result is kept.
///
/// # Errors
/// If one is missing and cannot be made.
pub(crate) fn parents(targets: &[Target]) -> Result<Vec<Parent>> {
    let directories = targets.iter().filter_map(|target| match target {
        Target::Directory(path) => Some(path),
        _ => None,
    });
    directories.map(|path| Parent::ready(path)).collect()
}

/// The targets' names; one that is given several times (to see what chance does) is numbered
/// from the second time on.
pub(crate) fn labels<T: fmt::Display>(targets: &[T]) -> Vec<String> {
    let names: Vec<String> = targets.iter().map(ToString::to_string).collect();
    let numbered = names.iter().enumerate().map(|(index, name)| {
        match names[..index]
            .iter()
            .filter(|earlier| *earlier == name)
            .count()
        {
            0 => name.clone(),
            earlier => format!("{name} #{}", earlier + 1),
        }
    });
    numbered.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_and_shown_alike_and_others_are_refused() {
        for text in ["mem:", "dir:/tmp/x:y", "volume:/tmp/x.hf", "dir:relative"] {
            let target: Target = text.parse().expect("a target");
            assert_eq!(target.to_string(), text);
        }
        for text in ["mem", "mem:x", "dir:", "/tmp", "volume:", ""] {
            let error = text.parse::<Target>().expect_err("refused");
            assert!(error.to_string().contains("known are `mem:`"), "{error}");
        }
    }

    #[test]
    fn a_target_given_twice_has_two_names() {
        assert_eq!(labels(&["a", "b", "a", "a"]), ["a", "b", "a #2", "a #3"]);
    }

    /// Every call of a session, with what must fail among them.
    fn exercise<T: Tree>(tree: T)
    where
        for<'t> T::Session<'t>: Session,
    {
        let mut session = tree.session();
        session.make_dir(c"/d").expect("made");
        assert_eq!(session.walk(c"/d"), Ok(0));
        session.create(c"/d/file").expect("made");
        session.create(c"/d/other").expect("made");
        assert_eq!(session.create(c"/d/file"), Err(Errno::EEXIST));
        assert_eq!(session.make_dir(c"/d"), Err(Errno::EEXIST));
        session.stat(c"/d/file").expect("there");
        session.open(c"/d/file").expect("there");
        assert_eq!(session.walk(c"/d"), Ok(2));
        session.unlink(c"/d/file").expect("there");
        assert_eq!(session.stat(c"/d/file"), Err(Errno::ENOENT));
        assert_eq!(session.open(c"/d/file"), Err(Errno::ENOENT));
        assert_eq!(session.unlink(c"/d/file"), Err(Errno::ENOENT));
        assert_eq!(session.walk(c"/d/other"), Err(Errno::ENOTDIR));
        assert_eq!(session.remove_dir(c"/d"), Err(Errno::ENOTEMPTY));
        session.make_dir(c"/empty").expect("made");
        session.remove_dir(c"/empty").expect("empty");
        assert_eq!(session.remove_dir(c"/empty"), Err(Errno::ENOENT));
        drop(session);
        tree.close().expect("removed");
    }

    /// Every call on open files, with what must fail among them.
    fn exercise_io<T: Tree>(tree: &T)
    where
        for<'t> T::Session<'t>: Io,
    {
        let mut session = tree.session();
        let gone = session.open_file(c"/f", OpenHow::Read).map(drop);
        assert_eq!(gone, Err(Errno::ENOENT));
        let file = session.open_file(c"/f", OpenHow::Make).expect("made");
        assert_eq!(session.write_at(&file, 3, b"four"), Ok(4));
        let end = session.open_file(c"/f", OpenHow::Append).expect("there");
        assert_eq!(session.append(&end, b"teen"), Ok(4));
        let again = session.open_file(c"/f", OpenHow::Read).expect("there");
        assert_eq!(session.write_at(&again, 0, b"x"), Err(Errno::EBADF));
        let mut buffer = [b'x'; 20];
        assert_eq!(session.read_at(&again, 2, &mut buffer), Ok(9));
        assert_eq!(&buffer[..10], b"\0fourteenx");
        session.set_size(&file, 5).expect("cut");
        assert_eq!(session.append(&end, b"!"), Ok(1));
        assert_eq!(session.read_at(&again, 0, &mut buffer), Ok(6));
        assert_eq!(&buffer[..6], b"\0\0\0fo!");
    }

    #[test]
    fn all_targets_answer_alike() {
        exercise_io(&MemoryTree::new());
        exercise(MemoryTree::new());
        let folder = tempfile::tempdir().expect("temporary directory");
        exercise_io(&DirectoryTree::new(folder.path()).expect("made"));
        exercise(DirectoryTree::new(folder.path()).expect("made"));
        let left = std::fs::read_dir(folder.path()).expect("listed").count();
        assert_eq!(left, 0, "the tree is removed with what was left in it");
    }
}
