//! Whole trees: making the parents of a path, removing all below one.

use std::path::Path;
use std::vec::IntoIter;

use holdfast_core::{Node, OpenFile};

use super::{Dir, bytes};
use crate::types::{Caller, Errno, FileType, OpenFlags, Result, is_special};
use crate::view::View;

/// Names read from a directory at once.
const BATCH: usize = 256;

impl Dir {
    pub(crate) fn make(&self, path: &Path, perm: u16) -> Result<()> {
        let View { core, who } = &*self.view;
        core.mkdir_at(who, &self.base, bytes(path), perm)?;
        Ok(())
    }

    /// Makes a directory and missing parents; other threads may make the same ones.
    pub(super) fn make_all(&self, path: &Path, perm: u16) -> Result<()> {
        let mut missing = Vec::new();
        for above in path.ancestors().filter(|above| *above != Path::new("")) {
            match self.make(above, perm) {
                Err(Errno::ENOENT) => missing.push(above),
                made => {
                    self.unless_directory(above, made)?;
                    break;
                }
            }
        }
        for below in missing.into_iter().rev() {
            self.unless_directory(below, self.make(below, perm))?;
        }
        Ok(())
    }

    /// Ignores the failure to make a directory that exists.
    fn unless_directory(&self, path: &Path, made: Result<()>) -> Result<()> {
        made.or_else(|error| match self.resolve(path, true) {
            Ok(node) if node.kind().is_dir() => Ok(()),
            _ => Err(error),
        })
    }

    /// Removes a directory with all below it, or a symbolic link.
    ///
    /// Every step goes from an open directory to a name in it. So links are not followed,
    /// directories moved concurrently do no harm, and no path is too long.
    pub(super) fn remove_all(&self, path: &Path) -> Result<()> {
        let View { core, who } = &*self.view;
        let at = core.resolve_parent(who, &self.base, bytes(path))?;
        if is_special(&at.name) {
            // rmdir fails for such a name, before anything below it is removed.
            return core.rmdir(who, &at.dir, &at.name);
        }
        let top = core.lookup(who, &at.dir, &at.name)?;
        match top.kind() {
            FileType::Directory => {}
            FileType::Symlink if !at.trailing_slash => {
                return core.unlink(who, &at.dir, &at.name);
            }
            _ => return Err(Errno::ENOTDIR),
        }
        let mut levels = vec![Level::enter(&self.view, top, at.name)?];
        while let Some(level) = levels.last_mut() {
            if let Some((name, is_dir)) = level.next(&self.view)? {
                if let Some(below) = self.remove_one(&level.dir, name, is_dir)? {
                    levels.push(below);
                }
                continue;
            }
            let name = std::mem::take(&mut level.name);
            levels.pop();
            let above = levels.last().map_or(&at.dir, |level| &level.dir);
            if_present(core.rmdir(who, above, &name))?;
        }
        Ok(())
    }

    /// Removes one name, or enters it if it is a directory. `is_dir` is from the listing, and may
    /// be outdated.
    fn remove_one(&self, dir: &Node, name: Vec<u8>, is_dir: bool) -> Result<Option<Level>> {
        let View { core, who } = &*self.view;
        let mut is_dir = is_dir;
        loop {
            if !is_dir {
                match core.unlink(who, dir, &name) {
                    Err(Errno::EISDIR) => {}
                    removed => return if_present(removed).map(|_| None),
                }
            }
            match if_present(core.lookup(who, dir, &name))? {
                None => return Ok(None),
                Some(node) if node.kind().is_dir() => {
                    return Level::enter(&self.view, node, name).map(Some);
                }
                Some(_) => is_dir = false,
            }
        }
    }
}

/// Maps `ENOENT` to `None`.
fn if_present<T>(done: Result<T>) -> Result<Option<T>> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(Errno::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A directory that is being emptied.
struct Level {
    dir: Node,
    /// Its name in the directory above.
    name: Vec<u8>,
    listing: OpenFile,
    /// The cookie of the last name read.
    after: u64,
    /// Names read and not yet removed.
    batch: IntoIter<(Vec<u8>, bool)>,
}

impl Level {
    fn enter(view: &View, dir: Node, name: Vec<u8>) -> Result<Self> {
        let who: &Caller = &view.who;
        let listing = view.core.open(who, &dir, OpenFlags::DIRECTORY)?;
        Ok(Self {
            dir,
            name,
            listing,
            after: 0,
            batch: Vec::new().into_iter(),
        })
    }

    /// The next name, and whether it is a directory according to the listing.
    fn next(&mut self, view: &View) -> Result<Option<(Vec<u8>, bool)>> {
        if self.batch.len() == 0 {
            let mut batch = Vec::new();
            let mut after = self.after;
            let listed = view.core.read_dir(&self.listing, after, &mut |entry| {
                if batch.len() == BATCH {
                    return false;
                }
                after = entry.cookie;
                if !is_special(entry.name) {
                    batch.push((entry.name.to_vec(), entry.kind.is_dir()));
                }
                true
            });
            // A directory that was removed concurrently is empty.
            if_present(listed)?;
            self.after = after;
            self.batch = batch.into_iter();
        }
        Ok(self.batch.next())
    }
}
