//! The thread that writes beside the readers, or apart from them.

use super::layout::Layout;
use super::phase::{Phase, Place, Step};
use crate::pool::Work;
use crate::targets::Io;
use anyhow::{Context, Result, ensure};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of one append: a line of a log.
const LINE: [u8; 64] = [b'-'; 64];

/// Bytes of one overwrite.
const PAGE: [u8; 4096] = [b'+'; 4096];

/// How far a file may grow before it is cut back to what it was. Far: cutting back is no append,
/// and takes its time too.
const GROWTH: u64 = 512 << 20;

/// Writes between two looks at whether the readers are done.
const BATCH: usize = 64;

/// The one writer, with handles of its own.
pub(super) struct Writer<'r, S: Io> {
    pub(super) session: S,
    /// The file that is read.
    pub(super) beside: Handles<S::File>,
    /// Another one.
    pub(super) apart: Handles<S::File>,
    pub(super) layout: Layout,
    pub(super) readers: usize,
    /// Readers that have not come to their end.
    pub(super) reading: &'r AtomicUsize,
}

/// One file, opened in two ways.
pub(super) struct Handles<F> {
    pub(super) write: F,
    pub(super) append: F,
}

impl<S: Io> Writer<'_, S> {
    pub(super) fn step(&mut self, step: Step) -> Result<Work> {
        match step {
            Step::Prepare(_) => {
                for file in [&self.beside, &self.apart] {
                    self.session.set_size(&file.write, self.layout.len())?;
                }
                // The run begins later, by a message to each thread, which orders this before it.
                self.reading.store(self.readers, Ordering::Relaxed);
                Ok(Work::default())
            }
            Step::Run(phase) => {
                let aside = self.run(phase)?;
                Ok(Work { items: 0, aside })
            }
        }
    }

    fn run(&mut self, phase: Phase) -> Result<u64> {
        match phase {
            Phase::Append(place) => self.append(place),
            Phase::Overwrite(place) => self.overwrite(place),
            Phase::Read2(_) | Phase::Pread3(_) => Ok(0),
        }
    }

    fn append(&mut self, place: Place) -> Result<u64> {
        let file = match place {
            Place::Beside => &self.beside,
            Place::Apart => &self.apart,
        };
        let (mut writes, mut grown) = (0, 0);
        while self.reading.load(Ordering::Relaxed) > 0 {
            for _ in 0..BATCH {
                let put = self.session.append(&file.append, &LINE);
                ensure!(put.context("append")? == LINE.len(), "a short append");
                grown += LINE.len() as u64;
            }
            writes += BATCH as u64;
            if grown >= GROWTH {
                self.session.set_size(&file.write, self.layout.len())?;
                grown = 0;
            }
        }
        Ok(writes)
    }

    fn overwrite(&mut self, place: Place) -> Result<u64> {
        let file = match place {
            Place::Beside => &self.beside.write,
            Place::Apart => &self.apart.write,
        };
        let mut writes = 0;
        while self.reading.load(Ordering::Relaxed) > 0 {
            for turn in 0..BATCH {
                let put = self.session.write_at(file, self.layout.page(turn), &PAGE);
                ensure!(put.context("overwrite")? == PAGE.len(), "a short write");
            }
            writes += BATCH as u64;
        }
        Ok(writes)
    }
}
