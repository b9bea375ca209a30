//! One thread's part: its directories, and what each phase does to what is in them.

use super::paths::NumberedPath;
use super::phase::Phase;
use crate::sys;
use crate::targets::Session;
use crate::targets::names::{self, DIR, FILE};
use anyhow::{Context, Result, bail};
use holdfast_types::Errno;
use std::ffi::{CStr, CString};
use std::ops::Range;

/// One thread's files, dealt to directories of its own.
pub(super) struct Shard {
    /// Which thread's, of how many.
    place: (usize, usize),
    /// Does each phase that writes end with a sync?
    syncs: bool,
    top: CString,
    folders: Vec<Folder>,
}

/// One directory of files.
struct Folder {
    path: CString,
    /// Must it be made, below the thread's own?
    nested: bool,
    numbers: Range<usize>,
}

impl Shard {
    /// The part of one of so many threads, with this many files, `per_dir` of them in a
    /// directory; all in one if that is not said.
    ///
    /// # Errors
    /// Never: the paths hold no NUL.
    pub(super) fn new(
        (index, threads): (usize, usize),
        files: usize,
        per_dir: Option<usize>,
    ) -> Result<Self> {
        let top = CString::new(format!("/{}", names::top(index)))?;
        let each = per_dir.unwrap_or(files).max(1);
        let folder = |(number, from): (usize, usize)| -> Result<Folder> {
            let path = match per_dir {
                None => top.clone(),
                Some(_) => {
                    let (top, folder) = (names::top(index), names::folder(number));
                    CString::new(format!("/{top}/{folder}"))?
                }
            };
            Ok(Folder {
                path,
                nested: per_dir.is_some(),
                numbers: from..(from + each).min(files),
            })
        };
        let folders = (0..files).step_by(each).enumerate().map(folder);
        let folders = folders.collect::<Result<_>>()?;
        let place = (index, threads);
        Ok(Self {
            place,
            syncs: false,
            top,
            folders,
        })
    }

    /// Phases that write end with a sync from now on, if so said.
    pub(super) fn syncing(self, syncs: bool) -> Self {
        Self { syncs, ..self }
    }

    /// Does this phase's part; gives the number of files, or directories, that it met.
    pub(super) fn run<S: Session>(&self, phase: Phase, session: &mut S) -> Result<u64> {
        let met = self.meet(phase, session)?;
        if self.syncs && phase.writes() {
            session.sync().context("sync")?;
        }
        Ok(met)
    }

    fn meet<S: Session>(&self, phase: Phase, session: &mut S) -> Result<u64> {
        let (part, parts) = self.place;
        match phase {
            Phase::Create => {
                self.make_folders(session)?;
                self.each(phase, FILE, |path| session.create(path))
            }
            Phase::ColdChmod => self.each(phase, FILE, |path| session.chmod(path)),
            Phase::Bulkstat => session.bulkstat(part, parts).context("bulkstat"),
            Phase::Leave => session.leave().map(|()| 0).context("leave"),
            Phase::Chill if part == 0 => session.chill().map(|()| 0).context("empty the caches"),
            Phase::Chill => Ok(0),
            Phase::Enter => session.enter().map(|()| 0).context("come back"),
            Phase::Stat => self.each(phase, FILE, |path| session.stat(path)),
            Phase::Open => self.each(phase, FILE, |path| session.open(path)),
            Phase::Walk | Phase::ColdWalk => self.walk(session),
            Phase::Unlink | Phase::ColdUnlink => {
                self.each(phase, FILE, |path| session.unlink(path))
            }
            Phase::Mkdir => {
                self.make_folders(session)?;
                self.each(phase, DIR, |path| session.make_dir(path))
            }
            Phase::Rmdir => self.each(phase, DIR, |path| session.remove_dir(path)),
        }
    }

    fn make_folders<S: Session>(&self, session: &mut S) -> Result<()> {
        let nested = self.folders.iter().filter(|folder| folder.nested);
        let paths = std::iter::once(&self.top).chain(nested.map(|folder| &folder.path));
        for path in paths {
            let what = || format!("cannot make {}", path.to_string_lossy());
            session.make_dir(path).with_context(what)?;
        }
        Ok(())
    }

    fn walk<S: Session>(&self, session: &mut S) -> Result<u64> {
        let mut met = 0;
        for folder in &self.folders {
            let what = || format!("walk {}", folder.path.to_string_lossy());
            met += session.walk(&folder.path).with_context(what)?;
            if sys::end_asked() {
                bail!("interrupted");
            }
        }
        Ok(met)
    }

    #[inline]
    fn each(
        &self,
        phase: Phase,
        name: &str,
        mut call: impl FnMut(&CStr) -> Result<(), Errno>,
    ) -> Result<u64> {
        let mut done = 0;
        for folder in &self.folders {
            let prefix = format!("{}/{name}", folder.path.to_string_lossy());
            let mut path = NumberedPath::new(&prefix, folder.numbers.start);
            for _ in folder.numbers.clone() {
                if let Err(error) = call(path.as_c_str()) {
                    bail!("{phase} {}: {error}", path.as_c_str().to_string_lossy());
                }
                if sys::end_asked() {
                    bail!("interrupted");
                }
                path.count_up();
            }
            done += folder.numbers.len() as u64;
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::{MemoryTree, Tree};

    #[test]
    fn a_walk_that_misses_a_file_and_a_file_that_is_gone_show() {
        let tree = MemoryTree::new();
        let shard = Shard::new((0, 1), 5, None).expect("paths");
        let mut session = tree.session();
        assert_eq!(shard.run(Phase::Create, &mut session).expect("made"), 5);
        session
            .unlink(c"/t0/file-0000000000000000003")
            .expect("there");
        assert_eq!(shard.run(Phase::Walk, &mut session).expect("listed"), 4);
        let error = shard
            .run(Phase::Stat, &mut session)
            .expect_err("one is missing");
        let missing = "stat /t0/file-0000000000000000003:";
        assert!(error.to_string().starts_with(missing), "{error}");
    }

    #[test]
    fn names_have_24_bytes() {
        for name in [FILE, DIR] {
            let path = NumberedPath::new(name, 7);
            assert_eq!(path.as_c_str().to_bytes().len(), 24);
        }
    }
}
