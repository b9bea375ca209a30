//! A device that counts its requests.

use std::sync::Arc;

use holdfast_device::{BlockDevice, ReadRequest, Result, WriteRequest};

use crate::store::counters::{Counter, WorkCounts};

/// Requests to a volume's device since it was opened, including failed ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceUse {
    /// Reads.
    pub reads: WorkCounts,
    /// Writes.
    pub writes: WorkCounts,
    /// Flushes, which have no bytes.
    pub flushes: WorkCounts,
}

#[derive(Debug)]
pub(in crate::store) struct Metered {
    below: Arc<dyn BlockDevice>,
    reads: Counter,
    writes: Counter,
    flushes: Counter,
}

impl Metered {
    pub(in crate::store) fn new(below: Arc<dyn BlockDevice>) -> Self {
        Self {
            below,
            reads: Counter::default(),
            writes: Counter::default(),
            flushes: Counter::default(),
        }
    }

    /// All requests so far.
    pub(in crate::store) fn so_far(&self) -> DeviceUse {
        DeviceUse {
            reads: self.reads.so_far(),
            writes: self.writes.so_far(),
            flushes: self.flushes.so_far(),
        }
    }
}

impl BlockDevice for Metered {
    holdfast_device::pass_on!(
        below: describe, size, alignment, cache_identity, room, discard, resize
    );

    fn unlock(&self) {
        self.below.unlock();
    }

    fn writes_side_by_side(&self) -> bool {
        self.below.writes_side_by_side()
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let _counted = self.reads.begin_requests(1, buf.len());
        self.below.read(offset, buf)
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) -> Result<()> {
        let bytes = requests.iter().map(|request| request.buf.len()).sum();
        let _counted = self.reads.begin_requests(requests.len(), bytes);
        self.below.read_batch(requests)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let _counted = self.writes.begin_requests(1, bytes.len());
        self.below.write(offset, bytes)
    }

    fn write_batch(&self, requests: &[WriteRequest<'_>]) -> Result<()> {
        let bytes = requests.iter().map(|request| request.bytes.len()).sum();
        let _counted = self.writes.begin_requests(requests.len(), bytes);
        self.below.write_batch(requests)
    }

    fn flush(&self) -> Result<()> {
        let _counted = self.flushes.begin();
        self.below.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_device::MemoryDevice;

    #[test]
    fn requests_and_bytes_are_counted_by_kind_over_all_threads() {
        let device = Metered::new(Arc::new(MemoryDevice::new(1 << 20)));
        std::thread::scope(|scope| {
            for at in 0..4 {
                let device = &device;
                scope.spawn(move || device.write(at * 4096, &[at as u8; 4096]).unwrap());
            }
        });
        let pieces = [&[5; 512][..], &[6; 1024]].map(|bytes| WriteRequest::new(65_536, bytes));
        device.write_batch(&pieces).unwrap();
        device.write(0, &[7; 512]).unwrap();
        device.flush().unwrap();
        let (mut one, mut other) = ([0; 512], [0; 4096]);
        device.read(512, &mut one).unwrap();
        let mut reads = [
            ReadRequest::new(0, &mut one),
            ReadRequest::new(4096, &mut other),
        ];
        device.read_batch(&mut reads).unwrap();
        assert_eq!((one[0], other[0]), (7, 1), "it is the device below");
        let so_far = device.so_far();
        let of = |counts: WorkCounts| (counts.count, counts.bytes);
        assert_eq!(of(so_far.writes), (7, 4 * 4096 + 1536 + 512));
        assert_eq!(of(so_far.reads), (3, 512 + 512 + 4096));
        assert_eq!(of(so_far.flushes), (1, 0));
        assert!(device.read(1 << 20, &mut one).is_err());
        assert_eq!(device.so_far().reads.count, 4, "what fails was asked for");
    }
}
