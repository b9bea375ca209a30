use crate::{Cause, DeviceError, Operation, Result};
use std::fmt::Debug;

/// The unit in bytes that no device tears: a write ends between two of these or not at all.
pub const SECTOR: u64 = 512;

/// One read of a batch.
#[derive(Debug)]
pub struct ReadRequest<'a> {
    /// Its first byte.
    pub offset: u64,
    /// The buffer, which is filled completely.
    pub buf: &'a mut [u8],
}

impl<'a> ReadRequest<'a> {
    /// Fills `buf` from `offset`.
    #[must_use]
    pub const fn new(offset: u64, buf: &'a mut [u8]) -> Self {
        Self { offset, buf }
    }
}

/// One write of a batch.
#[derive(Clone, Copy, Debug)]
pub struct WriteRequest<'a> {
    /// Its first byte.
    pub offset: u64,
    /// The bytes to write.
    pub bytes: &'a [u8],
}

impl<'a> WriteRequest<'a> {
    /// Writes `bytes` at `offset`.
    #[must_use]
    pub const fn new(offset: u64, bytes: &'a [u8]) -> Self {
        Self { offset, bytes }
    }
}

/// The room below a device that promises more than it has, such as a sparse image file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes that the device has been given: rewriting them takes no more room.
    pub given: u64,
    /// Bytes that are free for the rest of the device, and for other users of the host.
    pub left: u64,
}

/// A device with the blocks of a volume.
///
/// Every offset and length is in bytes and a multiple of [`alignment`](Self::alignment); an empty
/// transfer is allowed. A misaligned request, or one past the end, fails as a whole and changes
/// nothing. Transfers are complete: the device repeats short and interrupted ones.
///
/// *Order.* A read sees the writes that returned before it began. Concurrent overlapping transfers
/// may mix. A write is durable only after a [`flush`](Self::flush) that began after it returned.
pub trait BlockDevice: Debug + Send + Sync {
    /// The device's name in messages, such as `image file data.hf`.
    fn describe(&self) -> String;

    /// Its size in bytes, a multiple of the alignment.
    fn size(&self) -> u64;

    /// The unit of offsets and lengths, in bytes: a power of two, at least [`SECTOR`], at most 64
    /// KiB. Buffers may have any address.
    fn alignment(&self) -> u64;

    /// The identity of the cache that holds writes before they are [flushed](Self::flush). A later
    /// opening that finds the same identity reads all of them. One that finds another identity may
    /// read any part of them. `None`: unflushed writes count as lost.
    fn cache_identity(&self) -> Option<u64> {
        None
    }

    /// Releases the lock that keeps others from opening the device: nothing will be written any
    /// more.
    fn unlock(&self) {}

    /// The room below for bytes that were never written. `None`: a write never fails for lack of
    /// room, or the room is unknown.
    fn room(&self) -> Option<Room> {
        None
    }

    /// Fills `buf` from `offset`. Bytes that were never written are zero on an image, and undefined
    /// on a device.
    ///
    /// # Errors
    /// The device, range and cause; `buf` is then undefined.
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// Writes `bytes` at `offset`.
    ///
    /// # Errors
    /// The device, range and cause; any part may then be written.
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Fills many buffers, perhaps concurrently. Worth it for scattered reads.
    ///
    /// # Errors
    /// That of one failed request. All buffers are then undefined; to get the readable ones, read
    /// them one by one.
    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) -> Result<()> {
        for request in requests {
            self.read(request.offset, request.buf)?;
        }
        Ok(())
    }

    /// Writes many ranges that do not overlap, perhaps concurrently. Neighbours in the slice that
    /// are adjacent on the device may become one write.
    ///
    /// # Errors
    /// That of one failed request; any part of all may then be written.
    fn write_batch(&self, requests: &[WriteRequest<'_>]) -> Result<()> {
        for request in requests {
            self.write(request.offset, request.bytes)?;
        }
        Ok(())
    }

    /// Do several writing threads finish sooner than one?
    fn writes_side_by_side(&self) -> bool {
        false
    }

    /// Makes all earlier writes, discards and growth durable.
    ///
    /// # Errors
    /// If any of that may be lost. From then on every flush fails: a repeated flush cannot restore
    /// writes that the device dropped.
    fn flush(&self) -> Result<()>;

    /// Frees a range; its content is undefined until it is written again. Returns whether the
    /// device did so; otherwise the content is unchanged.
    ///
    /// # Errors
    /// Only failures: a device without the feature returns `false`.
    fn discard(&self, offset: u64, len: u64) -> Result<bool>;

    /// Grows to `size` bytes, or accepts that the device below has grown to at least that.
    ///
    /// # Errors
    /// [`Cause::Shrinks`] for less than the present size; the host's.
    fn resize(&self, size: u64) -> Result<()>;
}

/// Checks the range of a request, before the device does anything.
///
/// # Errors
/// [`Cause::Misaligned`] or [`Cause::OutOfRange`].
pub fn check_range(
    device: &dyn BlockDevice,
    operation: Operation,
    offset: u64,
    len: u64,
) -> Result<()> {
    let (size, alignment) = (device.size(), device.alignment());
    let cause = if (offset | len) & (alignment - 1) != 0 {
        Cause::Misaligned { alignment }
    } else if offset.checked_add(len).is_none_or(|end| end > size) {
        Cause::OutOfRange { size }
    } else {
        return Ok(());
    };
    Err(DeviceError::new(
        device.describe(),
        operation,
        offset,
        len,
        cause,
    ))
}

/// Checks a new size; `now` is the present one.
///
/// # Errors
/// [`Cause::Misaligned`] or [`Cause::Shrinks`].
pub(crate) fn check_new_size(device: &dyn BlockDevice, now: u64, size: u64) -> Result<()> {
    let alignment = device.alignment();
    let cause = if size & (alignment - 1) != 0 {
        Cause::Misaligned { alignment }
    } else if size < now {
        Cause::Shrinks { size: now }
    } else {
        return Ok(());
    };
    Err(DeviceError::new(
        device.describe(),
        Operation::Resize,
        size,
        0,
        cause,
    ))
}
