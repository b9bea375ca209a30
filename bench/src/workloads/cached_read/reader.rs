//! A thread that reads.

use super::layout::{self, Layout};
use super::phase::{Phase, Step};
use super::task::Amount;
use crate::pool::Work;
use crate::sys;
use crate::targets::Io;
use anyhow::{Context, Result, ensure};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Bytes to read between two readings of the clock, in a bounded number of reads. The cost of the
/// clock is negligible beside them, and no thread reads on for long when others are done.
const BATCH_BYTES: usize = 4 << 20;
const BATCH_MIN: usize = 8;
const BATCH_MAX: usize = 1024;

/// Where copies are fastest.
const ALIGNED: usize = 64;

/// One of the readers, with a handle of its own.
pub(super) struct Reader<'r, S: Io> {
    pub(super) index: usize,
    pub(super) session: S,
    pub(super) file: S::File,
    pub(super) amount: Amount,
    pub(super) buffer: Buffer,
    /// Readers that have not come to their end.
    pub(super) reading: &'r AtomicUsize,
}

/// Bytes to read into.
#[derive(Default)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
}

impl Buffer {
    fn of(&mut self, bytes: usize) -> &mut [u8] {
        self.bytes.resize(bytes + ALIGNED, 0);
        let skipped = self.bytes.as_ptr().align_offset(ALIGNED).min(ALIGNED);
        &mut self.bytes[skipped..skipped + bytes]
    }
}

/// Tells the writer that a reader is done, whatever ended it.
struct Leaving<'r>(&'r AtomicUsize);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        // Nothing is published with it: the writer only stops.
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<S: Io> Reader<'_, S> {
    pub(super) fn step(&mut self, step: Step) -> Result<Work> {
        match step {
            Step::Prepare(phase) => self.check(phase).map(|()| Work::default()),
            Step::Run(phase) => {
                let leaving = phase.disturbed().then_some(Leaving(self.reading));
                let reads = self.run(phase);
                drop(leaving);
                reads.map(Work::from)
            }
        }
    }

    fn place(&self, phase: Phase) -> u64 {
        match phase {
            Phase::Pread3(bytes) => Layout::own(self.index, bytes),
            Phase::Read2(_) | Phase::Append(_) | Phase::Overwrite(_) => 0,
        }
    }

    /// Reads once, so that all is where it will be, and looks at what comes.
    fn check(&mut self, phase: Phase) -> Result<()> {
        let offset = self.place(phase);
        let buffer = self.buffer.of(phase.bytes());
        buffer.fill(0xA5);
        let got = self.session.read_at(&self.file, offset, buffer);
        ensure!(got.context("read")? == buffer.len(), "a short read");
        ensure!(
            layout::holds(offset, buffer),
            "wrong bytes read at {offset}"
        );
        Ok(())
    }

    fn run(&mut self, phase: Phase) -> Result<u64> {
        let offset = self.place(phase);
        let buffer = self.buffer.of(phase.bytes());
        let batch = (BATCH_BYTES / buffer.len()).clamp(BATCH_MIN, BATCH_MAX) as u64;
        let begun = Instant::now();
        let mut reads = 0;
        loop {
            let next = match self.amount {
                Amount::Reads(all) => batch.min(all - reads),
                Amount::Seconds(all) if begun.elapsed().as_secs_f64() < all => batch,
                Amount::Seconds(_) => 0,
            };
            if next == 0 {
                return Ok(reads);
            }
            for _ in 0..next {
                let got = self.session.read_at(&self.file, offset, buffer);
                ensure!(got.context("read")? == buffer.len(), "a short read");
                black_box(&*buffer);
            }
            reads += next;
            ensure!(!sys::end_asked(), "interrupted");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_aligned_whatever_its_size() {
        let mut buffer = Buffer::default();
        for bytes in [1, 4096, 100, 1 << 20] {
            let piece = buffer.of(bytes);
            assert_eq!(piece.len(), bytes);
            assert_eq!(piece.as_ptr().align_offset(ALIGNED), 0);
        }
    }
}
