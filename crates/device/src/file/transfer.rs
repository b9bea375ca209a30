//! Complete transfers by the kernel's partial ones.

use crate::{Cause, WriteRequest};
use holdfast_types::Errno;
use std::fs::File;
use std::io::IoSlice;

/// The most slices of one system call (`IOV_MAX`).
const SLICES: usize = 1024;

/// Repeats a call that a signal interrupted.
pub(super) fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(rustix::io::Errno::INTR) => {}
            other => return other,
        }
    }
}

/// Fills `buf` from `offset`.
pub(super) fn read(file: &File, unit: u64, offset: u64, buf: &mut [u8]) -> Result<(), Cause> {
    let mut done = 0;
    while done < buf.len() {
        let at = offset + done as u64;
        let read = retry(|| rustix::io::pread(file, &mut buf[done..], at))?;
        done += whole(read, unit).ok_or(Cause::Truncated {
            end: at + read as u64,
        })?;
    }
    Ok(())
}

/// Writes adjacent requests from `offset`.
pub(super) fn write(
    file: &File,
    unit: u64,
    mut offset: u64,
    run: &[WriteRequest<'_>],
) -> Result<(), Cause> {
    for run in run.chunks(SLICES) {
        let mut slices: Vec<_> = run.iter().map(|it| IoSlice::new(it.bytes)).collect();
        let mut slices = &mut slices[..];
        // Skips empty slices at the front, so that an empty run writes nothing.
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            let written = retry(|| match &*slices {
                // Scattered blocks are written one by one: a plain call is cheaper for them.
                [alone] => rustix::io::pwrite(file, alone, offset),
                slices => rustix::io::pwritev(file, slices, offset),
            })?;
            // A file takes whole sectors or returns an error. Without progress and error the loop
            // would not end.
            let written = whole(written, unit).ok_or(Cause::Os(Errno::EIO))?;
            IoSlice::advance_slices(&mut slices, written);
            offset += written as u64;
        }
    }
    Ok(())
}

/// The part of a partial transfer that counts: the next one must be aligned to `unit` bytes again.
/// `None` if there is none.
fn whole(transferred: usize, unit: u64) -> Option<usize> {
    let whole = transferred - transferred % unit as usize;
    (whole > 0).then_some(whole)
}
