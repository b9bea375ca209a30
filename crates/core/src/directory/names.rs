//! The right to change the names of a directory.

use holdfast_dirindex::{CatalogWriter, Removed};
use holdfast_sync::epoch;

use super::partial::Partial;
use super::{Directory, Entry, FIRST_COOKIE, refused};
use crate::inode::{Object, directory_size};
use crate::lookup_hints;
use crate::numbers::Numbers;
use crate::types::{FileType, Ino, Result, Time};

/// The names of a directory, locked for changes.
pub(crate) struct Names<'d> {
    pub(super) dir: &'d Directory,
    /// Without names while there is `partial`.
    pub(super) writer: CatalogWriter<'d>,
    /// What is known of them, if they are not in the catalog.
    pub(super) partial: Option<&'d Partial>,
}

/// Does something by the catalog, or something else where the names are not in it.
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

impl<'d> Names<'d> {
    /// Number of names, `.` and `..` not counted.
    pub(crate) fn len(&self) -> u32 {
        match self.partial {
            None => self.writer.len(),
            Some(partial) => partial.lock().names,
        }
    }

    /// Are there none?
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the name leads to.
    pub(crate) fn get(&self, name: &[u8]) -> Option<Entry> {
        match self.partial {
            None => self.writer.get(name).map(Entry::of),
            Some(partial) => partial.lock().entry(name),
        }
    }

    /// As [`get`](Self::get), for a name that is made next unless it is there.
    #[inline]
    pub(crate) fn seek(&mut self, name: &'d [u8]) -> Option<Entry> {
        match self.partial {
            None => self.writer.seek(name).map(Entry::of),
            Some(partial) => partial.lock().entry(name),
        }
    }

    /// Is there this name?
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.get(name).is_some()
    }

    /// As [`get`](Self::get), for a name that is about to be removed.
    #[inline]
    pub(crate) fn seek_to_remove(&mut self, name: &'d [u8]) -> Option<Entry> {
        if let Some(partial) = self.partial {
            return partial.lock().entry(name);
        }
        let item = self.writer.seek(name)?;
        let catalog = &self.dir.catalog;
        lookup_hints::with(catalog, |lookup_hint| {
            catalog.foresee(item, lookup_hint, &epoch::pin());
        });
        Some(Entry::of(item))
    }

    /// The names change now, or just did: `names` more, and `subdirs` more directories. `inode` is
    /// the directory.
    pub(crate) fn changed(&mut self, inode: &Object, names: i32, subdirs: i32, now: Time) {
        let mut meta = inode.write();
        meta.modified(now);
        meta.size = directory_size(self.len().saturating_add_signed(names));
        meta.nlink = meta.nlink.saturating_add_signed(subdirs);
    }

    /// The directory, which is empty, was removed.
    pub(crate) fn free(&mut self) {
        debug_assert!(self.partial.is_some() || self.is_empty());
        self.dir.state.free();
    }

    /// A number for a new inode, near those of others in this directory.
    pub(crate) fn next_number(&mut self, numbers: &Numbers) -> Ino {
        numbers.deal_from(&self.dir.chunk)
    }

    /// A cookie for a new name, which is made now.
    pub(crate) fn next_cookie(&self) -> u64 {
        let next = match self.partial {
            None => self.writer.last_order() + 1,
            Some(partial) => partial.lock().next_cookie,
        };
        next.max(FIRST_COOKIE)
    }

    /// Adds a name that is not there, with the [next cookie](Self::next_cookie).
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
        either!(self,
            writer => writer.insert(name, cookie, ino.0, kind.dirent_type()).map_err(refused),
            known => known.enter(name, Entry { cookie, ino, kind })
        )
    }

    /// Removes a name; returns what it led to.
    pub(crate) fn remove(&mut self, name: &[u8]) -> Option<Entry> {
        let gone: Removed = either!(self,
            writer => writer.remove(name),
            known => return known.leave(name)
        )?;
        Some(Entry::new(gone.order, gone.value, gone.tag))
    }

    /// Lets a name lead to another inode; cookie and position stay.
    pub(crate) fn replace(&mut self, name: &[u8], ino: Ino, kind: FileType) {
        either!(self,
            writer => { writer.replace(name, ino.0, kind.dirent_type()); },
            known => known.replace(name, ino, kind)
        );
    }

    /// Gives an entry another name that is not there; position and cookie stay, so that a listing
    /// under way never meets the file twice. Returns the cookie, 0 without such an entry.
    pub(crate) fn rename(&mut self, from: &[u8], to: &[u8]) -> u64 {
        either!(self, writer => writer.rename(from, to), known => known.rename(from, to))
            .unwrap_or(0)
    }

    /// Removes `from` and lets `to` lead where it did, at once for readers. Returns the cookies of
    /// both, if both are there.
    pub(crate) fn rename_over(&mut self, from: &[u8], to: &[u8]) -> Option<(u64, u64)> {
        let (moved, replaced) = either!(self,
            writer => writer.rename_over(from, to),
            known => return known.rename_over(from, to)
        )?;
        Some((moved.order, replaced.order))
    }

    /// Lets two names lead where the other did, at once for readers.
    pub(crate) fn exchange(&mut self, one: &[u8], other: &[u8]) {
        either!(self,
            writer => { writer.exchange(one, other); },
            known => known.exchange(one, other)
        );
    }
}
