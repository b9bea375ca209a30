//! Prefetching what a batch needs from the device.
//!
//! A batch is applied inside the barrier and under shard locks, where no thread waits for a device.
//! So it is first tried with what is in memory. If something is *missing*, nothing has been
//! changed: the batch leaves the barrier, reads it, and starts over.
//!
//! *Invariants.*
//! - While a batch is being applied, its caller excludes all other changes of the same files' data.
//!   So prefetched extents and pages stay valid, except for partial dirty pages that a commit
//!   writes: such a page is [requested](Source::read_below) in another way then, and read again.
//! - A batch of several changes requests all that it may need before it makes the first. Anything
//!   that is missing later is read under the locks.

use std::cell::{Cell, RefCell};

use holdfast_types::Ino;

use crate::block::BLOCK;
use crate::error::{Error, Result};
use crate::store::file::{Content, Page, Run, Source, zeros};
use crate::store::load::StoreReader;
use crate::store::memtable::Layers;
use crate::store::stop::Stop;

/// A missing piece of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    /// A block, with or without dirty parts over it.
    Page(Below),
    /// A file's content as the layers below the active one know it.
    Content(Ino),
    /// The extents of an inode that is freed.
    Places(Ino),
}

/// A block on the device below a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Below {
    block: u64,
    parts: bool,
}

/// What was read for a batch.
#[derive(Debug)]
pub(in crate::store) struct Prefetched<'s> {
    reader: &'s StoreReader,
    pages: Vec<(Below, Page)>,
    contents: RefCell<Vec<(Ino, Content)>>,
    places: RefCell<Vec<(Ino, Vec<Run>)>>,
    missing: Cell<Option<Missing>>,
    /// Set once a change was made, so that the batch cannot start over.
    begun: Cell<bool>,
}

impl<'s> Prefetched<'s> {
    /// Marks the first change.
    pub(in crate::store) fn begin(&self) {
        self.begun.set(true);
    }

    /// A file's content as the layers below the active one know it.
    ///
    /// # Errors
    /// If it is missing.
    pub(super) fn take_content(&self, ino: Ino) -> Result<Content> {
        let content = take(&mut self.contents.borrow_mut(), ino);
        content.ok_or_else(|| self.report_missing(Missing::Content(ino)))
    }

    /// Requests the extents that an inode has in the layers below the active one.
    ///
    /// # Errors
    /// If they are missing.
    pub(super) fn expect_places(&self, ino: Ino) -> Result<()> {
        match self.places.borrow().iter().any(|(of, _)| *of == ino) {
            true => Ok(()),
            false => Err(self.report_missing(Missing::Places(ino))),
        }
    }

    /// Takes them.
    ///
    /// # Errors
    /// If they are missing.
    pub(super) fn take_places(&self, ino: Ino) -> Result<Vec<Run>> {
        let places = take(&mut self.places.borrow_mut(), ino);
        places.ok_or_else(|| self.report_missing(Missing::Places(ino)))
    }

    fn report_missing(&self, missing: Missing) -> Error {
        self.missing.set(Some(missing));
        Error::Damaged(format!("a batch was made without {missing:?}"))
    }

    /// Reads what is missing. Called outside the barrier.
    ///
    /// # Errors
    /// Those of the device, and of what is damaged.
    fn fetch(&mut self) -> Result<()> {
        let Some(missing) = self.missing.take() else {
            return Ok(());
        };
        let reader = self.reader;
        match missing {
            Missing::Page(below) => {
                let mut page = zeros();
                reader.blocks().read(below.block, &mut page)?;
                self.pages.retain(|(old, _)| old.block != below.block);
                self.pages.push((below, page));
            }
            Missing::Content(ino) => {
                let content = reader.read(|snapshot_reader| snapshot_reader.content_below(ino))?;
                self.contents.get_mut().push((ino, content));
            }
            Missing::Places(ino) => {
                let places = reader.read(|snapshot_reader| snapshot_reader.places_below(ino))?;
                self.places.get_mut().push((ino, places));
            }
        }
        Ok(())
    }
}

/// Applies a batch inside the barrier, and again while something is missing. A failure stops
/// the store.
pub(super) fn make<R>(
    reader: &StoreReader,
    stop: &Stop,
    mut attempt: impl FnMut(&Layers, &Prefetched<'_>) -> Result<R>,
) -> Result<R> {
    hop!();
    let mut prefetched = Prefetched {
        reader,
        pages: Vec::new(),
        contents: RefCell::default(),
        places: RefCell::default(),
        missing: Cell::new(None),
        begun: Cell::new(false),
    };
    loop {
        let made = {
            let layers = reader.freeze_barrier.pass();
            stop.running()?;
            // `None`: something is missing.
            stop.whole("a change", || match attempt(&layers, &prefetched) {
                Err(_) if prefetched.missing.get().is_some() => Ok(None),
                made => made.map(Some),
            })?
        };
        if let Some(made) = made {
            return Ok(made);
        }
        // The core's memory already shows this change, so a failed read must stop the store.
        prefetched.fetch().map_err(|error| stop.fail(error))?;
    }
}

impl Source for Prefetched<'_> {
    fn read(&self, block: u64, page: &mut [u8; BLOCK]) -> Result<()> {
        self.read_below(block, false, page)
    }

    fn read_below(&self, block: u64, parts: bool, page: &mut [u8; BLOCK]) -> Result<()> {
        let below = Below { block, parts };
        if let Some((_, found)) = self.pages.iter().find(|(of, _)| *of == below) {
            page.copy_from_slice(&found[..]);
            return Ok(());
        }
        if self.begun.get() {
            return self.reader.blocks().read(block, page);
        }
        Err(self.report_missing(Missing::Page(below)))
    }
}

fn take<T>(from: &mut Vec<(Ino, T)>, ino: Ino) -> Option<T> {
    let place = from.iter().position(|(of, _)| *of == ino)?;
    Some(from.swap_remove(place).1)
}
