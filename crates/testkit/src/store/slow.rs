use super::{Call, Hook, Wrapped};
use holdfast_types::Result;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A store that takes its time.
pub type SlowStore = Wrapped<Latency>;

/// How long each call waits before it begins, as on a device: calls of several threads wait at
/// the same time.
#[derive(Debug)]
pub struct Latency {
    /// For calls that only read, in nanoseconds.
    read: AtomicU64,
    /// For [`Call::Apply`] and [`Call::Commit`], in nanoseconds.
    write: AtomicU64,
    /// How many calls waited.
    waits: AtomicU64,
}

impl Latency {
    /// These latencies for calls that load, and for calls that write.
    #[must_use]
    pub fn new(read: Duration, write: Duration) -> Self {
        let latency = Self {
            read: AtomicU64::new(0),
            write: AtomicU64::new(0),
            waits: AtomicU64::new(0),
        };
        latency.set(read, write);
        latency
    }

    /// Changes the latencies.
    pub fn set(&self, read: Duration, write: Duration) {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.read.store(nanos(read), Ordering::Relaxed);
        self.write.store(nanos(write), Ordering::Relaxed);
    }

    /// How many calls waited so far: the round trips a device would have made.
    #[must_use]
    pub fn waits(&self) -> u64 {
        self.waits.load(Ordering::Relaxed)
    }
}

impl Hook for Latency {
    fn before(&self, call: Call) -> Result<()> {
        let nanos = match call {
            // A promise of space is kept in memory by every store.
            Call::Reserve | Call::Space | Call::LastIno => 0,
            Call::Apply | Call::Commit => self.write.load(Ordering::Relaxed),
            _ => self.read.load(Ordering::Relaxed),
        };
        if nanos > 0 {
            self.waits.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_nanos(nanos));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn only_calls_that_reach_a_device_wait() {
        let latency = Latency::new(Duration::from_millis(5), Duration::ZERO);
        let began = Instant::now();
        for call in [Call::Reserve, Call::Apply, Call::LookUp] {
            latency.before(call).unwrap();
        }
        assert!(began.elapsed() >= Duration::from_millis(5));
        assert_eq!(latency.waits(), 1);
    }
}
