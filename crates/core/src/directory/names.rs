//! The names of a directory, locked for changes.

use holdfast_dirindex::{DirIndexWriter, Removed};

use super::partial::Partial;
use super::{Directory, Entry, FIRST_COOKIE};
use crate::directory::Residency;
use crate::directory::entry::refused;
use crate::inode::{Object, directory_size};
use crate::numbers::Numbers;
use crate::types::{FileType, Ino, Result, Time};

/// The names of a directory, locked for changes.
pub(crate) struct Names<'d> {
    pub(super) dir: &'d Directory,
    /// Empty while `partial` is set.
    pub(super) writer: DirIndexWriter<'d>,
    /// The known names, if the catalog does not hold all names.
    pub(super) partial: Option<&'d Partial>,
}

/// Evaluates `$change` on the catalog, or `$else` on the known names if the catalog is not in use.
macro_rules! either {
    ($names:expr, $writer:ident => $change:expr, $known:ident => $else:expr) => {
        match $names.partial {
            None => {
                let $writer = &mut $names.writer;
                $change
            }
            Some(partial) => {
                let mut $known = partial.lock();
                $else
            }
        }
    };
}

impl Directory {
    /// Locks the names for changes.
    #[inline]
    pub(crate) fn write(&self) -> Names<'_> {
        let writer = self.index.lock();
        let is_partial = self.place() == Residency::Partial;
        Names {
            dir: self,
            writer,
            partial: self.partial.get().filter(|_| is_partial),
        }
    }
}

impl Names<'_> {
    /// Number of names, `.` and `..` not counted.
    pub(crate) fn len(&self) -> u32 {
        match self.partial {
            None => self.writer.len(),
            Some(partial) => partial.lock().names,
        }
    }

    /// Is the directory empty?
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entry of a name.
    pub(crate) fn get(&self, name: &[u8]) -> Option<Entry> {
        match self.partial {
            None => self.writer.get(name).map(Entry::of),
            Some(partial) => partial.lock().entry(name),
        }
    }

    /// Does the name exist?
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.get(name).is_some()
    }

    /// Updates times, size and link count of the directory `inode` for a change of its names:
    /// `names` more, `subdirs` more of them directories.
    pub(crate) fn changed(&mut self, inode: &Object, names: i32, subdirs: i32, now: Time) {
        let mut meta = inode.write();
        meta.modified(now);
        meta.size = directory_size(self.len().saturating_add_signed(names));
        meta.nlink = meta.nlink.saturating_add_signed(subdirs);
    }

    /// Marks the directory, which is empty, as removed.
    pub(crate) fn free(&mut self) {
        debug_assert!(self.partial.is_some() || self.is_empty());
        self.dir.state.free();
    }

    /// A number for a new inode, close to those of others in this directory.
    pub(crate) fn next_number(&mut self, numbers: &Numbers) -> Ino {
        numbers.assign_near(&self.dir.chunk)
    }

    /// The cookie for a new name.
    pub(crate) fn next_cookie(&self) -> u64 {
        let next = match self.partial {
            None => self.writer.last_order() + 1,
            Some(partial) => partial.lock().next_cookie,
        };
        next.max(FIRST_COOKIE)
    }

    /// Adds a name that does not exist, with the [next cookie](Self::next_cookie).
    ///
    /// # Errors
    /// `ENOSPC` when the directory cannot number more names.
    pub(crate) fn insert(
        &mut self,
        name: &[u8],
        cookie: u64,
        ino: Ino,
        kind: FileType,
    ) -> Result<()> {
        hop!();
        either!(self,
            writer => writer.insert(name, cookie, ino.0, kind.dirent_type()).map_err(refused),
            known => known.enter(name, Entry { cookie, ino, kind })
        )
    }

    /// Removes a name; returns its entry.
    pub(crate) fn remove(&mut self, name: &[u8]) -> Option<Entry> {
        let gone: Removed = either!(self,
            writer => writer.remove(name),
            known => return known.leave(name)
        )?;
        Some(Entry::new(gone.order, gone.value, gone.tag))
    }

    /// Sets the target of a name; its cookie stays.
    pub(crate) fn replace(&mut self, name: &[u8], ino: Ino, kind: FileType) {
        either!(self,
            writer => { writer.replace(name, ino.0, kind.dirent_type()); },
            known => known.replace(name, ino, kind)
        );
    }

    /// Renames an entry to a name that does not exist. The cookie stays, so that a listing in
    /// progress never shows the file twice. Returns the cookie, 0 without such an entry.
    pub(crate) fn rename(&mut self, from: &[u8], to: &[u8]) -> u64 {
        either!(self, writer => writer.rename(from, to), known => known.rename(from, to))
            .unwrap_or(0)
    }

    /// Removes `from` and gives its target to `to`, atomically for readers. Returns the cookies of
    /// both, if both exist.
    pub(crate) fn rename_over(&mut self, from: &[u8], to: &[u8]) -> Option<(u64, u64)> {
        let (moved, replaced) = either!(self,
            writer => writer.rename_over(from, to),
            known => return known.rename_over(from, to)
        )?;
        Some((moved.order, replaced.order))
    }

    /// Exchanges the targets of two names, atomically for readers.
    pub(crate) fn exchange(&mut self, one: &[u8], other: &[u8]) {
        either!(self,
            writer => { writer.exchange(one, other); },
            known => known.exchange(one, other)
        );
    }
}
