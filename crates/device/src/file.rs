//! Image files and block devices.
//!
//! *Durability.* Until a flush, a write is in the kernel's page cache. A failed flush latches: the
//! kernel reports a lost page once and then calls it clean, so a second flush would report success.
//!
//! *Locking.* `FileDevice::flushed` is held across fdatasync(2). The kernel reports an error to
//! only one of two concurrent callers, and the other must not take its own success for the truth.

mod cache;
mod holder;
mod open;
mod sys;
mod transfer;

use crate::block_device::{check_new_size, check_range};
use crate::{
    BlockDevice, Cause, DeviceError, Operation, ReadRequest, Result, Room, SECTOR, WriteRequest,
};
use holdfast_types::Errno;
use rustix::fs::{Advice, FallocateFlags, FlockOperation};
use std::fs::File;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The access for which a file is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Reading and writing: excludes all others.
    #[default]
    ReadWrite,
    /// Reading: excludes writers.
    ReadOnly,
    /// Reading, as [`ReadOnly`](Self::ReadOnly), and writing after [`FileDevice::exclude_others`].
    Shared,
}

/// The fewest reads that are announced to the host as a batch.
const BATCH: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Image,
    Block,
}

/// An image file or a block device, locked while it is open.
///
/// The lock is flock(2)'s. It excludes other processes and a second opening in this one, and ends
/// with the device or the process. A block device opened for writing is claimed with `O_EXCL` as
/// well, so that the kernel does not mount it meanwhile.
#[derive(Debug)]
pub struct FileDevice {
    file: File,
    kind: Kind,
    /// For messages: the kind, and the path it was opened by.
    name: String,
    access: Access,
    alignment: u64,
    /// The host keeps the whole file in memory: reads do not wait.
    in_memory: bool,
    /// In bytes; grows only.
    size: AtomicU64,
    /// Orders flushes; the error of the first failed one.
    flushed: Mutex<Option<Errno>>,
    /// The identity of the cache that holds unflushed writes, if known.
    cache: Option<u64>,
    /// The second opening of a block device, which claims it.
    exclusive: OnceLock<File>,
}

impl FileDevice {
    /// Creates a sparse image file of `size` bytes, accessible only to its owner, and opens it. The
    /// file and its name are then durable.
    ///
    /// # Errors
    /// If the path exists, `size` is not aligned, or the host refuses. The file is then removed.
    pub fn create(path: &Path, size: u64) -> Result<Self> {
        open::create(path, size)
    }

    /// Opens an image file or a block device. Links are followed.
    ///
    /// # Errors
    /// [`Cause::Held`] if it is open elsewhere; [`Cause::NotADevice`]; the host's.
    pub fn open(path: &Path, access: Access) -> Result<Self> {
        open::open(path, access)
    }

    /// Excludes other readers, so that a device opened as [`Access::Shared`] may be written.
    ///
    /// # Errors
    /// [`Cause::Held`] if others have it open. It is shared as before then, unless one of them got
    /// it for writing meanwhile.
    pub fn exclude_others(&self) -> Result<()> {
        open::exclude(self).map_err(|cause| self.error(Operation::Open, 0, 0, cause))
    }

    /// Is it a block device, and not an image file?
    #[must_use]
    pub fn is_block_device(&self) -> bool {
        self.kind == Kind::Block
    }

    fn error(&self, operation: Operation, offset: u64, length: u64, cause: Cause) -> DeviceError {
        DeviceError::new(self.name.clone(), operation, offset, length, cause)
    }

    fn writable(&self, operation: Operation, offset: u64, length: u64) -> Result<()> {
        match self.access {
            Access::ReadWrite | Access::Shared => check_range(self, operation, offset, length),
            Access::ReadOnly => Err(self.error(operation, offset, length, Cause::ReadOnly)),
        }
    }

    /// Announces a read to the host's cache.
    fn announce(&self, request: &ReadRequest<'_>) {
        if let Some(len) = NonZeroU64::new(request.buf.len() as u64) {
            // Only a hint: an error will show in the read.
            let _ = rustix::fs::fadvise(&self.file, request.offset, Some(len), Advice::WillNeed);
        }
    }

    /// Has the host allocate these bytes from the beginning on, if it can. The content is
    /// unchanged.
    ///
    /// # Errors
    /// If the host has no room for them.
    pub fn preallocate(&self, length: u64) -> Result<()> {
        if self.kind == Kind::Block || length == 0 {
            return Ok(());
        }
        let mode = FallocateFlags::KEEP_SIZE;
        match transfer::retry(|| rustix::fs::fallocate(&self.file, mode, 0, length)) {
            Ok(()) | Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
            Err(errno) => Err(self.error(Operation::Write, 0, length, errno.into())),
        }
    }

    /// The present size of a block device in the kernel.
    fn block_size_now(&self) -> Result<u64, Cause> {
        Ok(sys::block_device_size(&self.file)? / self.alignment() * self.alignment())
    }
}

