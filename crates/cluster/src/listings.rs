//! Listings of large directories: the database is asked for larger pages than the core asks for.

use crate::bounded::BoundedMap;
use holdfast_core::budget::{Class, Member, Usage};
use holdfast_core::store::{EntryRecord, NameRun};
use holdfast_types::{Ino, Result};
use parking_lot::Mutex;
use std::mem::size_of;
use std::vec::IntoIter;

/// Names of one request.
const PAGE: usize = 20_000;
/// Directories that are being listed at once. A listing that is forgotten fetches its next page
/// early.
const DIRECTORIES: usize = 16;

/// Bytes of a name, on average.
const ENTRY: usize = size_of::<EntryRecord>() + 24;

/// What follows the names that the core has read of a directory.
struct Page {
    /// The cookie of the last name that was read.
    after: u64,
    names: IntoIter<EntryRecord>,
    /// Is it the last page of the directory?
    is_last: bool,
}

/// Listings under way.
pub(crate) struct Listings {
    pages: Mutex<BoundedMap<Ino, Page>>,
}

impl Listings {
    pub(crate) fn new() -> Self {
        Self {
            pages: Mutex::new(BoundedMap::new(DIRECTORIES)),
        }
    }

    /// Adds names as [`Store::read_names`](holdfast_core::store::Store::read_names) does. A listing
    /// begins behind 0, which is always asked of the database. The core notices a change of the
    /// directory during a listing by the directory's times. `ask` asks for so many names behind a
    /// cookie.
    ///
    /// # Errors
    /// Those of `ask`.
    pub(crate) fn read(
        &self,
        dir: Ino,
        after: u64,
        max: usize,
        run: &mut NameRun,
        ask: impl FnOnce(u64, usize) -> Result<Vec<EntryRecord>>,
    ) -> Result<()> {
        let kept = self.pages.lock().remove(dir);
        let follows = |page: &Page| {
            page.after == after && after > 0 && (page.is_last || page.names.len() > 0)
        };
        let mut page = match kept.filter(follows) {
            Some(page) => page,
            None => {
                let most = max.max(PAGE);
                let names = ask(after, most)?;
                let is_last = names.len() < most;
                let names = names.into_iter();
                Page {
                    after,
                    names,
                    is_last,
                }
            }
        };
        for entry in page.names.by_ref().take(max) {
            run.push(&entry.name, entry.cookie, entry.ino, entry.kind);
            page.after = entry.cookie;
        }
        // An empty answer ends the listing.
        if page.after > after {
            self.pages.lock().insert(dir, page);
        }
        Ok(())
    }
}

impl Member for Listings {
    fn usage(&self) -> Usage {
        let pages = self.pages.lock();
        let names: usize = pages.values().map(|page| page.names.len()).sum();
        let bytes = names * ENTRY + pages.len() * size_of::<Page>();
        Usage::NONE.with(Class::Names, bytes as u64)
    }

    fn limit(&self, _all: u64, _own: u64) {}
}
