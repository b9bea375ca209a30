//! Whole transfers out of the kernel's partial ones.

use super::buffer::{BUFFER, Buffers};
use crate::{Cause, WriteRequest};
use rustix::io::ReadWriteFlags;
use std::fs::File;
use std::io::IoSlice;

/// Slices that one system call takes at most (`IOV_MAX`).
const SLICES: usize = 1024;

/// `RWF_DONTCACHE` (Linux 6.14).
pub(super) const DROP_BEHIND: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

/// Repeats what a signal interrupted.
pub(super) fn again<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(rustix::io::Errno::INTR) => {}
            other => return other,
        }
    }
}

/// How a file is to be read and written.
#[derive(Debug)]
pub(super) struct Transfers {
    alignment: u64,
    /// For direct transfers of memory that lies askew; `None`: any memory will do.
    buffers: Option<Buffers>,
    /// Whether the host takes [`DROP_BEHIND`].
    drops: bool,
}

impl Transfers {
    /// Through the host's cache. `drops`: it can be asked to drop what it has written.
    pub(super) const fn buffered(alignment: u64, drops: bool) -> Self {
        Self {
            alignment,
            buffers: None,
            drops,
        }
    }

    /// Past it, from memory aligned to `memory` bytes.
    pub(super) const fn direct(alignment: u64, memory: usize) -> Self {
        Self {
            alignment,
            buffers: Some(Buffers::new(memory)),
            drops: false,
        }
    }

    pub(super) const fn alignment(&self) -> u64 {
        self.alignment
    }

    /// What memory has to be aligned to, in bytes.
    pub(super) fn memory_alignment(&self) -> usize {
        self.buffers.as_ref().map_or(1, Buffers::alignment)
    }

    /// Fills `buf` from `offset`.
    pub(super) fn read(&self, file: &File, offset: u64, buf: &mut [u8]) -> Result<(), Cause> {
        let Some(buffers) = self.buffers.as_ref().filter(|it| !it.fits(buf)) else {
            return self.read_as_it_lies(file, offset, buf);
        };
        buffers.with(|aligned| {
            let mut at = offset;
            for part in buf.chunks_mut(BUFFER) {
                let aligned = &mut aligned[..part.len()];
                self.read_as_it_lies(file, at, aligned)?;
                part.copy_from_slice(aligned);
                at += part.len() as u64;
            }
            Ok(())
        })
    }

    fn read_as_it_lies(&self, file: &File, offset: u64, buf: &mut [u8]) -> Result<(), Cause> {
        let mut done = 0;
        while done < buf.len() {
            let at = offset + done as u64;
            let read = again(|| rustix::io::pread(file, &mut buf[done..], at))?;
            done += self.whole(read).ok_or(Cause::Truncated {
                end: at + read as u64,
            })?;
        }
        Ok(())
    }

    /// Writes what lies end to end from `offset`.
    pub(super) fn write(
        &self,
        file: &File,
        offset: u64,
        run: &[WriteRequest<'_>],
        drop_behind: bool,
    ) -> Result<(), Cause> {
        let flags = if drop_behind && self.drops {
            DROP_BEHIND
        } else {
            ReadWriteFlags::empty()
        };
        let askew = |buffers: &&Buffers| run.iter().any(|it| !buffers.fits(it.bytes));
        match self.buffers.as_ref().filter(askew) {
            Some(buffers) => {
                buffers.with(|aligned| self.write_gathered(file, offset, run, aligned))
            }
            None => self.write_as_it_lies(file, offset, run, flags),
        }
    }

    fn write_gathered(
        &self,
        file: &File,
        mut offset: u64,
        run: &[WriteRequest<'_>],
        aligned: &mut [u8],
    ) -> Result<(), Cause> {
        let (mut filled, plain) = (0, ReadWriteFlags::empty());
        for mut bytes in run.iter().map(|it| it.bytes) {
            while !bytes.is_empty() {
                let (now, later) = bytes.split_at(bytes.len().min(aligned.len() - filled));
                aligned[filled..filled + now.len()].copy_from_slice(now);
                filled += now.len();
                bytes = later;
                if filled == aligned.len() {
                    self.write_slices(file, offset, &mut [IoSlice::new(aligned)], plain)?;
                    offset += filled as u64;
                    filled = 0;
                }
            }
        }
        self.write_slices(file, offset, &mut [IoSlice::new(&aligned[..filled])], plain)
    }

    fn write_as_it_lies(
        &self,
        file: &File,
        mut offset: u64,
        run: &[WriteRequest<'_>],
        flags: ReadWriteFlags,
    ) -> Result<(), Cause> {
        for run in run.chunks(SLICES) {
            let mut slices: Vec<_> = run.iter().map(|it| IoSlice::new(it.bytes)).collect();
            self.write_slices(file, offset, &mut slices, flags)?;
            offset += run.iter().map(|it| it.bytes.len() as u64).sum::<u64>();
        }
        Ok(())
    }

    fn write_slices(
        &self,
        file: &File,
        mut offset: u64,
        mut slices: &mut [IoSlice<'_>],
        flags: ReadWriteFlags,
    ) -> Result<(), Cause> {
        // Drops the empty ones in front, so that a run of nothing writes nothing.
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            let written = again(|| {
                match (&*slices, flags.is_empty()) {
                    // Blocks far apart come one by one: a plain call takes less for them.
                    ([alone], true) => rustix::io::pwrite(file, alone, offset),
                    (slices, true) => rustix::io::pwritev(file, slices, offset),
                    (slices, false) => rustix::io::pwritev2(file, slices, offset, flags),
                }
            })?;
            // A file takes whole sectors or says why not; nothing written and no reason given
            // would be repeated for ever.
            let written = self
                .whole(written)
                .ok_or(Cause::Os(holdfast_types::Errno::EIO))?;
            IoSlice::advance_slices(&mut slices, written);
            offset += written as u64;
        }
        Ok(())
    }

    /// How much of a partial transfer counts: what comes after must be aligned again. `None` if
    /// that leaves nothing.
    fn whole(&self, transferred: usize) -> Option<usize> {
        let whole = transferred - transferred % self.alignment as usize;
        (whole > 0).then_some(whole)
    }
}
