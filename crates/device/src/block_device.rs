use crate::{Cause, DeviceError, Operation, Result};
use std::fmt::Debug;

/// The unit in bytes that no device tears: a write is cut between two of these or not at all.
pub const SECTOR: u64 = 512;

/// One read of a batch.
#[derive(Debug)]
pub struct ReadRequest<'a> {
    /// Where it begins, in bytes.
    pub offset: u64,
    /// What it fills, to the last byte.
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
    /// Where it begins, in bytes.
    pub offset: u64,
    /// What it writes.
    pub bytes: &'a [u8],
}

impl<'a> WriteRequest<'a> {
    /// Writes `bytes` at `offset`.
    #[must_use]
    pub const fn new(offset: u64, bytes: &'a [u8]) -> Self {
        Self { offset, bytes }
    }
}

/// What lies below a device that promises more than was given to it, such as a sparse image file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes that it was given, of which nothing more is taken when they are written again.
    pub given: u64,
    /// Bytes that there are left for what was not given yet, and for everybody else.
    pub left: u64,
}

/// Where blocks lie.
///
/// Every offset and length is in bytes and a multiple of [`alignment`](Self::alignment); an empty
/// transfer is allowed. A request that is misaligned or reaches past the end fails as a whole and
/// changes nothing. Transfers are whole: short ones and interruptions are the device's business.
///
/// *Order.* A read sees the writes that returned before it began. Two transfers that overlap and
/// run at the same time may mix. Nothing is durable before a [`flush`](Self::flush) that began
/// after the write returned.
pub trait BlockDevice: Debug + Send + Sync {
    /// What the device is called in messages, such as `image file data.hf`.
    fn describe(&self) -> String;

    /// Its size in bytes, a multiple of the alignment.
    fn size(&self) -> u64;

    /// What offsets and lengths must be multiples of, in bytes: a power of two, at least
    /// [`SECTOR`], at most 64 KiB. Memory may lie anywhere.
    fn alignment(&self) -> u64;

    /// Whether every change is refused with [`Cause::ReadOnly`].
    fn is_read_only(&self) -> bool {
        false
    }

    /// Which cache holds what was written and not [flushed](Self::flush) yet. A later opening that finds the
    /// same identity reads all that was written; one that finds another may read any part of it.
    /// `None`: what was not flushed is to be taken for lost.
    fn cache_identity(&self) -> Option<u64> {
        None
    }

    /// Lets others open it, where opening it keeps them out: nothing will be written any more.
    fn unlock(&self) {}

    /// What there is left below for what was never written. `None`: a write never fails for want of that, or nobody knows.
    fn room(&self) -> Option<Room> {
        None
    }

    /// Fills `buf` from `offset`. What was never written is zero on an image, anything on a device.
    ///
    /// # Errors
    /// Which device, where, and why; `buf` may then hold anything.
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// Writes `bytes` at `offset`.
    ///
    /// # Errors
    /// Which device, where, and why; any part may then be written.
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Fills many buffers, perhaps at once. Worth it for what is scattered.
    ///
    /// # Errors
    /// That of one request which failed; all buffers may then hold anything, so whoever wants
    /// what is readable asks again one by one.
    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) -> Result<()> {
        for request in requests {
            self.read(request.offset, request.buf)?;
        }
        Ok(())
    }

    /// Writes many pieces that do not overlap, perhaps at once. Neighbours in the slice that are
    /// neighbours on the device may become one write.
    ///
    /// # Errors
    /// That of one request which failed; any part of all may then be written.
    fn write_batch(&self, requests: &[WriteRequest<'_>]) -> Result<()> {
        for request in requests {
            self.write(request.offset, request.bytes)?;
        }
        Ok(())
    }

    /// Whether several threads that write at a time are done sooner than one.
    fn writes_side_by_side(&self) -> bool {
        false
    }

    /// Writes what nobody will read soon, such as a journal: like [`write`](Self::write), but no
    /// cache on the way has to keep it.
    ///
    /// # Errors
    /// Those of a write.
    fn write_behind(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.write(offset, bytes)
    }

    /// Makes durable all that was written, discarded or grown before.
    ///
    /// # Errors
    /// If any of that may be lost. From then on every flush fails: what the device dropped cannot
    /// be written again by asking once more.
    fn flush(&self) -> Result<()>;

    /// Gives space back. What is read there is undefined until it is written again.
    /// Answers whether the device did anything; one that cannot leaves the bytes as they were.
    ///
    /// # Errors
    /// Only true failures: a device without the feature answers `false`.
    fn discard(&self, offset: u64, len: u64) -> Result<bool>;

    /// Grows to `size` bytes, or takes notice that the device below has grown to that at least.
    ///
    /// # Errors
    /// [`Cause::Shrinks`] for less than the present size; whatever the host answers.
    fn resize(&self, size: u64) -> Result<()>;

    /// Says that a range will be read soon. A hint: it may do nothing, and never waits.
    fn prefetch(&self, offset: u64, len: u64) {
        let _ = (offset, len);
    }
}

/// Passes calls on, in an `impl BlockDevice` of a device that stands before another: `pass_on!(below: size, flush)` has the
/// field `below` answer these.
#[macro_export]
macro_rules! pass_on {
    ($below:ident: $($call:ident),+ $(,)?) => {
        $($crate::pass_on!(@$call $below);)+
    };
    (@describe $below:ident) => {
        fn describe(&self) -> String {
            self.$below.describe()
        }
    };
    (@size $below:ident) => {
        fn size(&self) -> u64 {
            self.$below.size()
        }
    };
    (@alignment $below:ident) => {
        fn alignment(&self) -> u64 {
            self.$below.alignment()
        }
    };
    (@is_read_only $below:ident) => {
        fn is_read_only(&self) -> bool {
            self.$below.is_read_only()
        }
    };
    (@cache_identity $below:ident) => {
        fn cache_identity(&self) -> Option<u64> {
            self.$below.cache_identity()
        }
    };
    (@room $below:ident) => {
        fn room(&self) -> Option<$crate::Room> {
            self.$below.room()
        }
    };
    (@read $below:ident) => {
        fn read(&self, offset: u64, buf: &mut [u8]) -> $crate::Result<()> {
            self.$below.read(offset, buf)
        }
    };
    (@read_batch $below:ident) => {
        fn read_batch(&self, requests: &mut [$crate::ReadRequest<'_>]) -> $crate::Result<()> {
            self.$below.read_batch(requests)
        }
    };
    (@flush $below:ident) => {
        fn flush(&self) -> $crate::Result<()> {
            self.$below.flush()
        }
    };
    (@discard $below:ident) => {
        fn discard(&self, offset: u64, len: u64) -> $crate::Result<bool> {
            self.$below.discard(offset, len)
        }
    };
    (@resize $below:ident) => {
        fn resize(&self, size: u64) -> $crate::Result<()> {
            self.$below.resize(size)
        }
    };
    (@prefetch $below:ident) => {
        fn prefetch(&self, offset: u64, len: u64) {
            self.$below.prefetch(offset, len);
        }
    };
}

/// Refuses what a device must refuse before it touches anything.
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

/// Refuses a new size that no device takes; `now` is the present one.
///
/// # Errors
/// [`Cause::Misaligned`] or [`Cause::Shrinks`].
pub(crate) fn check_growth(device: &dyn BlockDevice, now: u64, size: u64) -> Result<()> {
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
