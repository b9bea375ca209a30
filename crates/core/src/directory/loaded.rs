//! Names on their way from the store into a directory.

use holdfast_dirindex::DirIndex;

use crate::directory::entry::refused;
use crate::store::NameRun;
use crate::types::{FileType, Ino, Result};

/// The store's count of names is trusted up to this multiple of the names that it has returned.
const TRUST: usize = 128;

/// The names loaded so far.
pub(crate) struct Loaded {
    pub(super) names: DirIndex,
    /// Bytes of all names.
    bytes: usize,
}

impl Loaded {
    pub(crate) fn new() -> Self {
        Self {
            names: DirIndex::new(),
            bytes: 0,
        }
    }

    /// Adds names; cookies must arrive in ascending order. `expected`: the store's count of all
    /// names. Memory is reserved for them as far as the names that arrived make the count
    /// plausible.
    ///
    /// # Errors
    /// `EUCLEAN` for cookies out of order, for a duplicate or empty name, and for an invalid inode
    /// number. `ENOSPC` when a directory cannot hold more names.
    pub(crate) fn add(&mut self, run: &NameRun, expected: u64) -> Result<()> {
        self.bytes += run.name_bytes();
        let mut names = self.names.lock();
        let likely = (names.len() as usize + run.len()).saturating_mul(TRUST);
        names.reserve(likely.min(usize::try_from(expected).unwrap_or(likely)));
        run.iter().try_for_each(|entry| {
            let kind = entry.kind.dirent_type();
            let inserted = names.insert(entry.name, entry.cookie, entry.ino.0, kind);
            inserted.map_err(refused)
        })
    }

    /// New names will get this cookie or greater ones.
    ///
    /// # Errors
    /// `EUCLEAN` if no cookie can be that great.
    pub(crate) fn go_on_at(&self, next_cookie: u64) -> Result<()> {
        let mut names = self.names.lock();
        if next_cookie > names.last_order() + 1 {
            // A catalog remembers the order of a removed name; no real name is `.`.
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
