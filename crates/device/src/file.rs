//! Image files and block devices.
//!
//! *Durability.* A write lies in the kernel's cache (or, opened for direct transfers, in the
//! device's) until a flush. A failed flush latches: the kernel reports a lost page once and then
//! calls it clean, so a second flush would say that all is well.
//!
//! *Locking.* `FileDevice::flushed` is held across fdatasync(2): of two callers at once the kernel
//! tells only one of an error, and the other must not take its own success for the truth.

mod buffer;
mod cache;
mod holder;
mod open;
mod ring;
mod sys;
mod transfer;

use crate::block_device::{check_growth, check_range};
use crate::{
    BlockDevice, Cause, DeviceError, Operation, ReadRequest, Result, Room, SECTOR, WriteRequest,
};
use holdfast_types::Errno;
use ring::Rings;
use rustix::fs::{Advice, FallocateFlags, FlockOperation};
use std::fs::File;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use transfer::Transfers;

/// What a file is opened for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Reading and writing: nobody else may have it open.
    #[default]
    ReadWrite,
    /// Reading: others may read too, nobody may write.
    ReadOnly,
}

/// Whether the host's page cache lies between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Caching {
    /// Transfers go through the host's page cache.
    #[default]
    Buffered,
    /// As [`Buffered`](Self::Buffered), but the host writes at once what it is given and drops it
    /// then (`RWF_DONTCACHE`, Linux 6.14 and some file systems; elsewhere as buffered). Reads
    /// are kept by the host as always.
    DropBehind,
    /// Transfers go to the device itself, where the host's file system can; elsewhere as
    /// [`Buffered`](Self::Buffered). Memory that is not aligned is copied on the way.
    Direct,
}

/// How a batch of reads is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Batches {
    /// What measured best for the file and the batch.
    #[default]
    Auto,
    /// One read after the other.
    OneByOne,
    /// One after the other, once all have been announced to the host's cache.
    Announced,
    /// Through io_uring, where it is to be had.
    Ring,
}

/// How a [`FileDevice`] is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileOptions {
    /// What for.
    pub access: Access,
    /// Through the host's cache or not.
    pub caching: Caching,
    /// How batches are read.
    pub batches: Batches,
}

/// Requests from which on a batch is more than reads in a row.
const BATCH: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Image,
    Block,
}

/// An image file or a block device, locked for as long as it is open.
///
/// The lock is flock(2)'s: it holds against other processes and against a second open in this one,
/// and goes with the process however that ends. A block device opened for writing is claimed with
/// `O_EXCL` as well, so that the kernel does not mount it meanwhile.
#[derive(Debug)]
pub struct FileDevice {
    file: File,
    kind: Kind,
    /// For messages: what it is, and the path it was opened by.
    name: String,
    access: Access,
    /// What it came to, which may be less than what was asked for.
    caching: Caching,
    transfers: Transfers,
    batches: Batches,
    /// The host keeps the file in memory: there is nothing to wait for.
    in_memory: bool,
    rings: Rings,
    /// In bytes; grows only.
    size: AtomicU64,
    /// Guards the order of flushes; the error of the first one that failed.
    flushed: Mutex<Option<Errno>>,
    /// What holds writes until they are flushed, if that is known.
    cache: Option<u64>,
}

impl FileDevice {
    /// Makes a new image file of `size` bytes, sparse, for the owner's eyes only, and opens it.
    /// The file and its name are durable then.
    ///
    /// # Errors
    /// If the path exists, `size` is no multiple of the alignment, or the host refuses; nothing
    /// is left behind.
    pub fn create(path: &Path, size: u64, options: FileOptions) -> Result<Self> {
        open::create(path, size, options)
    }

    /// Opens an image file or a block device. Links are followed.
    ///
    /// # Errors
    /// [`Cause::Held`] if somebody has it open; [`Cause::NotADevice`]; what the host answers.
    pub fn open(path: &Path, options: FileOptions) -> Result<Self> {
        open::open(path, options)
    }

    /// What came of the wish for one: less, where the host cannot do it.
    #[must_use]
    pub const fn caching(&self) -> Caching {
        self.caching
    }

    /// Whether it is a block device rather than an image file.
    #[must_use]
    pub fn is_block_device(&self) -> bool {
        self.kind == Kind::Block
    }

    fn error(&self, operation: Operation, offset: u64, length: u64, cause: Cause) -> DeviceError {
        DeviceError::new(self.name.clone(), operation, offset, length, cause)
    }

