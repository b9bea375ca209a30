//! A device that takes its time for reads.

use holdfast_device::{BlockDevice, ReadRequest, Result, WriteRequest};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

/// A device of which each read waits, and nothing else. A batch waits once, as on a device with a
/// deep queue; or, on a *serial* one, each of its requests waits, one after the other, as on a
/// disk.
#[derive(Debug)]
pub(super) struct SlowReads {
    below: Arc<dyn BlockDevice>,
    delay: Duration,
    /// Held while a read of a serial device waits.
    line: Option<Mutex<()>>,
    /// Relaxed, as `waits`: both are set and read by the thread that measures.
    is_slow: AtomicBool,
    waits: AtomicU64,
}

impl SlowReads {
    /// It is quick until [`Self::slow_down`] is called.
    pub(super) fn new(below: Arc<dyn BlockDevice>, delay: Duration, serial: bool) -> Self {
        Self {
            below,
            delay,
            line: serial.then(Mutex::default),
            is_slow: AtomicBool::new(false),
            waits: AtomicU64::new(0),
        }
    }

    /// Reads wait from now on.
    pub(super) fn slow_down(&self) {
        self.is_slow.store(true, Relaxed);
    }

    /// How often a read waited.
    pub(super) fn waits(&self) -> u64 {
        self.waits.load(Relaxed)
    }

    fn wait(&self, requests: usize) {
        if requests == 0 || !self.is_slow.load(Relaxed) {
            return;
        }
        let Some(line) = &self.line else {
            self.waits.fetch_add(1, Relaxed);
            sleep(self.delay);
            return;
        };
        for _ in 0..requests {
            let _turn = line.lock().unwrap_or_else(PoisonError::into_inner);
            self.waits.fetch_add(1, Relaxed);
            sleep(self.delay);
        }
    }
}

impl BlockDevice for SlowReads {
    holdfast_device::pass_on!(
        below: describe, size, alignment, cache_identity, flush, discard, resize
    );

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.wait(1);
        self.below.read(offset, buf)
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) -> Result<()> {
        self.wait(requests.len());
        self.below.read_batch(requests)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.below.write(offset, bytes)
    }

    fn write_batch(&self, requests: &[WriteRequest<'_>]) -> Result<()> {
        self.below.write_batch(requests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_device::MemoryDevice;

    #[test]
    fn a_batch_waits_once_and_on_a_serial_device_for_each_request() {
        for (serial, expected) in [(false, 2), (true, 3)] {
            let below = Arc::new(MemoryDevice::new(1 << 20));
            let device = SlowReads::new(below, Duration::from_micros(1), serial);
            device.read(0, &mut [0; 512]).expect("read");
            assert_eq!(device.waits(), 0, "it is quick at first");
            device.slow_down();
            device.read(0, &mut [0; 512]).expect("read");
            let (mut one, mut other) = ([0; 512], [0; 512]);
            let mut requests = [
                ReadRequest::new(0, &mut one),
                ReadRequest::new(4096, &mut other),
            ];
            device.read_batch(&mut requests).expect("read");
            device.write(0, &[1; 512]).expect("written");
            assert_eq!(device.waits(), expected);
        }
    }
}
