//! Names that come from the store.

use holdfast_dirindex::{Catalog, NewName};

use super::refused;
use crate::store::NameRun;
use crate::types::{FileType, Ino, Result};

/// A store that says how many names it has is believed up to so many times those that it gave.
const TRUST: usize = 128;

/// Names on their way from the store into a directory.
pub(crate) struct Loaded {
    pub(super) names: Catalog,
    /// Of all of them.
    bytes: usize,
}

impl Loaded {
    pub(crate) fn new() -> Self {
        Self {
            names: Catalog::new(),
            bytes: 0,
        }
    }

    /// Adds names; cookies must arrive in ascending order. `expected`: how many there will be in all,
    /// as the store says; room is made for as many of them as those make likely that came.
    ///
    /// # Errors
    /// `EUCLEAN` if they do not, for a name that is there twice or is none, and for a number
    /// that no inode has; `ENOSPC` when a directory cannot hold more names.
    pub(crate) fn add(&mut self, run: &NameRun, expected: u64) -> Result<()> {
        self.bytes += run.name_bytes();
        let mut names = self.names.lock();
        let likely = (names.len() as usize + run.len()).saturating_mul(TRUST);
        names.reserve(likely.min(usize::try_from(expected).unwrap_or(likely)));
        let new = run.iter().map(|entry| NewName {
            key: entry.name,
            order: entry.cookie,
            value: entry.ino.0,
            tag: entry.kind.dirent_type(),
        });
        names.insert_all(new).map_err(refused)
    }

    /// New names get this cookie or greater ones.
    ///
    /// # Errors
    /// `EUCLEAN` if no cookie can be that great.
    pub(crate) fn go_on_at(&self, next_cookie: u64) -> Result<()> {
        let mut names = self.names.lock();
        if next_cookie > names.last_order() + 1 {
            // A catalog remembers the order of a name that came and went; no name is like this one.
            let (name, kind) = (b".", FileType::Directory.dirent_type());
            names
                .insert(name, next_cookie - 1, Ino::ROOT.0, kind)
                .map_err(refused)?;
            names.remove(name);
        }
        Ok(())
    }

    /// Number of names so far.
    pub(crate) fn len(&self) -> u32 {
        self.names.lock().len()
    }

    /// Bytes of the names so far.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}
