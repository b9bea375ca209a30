use holdfast_device::{BlockDevice, ReadRequest, Result, WriteRequest};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A device that takes its time.
///
/// Each call waits its latency, as on a device with a queue: calls of several threads wait at the
/// same time, and a batch waits once. Bytes share one line.
#[derive(Debug)]
pub struct SlowDevice {
    inner: Arc<dyn BlockDevice>,
    read: Duration,
    write: Duration,
    flush: Duration,
    bytes_per_second: u64,
    /// Until when the line is taken.
    line: Mutex<Instant>,
    waits: AtomicU64,
}

impl SlowDevice {
    /// These latencies for reads, for writes and discards, and for flushes; no limit on bytes.
    #[must_use]
    pub fn new(
        inner: Arc<dyn BlockDevice>,
        read: Duration,
        write: Duration,
        flush: Duration,
    ) -> Self {
        Self {
            inner,
            read,
            write,
            flush,
            bytes_per_second: u64::MAX,
            line: Mutex::new(Instant::now()),
            waits: AtomicU64::new(0),
        }
    }

    /// Limits the bytes that go in both directions together.
    #[must_use]
    pub fn with_bandwidth(mut self, bytes_per_second: u64) -> Self {
        self.bytes_per_second = bytes_per_second.max(1);
        self
    }

    /// How many calls waited: the round trips so far.
    #[must_use]
    pub fn waits(&self) -> u64 {
        self.waits.load(Ordering::Relaxed)
    }

    fn wait(&self, latency: Duration, bytes: u64) {
        let now = Instant::now();
        let transfer_nanos = u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_second);
        let transfer = Duration::from_nanos(u64::try_from(transfer_nanos).unwrap_or(u64::MAX));
        let until = {
            let mut line = self.line.lock();
            *line = (*line).max(now) + transfer;
            *line + latency
        };
        self.waits.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
    }
}

impl BlockDevice for SlowDevice {
    holdfast_device::pass_on!(inner: describe, size, alignment, cache_identity, room);

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.wait(self.read, buf.len() as u64);
        self.inner.read(offset, buf)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.wait(self.write, bytes.len() as u64);
        self.inner.write(offset, bytes)
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) -> Result<()> {
        self.wait(
            self.read,
            requests.iter().map(|it| it.buf.len() as u64).sum(),
        );
        self.inner.read_batch(requests)
    }

    fn write_batch(&self, requests: &[WriteRequest<'_>]) -> Result<()> {
        self.wait(
            self.write,
            requests.iter().map(|it| it.bytes.len() as u64).sum(),
        );
        self.inner.write_batch(requests)
    }

    fn flush(&self) -> Result<()> {
        self.wait(self.flush, 0);
        self.inner.flush()
    }

    fn discard(&self, offset: u64, len: u64) -> Result<bool> {
        self.wait(self.write, 0);
        self.inner.discard(offset, len)
    }

    fn resize(&self, size: u64) -> Result<()> {
        self.wait(self.write, 0);
        self.inner.resize(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_device::MemoryDevice;

    fn took(work: impl FnOnce()) -> Duration {
        let began = Instant::now();
        work();
        began.elapsed()
    }

    #[test]
    fn calls_wait_their_latency_and_a_batch_waits_once() {
        let memory = Arc::new(MemoryDevice::new(1 << 20));
        let milli = Duration::from_millis;
        let device = SlowDevice::new(memory, milli(10), milli(20), milli(30));
        assert!(took(|| device.read(0, &mut [0; 512]).unwrap()) >= milli(10));
        assert!(took(|| device.write(0, &[0; 512]).unwrap()) >= milli(20));
        assert!(took(|| device.flush().unwrap()) >= milli(30));
        let writes = [
            WriteRequest::new(0, &[1; 512]),
            WriteRequest::new(4096, &[2; 512]),
        ];
        device.write_batch(&writes).unwrap();
        assert_eq!(device.waits(), 4);
    }

    #[test]
    fn bytes_of_all_threads_share_the_line() {
        let memory = Arc::new(MemoryDevice::new(1 << 20));
        let none = Duration::ZERO;
        let device = SlowDevice::new(memory, none, none, none).with_bandwidth(10 << 20);
        let four = took(|| {
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| device.write(0, &[0; 256 << 10]).unwrap());
                }
            });
        });
        assert!(four >= Duration::from_millis(99), "{four:?}");
    }
}
