//! Waiting for the progress of the volume's thread.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// A writer waits for the volume's thread at most so long.
pub(in crate::store) const HELP_MAX: Duration = Duration::from_secs(1);

/// Counts commit points, and completed jobs of the volume's threads.
#[derive(Debug, Default)]
pub(in crate::store) struct Progress {
    steps: Mutex<u64>,
    made: Condvar,
}

impl Progress {
    pub(in crate::store) fn steps(&self) -> u64 {
        *self.steps.lock()
    }

    /// Counts a step and wakes the waiters.
    pub(in crate::store) fn step(&self) {
        *self.steps.lock() += 1;
        self.made.notify_all();
    }

    /// Waits for the next step after `steps`; `false`: `until` has passed.
    pub(in crate::store) fn wait_behind(&self, steps: u64, until: Instant) -> bool {
        let mut now = self.steps.lock();
        while *now == steps {
            if self.made.wait_until(&mut now, until).timed_out() {
                return *now != steps;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::BLOCK;
    use crate::store::{FormatOptions, OpenOptions, VolumeStore, format};
    use holdfast_core::{FileSystem, Memory, Options};
    use holdfast_device::{BlockDevice, MemoryDevice, Result};
    use holdfast_types::{Caller, FileType, OpenFlags};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::thread::{self, ThreadId};
    use std::time::Duration;

    const MIB: u64 = 1 << 20;

    /// A device that counts the writes of one thread, and delays the first write of any other.
    #[derive(Debug)]
    struct Watched {
        inner: MemoryDevice,
        whose: Mutex<Option<ThreadId>>,
        /// Bytes, by that thread and by others.
        written: Mutex<[u64; 2]>,
        /// Flushes by that thread.
        flushes: AtomicU64,
    }

    impl Watched {
        fn new() -> Arc<Self> {
            Arc::new(Self {
                inner: MemoryDevice::new(512 * MIB),
                whose: Mutex::default(),
                written: Mutex::default(),
                flushes: AtomicU64::new(0),
            })
        }
    }

    impl BlockDevice for Watched {
        holdfast_device::pass_on!(inner: describe, size, alignment, read, discard, resize);

        fn flush(&self) -> Result<()> {
            if *self.whose.lock() == Some(thread::current().id()) {
                self.flushes.fetch_add(1, Relaxed);
            }
            self.inner.flush()
        }

        fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
            let whose = *self.whose.lock();
            if let Some(whose) = whose {
                let other = usize::from(thread::current().id() != whose);
                if other == 1 && self.written.lock()[other] == 0 {
                    thread::sleep(Duration::from_millis(200));
                }
                self.written.lock()[other] += bytes.len() as u64;
            }
            self.inner.write(offset, bytes)
        }
    }

    #[test]
    fn a_writer_who_is_ahead_of_the_device_leaves_writing_to_the_volumes_thread() {
        let watched = Watched::new();
        let device: Arc<dyn BlockDevice> = Arc::clone(&watched) as _;
        format(&device, &FormatOptions::default()).unwrap();
        let store = Arc::new(VolumeStore::open(device, &OpenOptions::default()).unwrap());
        // A sixth of it may be dirty: less than is written during the device's delay.
        let memory = Memory::separate(96 * MIB);
        let fs = FileSystem::within(Arc::clone(&store) as _, Options::default(), memory).unwrap();
        let (who, root) = (Caller::root(), fs.root());
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        let file = fs.create(&who, &root, b"f", 0o644, flags).unwrap();
        *watched.whose.lock() = Some(thread::current().id());
        for page in 0..100 * MIB / BLOCK as u64 {
            let at = page * BLOCK as u64;
            fs.write(&who, &file, at, &[1; BLOCK]).unwrap();
        }
        let [own, others] = *watched.written.lock();
        *watched.whose.lock() = None;
        assert!(others >= 64 * MIB, "{others} bytes by the volume's thread");
        // A thread that changes something writes to the journal.
        assert!(own < 8 * MIB, "{own} bytes by the writer");
        drop((file, root));
        fs.close().unwrap();
        store.close().unwrap();
    }

    #[test]
    fn a_writer_who_is_ahead_of_checkpoints_leaves_them_to_the_volumes_thread() {
        let watched = Watched::new();
        let device: Arc<dyn BlockDevice> = Arc::clone(&watched) as _;
        format(&device, &FormatOptions::default()).unwrap();
        let never = OpenOptions {
            commit_every: None,
            ..OpenOptions::default()
        };
        let store = Arc::new(VolumeStore::open(device, &never).unwrap());
        // The minimum: 4 MiB of changes.
        let memory = Memory::separate(0);
        let fs = FileSystem::within(Arc::clone(&store) as _, Options::default(), memory).unwrap();
        let (who, root) = (Caller::root(), fs.root());
        *watched.whose.lock() = Some(thread::current().id());
        for number in 0..100_000 {
            let name = format!("{number}");
            fs.mknod(&who, &root, name.as_bytes(), FileType::Regular, 0o644, 0)
                .unwrap();
        }
        *watched.whose.lock() = None;
        let made = store.inner.counters.checkpoints.so_far().count;
        assert!(made >= 5, "{made} checkpoints");
        assert_eq!(watched.flushes.load(Relaxed), 0, "by the writer");
        drop(root);
        fs.close().unwrap();
        store.close().unwrap();
    }

    #[test]
    fn a_step_ends_the_wait_for_it_and_time_does_without_one() {
        let progress = Progress::default();
        let soon = || Instant::now() + Duration::from_millis(20);
        let seen = progress.steps();
        assert!(!progress.wait_behind(seen, soon()));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let much_later = Instant::now() + Duration::from_secs(600);
                progress.wait_behind(seen, much_later)
            });
            progress.step();
            assert!(waiting.join().unwrap());
        });
        assert!(progress.wait_behind(seen, soon()), "it was made before");
        assert!(!progress.wait_behind(progress.steps(), soon()));
    }
}
