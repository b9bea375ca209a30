//! A device that counts what is asked of it.
//!
//! Each thread counts on a line of its processor: readers of a device share no other line here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use holdfast_device::{BlockDevice, ReadRequest, Result, WriteRequest};
use holdfast_sync::PerCore;

/// Transfers of one kind since the volume was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfers {
    /// Requests, each of a batch counted.
    pub count: u64,
    /// Bytes that were asked for.
    pub bytes: u64,
    /// How long threads waited for them; for a batch once.
    pub time: Duration,
}

/// What was asked of a volume's device since it was opened, whether it succeeded or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceUse {
    /// Reads.
    pub reads: Transfers,
    /// Writes.
    pub writes: Transfers,
    /// Flushes, which have no bytes.
    pub flushes: Transfers,
}

/// What the threads of a processor asked for.
#[derive(Debug, Default)]
struct Counted {
    count: AtomicU64,
    bytes: AtomicU64,
    nanoseconds: AtomicU64,
}

impl Counted {
    /// So many requests for so many bytes, which began then.
    fn add(&self, count: usize, bytes: usize, begun: Instant) {
        let time = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        // Relaxed: counts for the eye, which order nothing.
        self.count.fetch_add(count as u64, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
        self.nanoseconds.fetch_add(time, Relaxed);
    }

    fn add_to(&self, sum: &mut Transfers) {
        sum.count += self.count.load(Relaxed);
        sum.bytes += self.bytes.load(Relaxed);
        sum.time += Duration::from_nanos(self.nanoseconds.load(Relaxed));
    }
}

#[derive(Debug, Default)]
struct Line {
    reads: Counted,
    writes: Counted,
    flushes: Counted,
}

/// The device below, and what was asked of it.
#[derive(Debug)]
pub(in crate::store) struct Metered {
    below: Arc<dyn BlockDevice>,
    lines: PerCore<Line>,
}

impl Metered {
    pub(in crate::store) fn new(below: Arc<dyn BlockDevice>) -> Self {
        Self {
            below,
            lines: PerCore::default(),
        }
    }

    /// What was asked of it so far.
    pub(in crate::store) fn so_far(&self) -> DeviceUse {
        let mut sum = DeviceUse::default();
        for line in self.lines.iter() {
            line.reads.add_to(&mut sum.reads);
            line.writes.add_to(&mut sum.writes);
            line.flushes.add_to(&mut sum.flushes);
        }
        sum
    }

    fn count_write(&self, count: usize, bytes: usize, begun: Instant) {
        self.lines.mine().writes.add(count, bytes, begun);
    }
}

impl BlockDevice for Metered {
    holdfast_device::pass_on!(
        below: describe, size, alignment, is_read_only, cache_identity, room, discard, resize, prefetch
    );

    fn unlock(&self) {
        self.below.unlock();
    }

    fn writes_side_by_side(&self) -> bool {
        self.below.writes_side_by_side()
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let begun = Instant::now();
        let read = self.below.read(offset, buf);
        self.lines.mine().reads.add(1, buf.len(), begun);
        read
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) -> Result<()> {
        let begun = Instant::now();
        let read = self.below.read_batch(requests);
        let bytes = requests.iter().map(|request| request.buf.len()).sum();
        let reads = &self.lines.mine().reads;
        reads.add(requests.len(), bytes, begun);
        read
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let begun = Instant::now();
        let written = self.below.write(offset, bytes);
        self.count_write(1, bytes.len(), begun);
        written
    }

    fn write_behind(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let begun = Instant::now();
        let written = self.below.write_behind(offset, bytes);
        self.count_write(1, bytes.len(), begun);
        written
    }

    fn write_batch(&self, requests: &[WriteRequest<'_>]) -> Result<()> {
        let begun = Instant::now();
        let written = self.below.write_batch(requests);
        let bytes = requests.iter().map(|request| request.bytes.len()).sum();
        self.count_write(requests.len(), bytes, begun);
        written
    }

    fn flush(&self) -> Result<()> {
        let begun = Instant::now();
        let flushed = self.below.flush();
        self.lines.mine().flushes.add(1, 0, begun);
        flushed
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
        device.write_behind(0, &[7; 512]).unwrap();
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
        let of = |transfers: Transfers| (transfers.count, transfers.bytes);
        assert_eq!(of(so_far.writes), (7, 4 * 4096 + 1536 + 512));
        assert_eq!(of(so_far.reads), (3, 512 + 512 + 4096));
        assert_eq!(of(so_far.flushes), (1, 0));
        assert!(device.read(1 << 20, &mut one).is_err());
        assert_eq!(device.so_far().reads.count, 4, "what fails was asked for");
    }
}