    fn writable(&self, operation: Operation, offset: u64, length: u64) -> Result<()> {
        match self.access {
            Access::ReadWrite => check_range(self, operation, offset, length),
            Access::ReadOnly => Err(self.error(operation, offset, length, Cause::ReadOnly)),
        }
    }

    /// Writes what lies end to end as one.
    fn write_runs(&self, requests: &[WriteRequest<'_>], drop_behind: bool) -> Result<()> {
        for request in requests {
            self.writable(Operation::Write, request.offset, request.bytes.len() as u64)?;
        }
        let neighbours = |a: &WriteRequest<'_>, b: &WriteRequest<'_>| {
            a.offset + a.bytes.len() as u64 == b.offset
        };
        for run in requests.chunk_by(neighbours) {
            let len = run.iter().map(|it| it.bytes.len() as u64).sum();
            let offset = run[0].offset;
            self.transfers
                .write(&self.file, offset, run, drop_behind)
                .map_err(|cause| self.error(Operation::Write, offset, len, cause))?;
        }
        Ok(())
    }

    /// Has the host set room aside for these bytes from the beginning on, where it can. What they hold stays.
    ///
    /// # Errors
    /// If the host has no room for them.
    pub fn set_room_aside(&self, length: u64) -> Result<()> {
        if self.kind == Kind::Block || length == 0 {
            return Ok(());
        }
        let mode = FallocateFlags::KEEP_SIZE;
        match transfer::again(|| rustix::fs::fallocate(&self.file, mode, 0, length)) {
            Ok(()) | Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
            Err(errno) => Err(self.error(Operation::Write, 0, length, errno.into())),
        }
    }

    /// What the kernel says a block device's size is now.
    fn block_size_now(&self) -> Result<u64, Cause> {
        Ok(sys::block_device_size(&self.file)? / self.alignment() * self.alignment())
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
        self.transfers.alignment()
    }

    fn is_read_only(&self) -> bool {
        self.access == Access::ReadOnly
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
        self.transfers
            .read(&self.file, offset, buf)
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
        let batches = match (self.batches, self.caching) {
            (Batches::Auto, _) if requests.len() < BATCH => Batches::OneByOne,
            (Batches::Auto, _) if self.in_memory => Batches::OneByOne,
            (Batches::Auto, Caching::Direct) => Batches::Ring,
            (Batches::Auto, _) => Batches::Announced,
            (chosen, _) => chosen,
        };
        if batches == Batches::Ring && self.rings.usable() {
            let read = self.rings.read(&self.file, &self.transfers, requests);
            return read.map_err(|(failed, cause)| {
                let ReadRequest { offset, buf } = &requests[failed];
                self.error(Operation::Read, *offset, buf.len() as u64, cause)
            });
        }
        if batches == Batches::Announced {
            for request in &*requests {
                self.prefetch(request.offset, request.buf.len() as u64);
            }
        }
        for request in requests {
            self.read(request.offset, request.buf)?;
        }
        Ok(())
    }

    fn write_batch(&self, requests: &[WriteRequest<'_>]) -> Result<()> {
        self.write_runs(requests, self.caching == Caching::DropBehind)
    }

    /// Into a file the host's file systems let one write at a time: the others would only spin.
    fn writes_side_by_side(&self) -> bool {
        self.kind == Kind::Block
    }

    fn write_behind(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.write_runs(&[WriteRequest::new(offset, bytes)], true)
    }

    fn unlock(&self) {
        // Else it goes with the descriptor.
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
            match transfer::again(|| rustix::fs::fdatasync(&self.file)) {
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
        let done = transfer::again(|| match self.kind {
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
        // The lock keeps a slower call to a smaller size from cutting what a faster one made.
        let _turn = self.flushed.lock().unwrap_or_else(PoisonError::into_inner);
        check_growth(self, self.size(), size)?;
        match self.kind {
            Kind::Image => transfer::again(|| rustix::fs::ftruncate(&self.file, size))
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

    fn prefetch(&self, offset: u64, len: u64) {
        if let Some(len) = NonZeroU64::new(len)
            && self.caching != Caching::Direct
        {
            // Only a hint: what it cannot do, the read will do or report.
            let _ = rustix::fs::fadvise(&self.file, offset, Some(len), Advice::WillNeed);
        }
    }
}
