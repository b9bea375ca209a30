//! The bytes of regular files.

use holdfast_core::store::Done;
use holdfast_core::types::{Errno, Fallocate, FileType, Ino, Result};
use rustix::fs::{
    FallocateFlags, OFlags, copy_file_range, fallocate, fcntl_getfl, fdatasync, fsync, ftruncate,
};
use rustix::io::{ReadWriteFlags, pwritev2};
use std::io::IoSlice;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use super::Performer;
use crate::host::Host;
use crate::host::reach::reopen;
use crate::identity::kind;
use crate::sys::{self, errno};

/// Buffers that one system call takes.
const BUFFERS: usize = 1024;

impl Performer<'_> {
    /// The descriptor of a file that is open for writing.
    fn writer(self, ino: Ino) -> Result<Arc<OwnedFd>> {
        self.host.held.writer(ino).ok_or(Errno::EBADF)
    }

    /// The same for a write at an offset. A descriptor with `O_APPEND`, from when the file was
    /// append-only, would ignore the offset.
    fn placed_writer(self, ino: Ino) -> Result<Arc<OwnedFd>> {
        let file = self.writer(ino)?;
        if !fcntl_getfl(&file).map_err(errno)?.contains(OFlags::APPEND) {
            return Ok(file);
        }
        let _acting = self.act()?;
        reopen(file.as_fd(), OFlags::WRONLY).map(Arc::new)
    }

    pub(super) fn resize(self, ino: Ino, size: u64) -> Result<Done> {
        let writer = self.host.held.writer(ino);
        self.change(ino, |named| {
            match writer {
                Some(open) => ftruncate(&open, size),
                None => ftruncate(reopen(named, OFlags::WRONLY)?, size),
            }
            .map_err(errno)
        })
    }

    pub(super) fn write(self, ino: Ino, offset: Option<u64>, bufs: &[IoSlice<'_>]) -> Result<Done> {
        let file = match offset {
            Some(_) => self.placed_writer(ino)?,
            None => self.writer(ino)?,
        };
        let before = self.host.stat(file.as_fd())?;
        let count = {
            let _acting = self.act()?;
            write_all(&file, offset, bufs)?
        };
        let mut done = self.done(ino, &before, file.as_fd());
        done.count = count;
        done.start = offset.unwrap_or(before.stx_size);
        let touched = done.touched.first_mut().filter(|_| offset.is_none());
        if let Some(touched) = touched
            && touched.record.size != before.stx_size + count
        {
            // Others appended as well, and only the host knows the offset of this write: near the
            // end, most likely.
            done.start = touched.record.size.saturating_sub(count);
            touched.before = None;
        }
        Ok(done)
    }

    pub(super) fn allocate(self, ino: Ino, mode: Fallocate, offset: u64, len: u64) -> Result<Done> {
        let file = self.writer(ino)?;
        let before = self.host.stat(file.as_fd())?;
        {
            let _acting = self.act()?;
            let mode = FallocateFlags::from_bits_retain(mode.bits().cast_unsigned());
            fallocate(&file, mode, offset, len).map_err(errno)?;
        }
        Ok(self.done(ino, &before, file.as_fd()))
    }

    pub(super) fn copy(self, from: (Ino, u64), to: (Ino, u64), len: u64) -> Result<Done> {
        let source = self.host.file(from.0)?;
        let target = self.placed_writer(to.0)?;
        let before = self.host.stat(target.as_fd())?;
        let (mut from_at, mut to_at, mut count) = (from.1, to.1, 0);
        {
            let _acting = self.act()?;
            while count < len {
                let rest = usize::try_from(len - count).unwrap_or(usize::MAX);
                let (at, to_at) = (Some(&mut from_at), Some(&mut to_at));
                match copy_file_range(&source, at, &target, to_at, rest).map_err(errno) {
                    Ok(0) => break,
                    Ok(copied) => count += copied as u64,
                    Err(Errno::EINTR) => {}
                    Err(_) if count > 0 => break,
                    // The core reads and writes instead.
                    Err(Errno::EINVAL | Errno::ENOSYS | Errno::EXDEV) => {
                        return Err(Errno::EOPNOTSUPP);
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        let mut done = self.done(to.0, &before, target.as_fd());
        (done.start, done.count) = (to.1, count);
        Ok(done)
    }
}

/// As fsync(2) or fdatasync(2).
pub(crate) fn sync(host: &Host, ino: Ino, data_only: bool) -> Result<()> {
    let sync = |open: &OwnedFd| {
        match data_only {
            true => fdatasync(open),
            false => fsync(open),
        }
        .map_err(errno)
    };
    if let Some(open) = host.held.writer(ino) {
        return sync(&open);
    }
    let (pinned, stat) = host.pin(ino)?;
    // Other types have no content.
    match kind(&stat) {
        FileType::Regular | FileType::Directory => sync(&reopen(pinned.get(host), OFlags::RDONLY)?),
        _ => Ok(()),
    }
}

/// As close(2) of a descriptor: a network file system writes its dirty pages then.
pub(crate) fn flush(host: &Host, ino: Ino) -> Result<()> {
    let open = host.held.writer(ino);
    open.map_or(Ok(()), |open| sys::close(open.try_clone()?))
}

/// Writes the buffers until an error; appends without an offset.
fn write_all(file: &OwnedFd, offset: Option<u64>, bufs: &[IoSlice<'_>]) -> Result<u64> {
    let mut left: Vec<IoSlice<'_>> = bufs.to_vec();
    let mut rest = &mut left[..];
    let flags = match offset {
        Some(_) => ReadWriteFlags::empty(),
        None => ReadWriteFlags::APPEND,
    };
    let mut count = 0;
    IoSlice::advance_slices(&mut rest, 0);
    while !rest.is_empty() {
        let some = &rest[..rest.len().min(BUFFERS)];
        let at = offset.unwrap_or(0) + count;
        match pwritev2(file, some, at, flags).map_err(errno) {
            Ok(0) => break,
            Ok(written) => {
                count += written as u64;
                IoSlice::advance_slices(&mut rest, written);
            }
            Err(Errno::EINTR) => {}
            Err(_) if count > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}
