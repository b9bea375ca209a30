use holdfast_device::{BlockDevice, Cause, DeviceError, Operation, Result, Room};
use holdfast_types::Errno;
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;

/// The unit in bytes that the host allots.
const PAGE: u64 = 4096;

/// A device like a sparse image on a host that has less room than the image promises.
///
/// The first write to a page takes room; when none is left, it fails with `ENOSPC`, after the pages
/// before it were written. A discard of whole pages gives their room back. Pages written before the
/// wrapper came count as those that were not. How much is left it says only if it is asked to.
#[derive(Debug)]
pub struct SparseDevice {
    inner: Arc<dyn BlockDevice>,
    host: Mutex<Host>,
    tells: bool,
}

#[derive(Debug)]
struct Host {
    allotted: HashSet<u64>,
    /// Bytes.
    left: u64,
}

impl SparseDevice {
    /// A host that has room for so many bytes.
    #[must_use]
    pub fn new(inner: Arc<dyn BlockDevice>, room: u64) -> Self {
        let host = Host {
            allotted: HashSet::new(),
            left: room,
        };
        Self {
            inner,
            host: Mutex::new(host),
            tells: false,
        }
    }

    /// It says from now on what it has room for, as the host of an image does.
    #[must_use]
    pub fn telling(self) -> Self {
        Self {
            tells: true,
            ..self
        }
    }

    /// Room on the host that is left, in bytes.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.host.lock().left
    }

    /// Gives the host so much more room, in bytes.
    pub fn grant(&self, room: u64) {
        self.host.lock().left += room;
    }

    /// How many of `len` bytes at `offset` have room, which they then have taken.
    fn allot(&self, offset: u64, len: u64) -> u64 {
        let mut host = self.host.lock();
        let end = offset.saturating_add(len);
        for page in offset / PAGE..end.div_ceil(PAGE) {
            if host.allotted.contains(&page) {
                continue;
            }
            if host.left < PAGE {
                return (page * PAGE).max(offset) - offset;
            }
            host.left -= PAGE;
            host.allotted.insert(page);
        }
        len
    }
}

impl BlockDevice for SparseDevice {
    holdfast_device::pass_on!(inner: describe, size, alignment, read, read_batch, flush, resize);

    fn room(&self) -> Option<Room> {
        let host = self.host.lock();
        let given = host.allotted.len() as u64 * PAGE;
        (self.tells && given < self.size()).then_some(Room {
            given,
            left: host.left,
        })
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let len = bytes.len() as u64;
        holdfast_device::check_range(self, Operation::Write, offset, len)?;
        let fits = self.allot(offset, len);
        self.inner.write(offset, &bytes[..fits as usize])?;
        if fits == len {
            return Ok(());
        }
        let cause = Cause::from(Errno::ENOSPC);
        let device = self.describe();
        Err(DeviceError::new(
            device,
            Operation::Write,
            offset,
            len,
            cause,
        ))
    }

    fn discard(&self, offset: u64, len: u64) -> Result<bool> {
        let done = self.inner.discard(offset, len)?;
        let mut host = self.host.lock();
        for page in offset.div_ceil(PAGE)..(offset + len) / PAGE {
            if done && host.allotted.remove(&page) {
                host.left += PAGE;
            }
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_device::MemoryDevice;

    #[test]
    fn a_full_host_refuses_new_pages_only_and_a_discard_makes_room() {
        let device = SparseDevice::new(Arc::new(MemoryDevice::new(1 << 20)), 3 * PAGE);
        device.write(PAGE, &[1; 8192]).unwrap();
        let error = device.write(2 * PAGE + 512, &[2; 3 * 4096]).unwrap_err();
        assert!(error.is_no_space());
        assert_eq!(device.left(), 0);
        let mut seen = [0; 4096];
        device.read(3 * PAGE, &mut seen).unwrap();
        assert_eq!(seen, [2; 4096]);
        device.read(4 * PAGE, &mut seen).unwrap();
        assert_eq!(seen, [0; 4096]);
        device.write(PAGE, &[3; 8192]).unwrap();
        device.write(0, &[3; 512]).unwrap_err();
        // Half a page gives no room back.
        device.discard(PAGE, 6144).unwrap();
        assert_eq!(device.left(), PAGE);
        device.write(0, &[3; 512]).unwrap();
        device.write(8 * PAGE, &[3; 512]).unwrap_err();
        device.grant(PAGE);
        device.write(8 * PAGE, &[3; 512]).unwrap();
    }
}