impl Drop for FileDevice {
    fn drop(&mut self) {
        // A child process has the descriptor too, and would keep the lock.
        self.unlock();
    }
}

impl BlockDevice for FileDevice {
    fn describe(&self) -> String {
        self.name.clone()
    }

    fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    fn alignment(&self) -> u64 {
        self.alignment
    }

    fn cache_identity(&self) -> Option<u64> {
        self.cache
    }

    fn room(&self) -> Option<Room> {
        if self.kind == Kind::Block || self.access == Access::ReadOnly {
            return None;
        }
        let stat = rustix::fs::fstat(&self.file).ok()?;
        let given = u64::try_from(stat.st_blocks).ok()?.saturating_mul(SECTOR);
        if given >= self.size() {
            return None;
        }
        let host = rustix::fs::fstatvfs(&self.file).ok()?;
        let left = host.f_bavail.saturating_mul(host.f_frsize);
        Some(Room { given, left })
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let len = buf.len() as u64;
        check_range(self, Operation::Read, offset, len)?;
        transfer::read(&self.file, self.alignment, offset, buf)
            .map_err(|cause| self.error(Operation::Read, offset, len, cause))
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.write_batch(&[WriteRequest::new(offset, bytes)])
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) -> Result<()> {
        for request in &*requests {
            check_range(
                self,
                Operation::Read,
                request.offset,
                request.buf.len() as u64,
            )?;
        }
        if requests.len() >= BATCH && !self.in_memory {
            for request in &*requests {
                self.announce(request);
            }
        }
        for request in requests {
            self.read(request.offset, request.buf)?;
        }
        Ok(())
    }

    fn write_batch(&self, requests: &[WriteRequest<'_>]) -> Result<()> {
        for request in requests {
            self.writable(Operation::Write, request.offset, request.bytes.len() as u64)?;
        }
        let adjacent = |a: &WriteRequest<'_>, b: &WriteRequest<'_>| {
            a.offset + a.bytes.len() as u64 == b.offset
        };
        for run in requests.chunk_by(adjacent) {
            let len = run.iter().map(|it| it.bytes.len() as u64).sum();
            let offset = run[0].offset;
            transfer::write(&self.file, self.alignment, offset, run)
                .map_err(|cause| self.error(Operation::Write, offset, len, cause))?;
        }
        Ok(())
    }

    /// The host's file systems let one thread at a time write to a file: others would only spin.
    fn writes_side_by_side(&self) -> bool {
        self.kind == Kind::Block
    }

    fn unlock(&self) {
        // If this fails, the lock ends with the descriptor.
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }

    fn flush(&self) -> Result<()> {
        if self.access == Access::ReadOnly {
            return Ok(());
        }
        let mut failed = self.flushed.lock().unwrap_or_else(PoisonError::into_inner);
        let cause = if let Some(errno) = *failed {
            Cause::FlushFailed(errno)
        } else {
            match transfer::retry(|| rustix::fs::fdatasync(&self.file)) {
                Ok(()) => return Ok(()),
                Err(errno) => {
                    *failed = Some(Errno::from_raw(errno.raw_os_error()));
                    errno.into()
                }
            }
        };
        Err(self.error(Operation::Flush, 0, self.size(), cause))
    }

    fn discard(&self, offset: u64, len: u64) -> Result<bool> {
        self.writable(Operation::Discard, offset, len)?;
        if len == 0 {
            return Ok(true);
        }
        let done = transfer::retry(|| match self.kind {
            Kind::Image => {
                let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                rustix::fs::fallocate(&self.file, mode, offset, len)
            }
            Kind::Block => sys::block_device_discard(&self.file, offset, len),
        });
        match done {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(false),
            Err(errno) => Err(self.error(Operation::Discard, offset, len, errno.into())),
        }
    }

    fn resize(&self, size: u64) -> Result<()> {
        let failed = |cause| self.error(Operation::Resize, size, 0, cause);
        if self.access == Access::ReadOnly {
            return Err(failed(Cause::ReadOnly));
        }
        // The lock keeps a slower call with a smaller size from truncating a larger one.
        let _turn = self.flushed.lock().unwrap_or_else(PoisonError::into_inner);
        check_new_size(self, self.size(), size)?;
        match self.kind {
            Kind::Image => transfer::retry(|| rustix::fs::ftruncate(&self.file, size))
                .map_err(|errno| failed(errno.into()))?,
            Kind::Block => {
                let now = self.block_size_now().map_err(failed)?;
                if now < size {
                    return Err(failed(Cause::Fixed { size: now }));
                }
            }
        }
        self.size.store(size, Ordering::Release);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_device_is_free_though_its_descriptor_has_a_copy() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data.hf");
        let device = FileDevice::create(&path, 1 << 20).unwrap();
        // As a child process has it after fork(2).
        let copy = device.file.try_clone().unwrap();
        drop(device);
        FileDevice::open(&path, Access::ReadWrite).unwrap();
        drop(copy);
    }
}
