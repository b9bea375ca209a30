//! What a batch needs of the device, read before it is made.
//!
//! A batch is made inside the gate and under latches, where nobody waits for a device. So at first it is made of what is in
//! memory. If something is *missing*, nothing of it has been made; it leaves the gate, has that read, and begins anew.
//!
//! *Invariants.*
//! - While a batch is on its way its caller excludes all others who change bytes of the same files. So places and pages that
//!   were read for it stay what the file has, but for the parts of pages that wait, which a commit writes: then a page is
//!   [asked for](Source::read_below) otherwise than before, and read again.
//! - A batch of several changes asks for all that it may need before it makes the first. Were something missing later,
//!   that would be read there and then.

use std::cell::{Cell, RefCell};

use holdfast_types::Ino;

use crate::store::Inner;
use crate::store::file::content::{Content, Source};
use crate::store::file::extent_map::Run;
use crate::store::file::page::{Page, zeros};
use crate::store::memtable::layers::Layers;
use crate::{BLOCK, Error, Result};

/// What a batch asked for, and was not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    /// A block, below parts that wait or not.
    Page(Below),
    /// Where a file's bytes are, as the layers below the active one know it.
    Content(Ino),
    /// The places that an inode gives up, which is a file, or not.
    Places { ino: Ino, is_file: Option<bool> },
}

/// A block of the device on which a page is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Below {
    block: u64,
    parts: bool,
}

/// What was read for a batch.
#[derive(Debug)]
pub(in crate::store) struct Prefetched<'s> {
    store: &'s Inner,
    pages: Vec<(Below, Page)>,
    contents: RefCell<Vec<(Ino, Content)>>,
    places: RefCell<Vec<(Ino, Vec<Run>)>>,
    missing: Cell<Option<Missing>>,
    /// Has the batch begun to be made, so that it cannot begin anew?
    begun: Cell<bool>,
}

impl<'s> Prefetched<'s> {
    /// Nothing, at first.
    fn new(store: &'s Inner) -> Self {
        Self {
            store,
            pages: Vec::new(),
            contents: RefCell::default(),
            places: RefCell::default(),
            missing: Cell::new(None),
            begun: Cell::new(false),
        }
    }

    /// From now on the batch cannot begin anew.
    pub(in crate::store) fn begin(&self) {
        self.begun.set(true);
    }

    /// What the layers below the active one know of a file's bytes.
    ///
    /// # Errors
    /// If it is missing.
    pub(in crate::store) fn take_content(&self, ino: Ino) -> Result<Content> {
        let content = take(&mut self.contents.borrow_mut(), ino);
        content.ok_or_else(|| self.lacks(Missing::Content(ino)))
    }

    /// The places that an inode has in the layers below the active one, which will be taken.
    ///
    /// # Errors
    /// If they are missing.
    pub(in crate::store) fn expect_places(&self, ino: Ino, is_file: Option<bool>) -> Result<()> {
        match self.places.borrow().iter().any(|(of, _)| *of == ino) {
            true => Ok(()),
            false => Err(self.lacks(Missing::Places { ino, is_file })),
        }
    }

    /// The same, taken.
    ///
    /// # Errors
    /// If they are missing.
    pub(in crate::store) fn take_places(
        &self,
        ino: Ino,
        is_file: Option<bool>,
    ) -> Result<Vec<Run>> {
        let places = take(&mut self.places.borrow_mut(), ino);
        places.ok_or_else(|| self.lacks(Missing::Places { ino, is_file }))
    }

    fn lacks(&self, missing: Missing) -> Error {
        self.missing.set(Some(missing));
        Error::Damaged(format!("a batch was made without {missing:?}"))
    }

    /// What became of an attempt to make the batch: `None` if something is missing.
    fn outcome<R>(&self, made: Result<R>) -> Result<Option<R>> {
        match made {
            Err(_) if self.missing.get().is_some() => Ok(None),
            made => made.map(Some),
        }
    }

    /// Reads what is missing. Outside the gate.
    ///
    /// # Errors
    /// Those of the device, and of what was found damaged.
    fn fetch(&mut self) -> Result<()> {
        let Some(missing) = self.missing.take() else {
            return Ok(());
        };
        let store = self.store;
        match missing {
            Missing::Page(below) => {
                let mut page = zeros();
                store.blocks().read(below.block, &mut page)?;
                self.pages.retain(|(old, _)| old.block != below.block);
                self.pages.push((below, page));
            }
            Missing::Content(ino) => {
                let content = store.read(|snapshot_reader| snapshot_reader.content_below(ino))?;
                self.contents.get_mut().push((ino, content));
            }
            Missing::Places { ino, is_file } => {
                let places =
                    store.read(|snapshot_reader| snapshot_reader.places_below(ino, is_file))?;
                self.places.get_mut().push((ino, places));
            }
        }
        Ok(())
    }
}

impl Inner {
    /// Makes a batch, behind the gate, and once more as long as something is missing for it. What fails stops the store.
    pub(in crate::store) fn make<R>(
        &self,
        what: &'static str,
        mut attempt: impl FnMut(&Layers, &Prefetched<'_>) -> Result<R>,
    ) -> Result<R> {
        let mut prefetched = Prefetched::new(self);
        loop {
            let made = {
                let layers = self.freeze_barrier.pass();
                self.running()?;
                self.whole(what, || prefetched.outcome(attempt(&layers, &prefetched)))?
            };
            if let Some(made) = made {
                return Ok(made);
            }
            // The caller has made the batch already, for all others to see.
            prefetched.fetch().map_err(|error| self.stop(error))?;
        }
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
            return self.store.blocks().read(block, page);
        }
        Err(self.lacks(Missing::Page(below)))
    }
}

fn take<T>(from: &mut Vec<(Ino, T)>, ino: Ino) -> Option<T> {
    let place = from.iter().position(|(of, _)| *of == ino)?;
    Some(from.swap_remove(place).1)
}
