//! Statistics of an open volume, and opening one read-only.

use std::sync::Arc;

use holdfast_device::BlockDevice;

use super::VolumeStore;
use super::counters::WorkCounts;
use super::load::{DeviceUse, Metered};
use super::open::OpenOptions;
use crate::cow_device::CowDevice;
use crate::error::Result;
use crate::space::Report;
use crate::superblock::Superblock;
use crate::tree::CacheCounts;

/// The state of an open volume.
#[derive(Clone, Debug)]
pub struct Info {
    /// As last written.
    pub superblock: Superblock,
    /// Use of blocks.
    pub space: Report,
    /// Allocation groups.
    pub groups: u64,
    /// Inodes in use.
    pub inodes: u64,
}

/// Activity of a volume since it was opened, and what is pending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Requests to the device.
    pub device: DeviceUse,
    /// Flushed commits.
    pub commits: WorkCounts,
    /// Checkpoints.
    pub checkpoints: WorkCounts,
    /// Waits of writers until earlier changes were written.
    pub writer_waits: WorkCounts,
    /// Bytes of the journal in use.
    pub journal_used: u64,
    /// Usable bytes of the journal.
    pub journal_capacity: u64,
    /// Dirty pages, approximately: each thread batches its updates of this counter.
    pub pages_waiting: u64,
    /// Hits and misses of the node cache.
    pub nodes: CacheCounts,
}

impl VolumeStore {
    /// Opens a volume on a read-only device. Its journal is replayed in memory; changes stay in
    /// memory and are lost with the store.
    ///
    /// # Errors
    /// As [`VolumeStore::open`].
    pub fn open_read_only(device: Arc<dyn BlockDevice>, options: &OpenOptions) -> Result<Self> {
        let options = OpenOptions {
            commit_every: None,
            ..*options
        };
        let metered = Arc::new(Metered::new(device));
        let cow_device = CowDevice::new(Arc::clone(&metered) as _);
        Self::open_over(Arc::new(cow_device), metered, &options)
    }

    /// Activity since the open: sums over per-core counters.
    #[must_use]
    pub fn activity(&self) -> Activity {
        let inner = &self.inner;
        Activity {
            device: inner.metered.so_far(),
            commits: inner.counters.commits.so_far(),
            checkpoints: inner.counters.checkpoints.so_far(),
            writer_waits: inner.counters.writer_waits.so_far(),
            journal_used: inner.journal.used(),
            journal_capacity: inner.journal.capacity(),
            pages_waiting: inner.reader.freeze_barrier.pass().active.dirty(),
            nodes: inner.reader.cache.counts(),
        }
    }

    /// The volume's present state.
    #[must_use]
    pub fn info(&self) -> Info {
        let superblock = self.inner.superblock.lock().clone();
        Info {
            groups: superblock.layout().groups(),
            superblock,
            space: self.inner.space.report(),
            inodes: self.inner.inodes(),
        }
    }

    /// Why the volume failed, if it has. To continue it must be opened again.
    #[must_use]
    pub fn failure_reason(&self) -> Option<&str> {
        self.inner.stop.error_callback.reason()
    }

    /// Calls `notify` with the reason when the volume fails, at once if it has. The calling thread
    /// may hold the store's locks: `notify` must neither wait nor call the store.
    pub fn notify_failure(&self, notify: impl FnOnce(&str) + Send + 'static) {
        self.inner.stop.error_callback.set(Box::new(notify));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::BLOCK;
    use crate::store::{FormatOptions, WorkCounts, format};
    use holdfast_core::{FileSystem, Options};
    use holdfast_device::MemoryDevice;
    use holdfast_types::{Caller, OpenFlags};

    /// Bytes per write.
    const RUN: usize = 64 * BLOCK;

    #[test]
    fn what_a_volume_does_is_counted_and_a_look_at_it_writes_nothing() {
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(64 << 20));
        format(&device, &FormatOptions::default()).unwrap();
        let never = OpenOptions {
            commit_every: None,
            ..OpenOptions::default()
        };
        let store = Arc::new(VolumeStore::open(Arc::clone(&device), &never).unwrap());
        let fs = FileSystem::new(Arc::clone(&store) as _, Options::default()).unwrap();
        let (caller, root) = (Caller::root(), fs.root());
        let before = store.activity();
        assert_eq!((before.commits.count, before.pages_waiting), (0, 0));
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        let file = fs.create(&caller, &root, b"file", 0o644, flags).unwrap();
        for run in 0..32 {
            let at = (run * RUN) as u64;
            fs.write(&caller, &file, at, &[1; RUN]).unwrap();
        }
        // The volume's thread may have begun to write them.
        let changed = store.activity();
        let most = 32 * RUN as u64 / BLOCK as u64;
        assert!(changed.pages_waiting <= most, "{changed:?}");
        assert!(changed.journal_used <= changed.journal_capacity);
        fs.sync().unwrap();
        let synced = store.activity();
        assert!(synced.commits.count > 0 && synced.pages_waiting == 0);
        assert!(!synced.commits.time.is_zero());
        let written = |activity: &Activity| activity.device.writes.bytes;
        assert!(written(&synced) >= written(&before) + 32 * RUN as u64);
        assert!(synced.device.flushes.count > before.device.flushes.count);
        assert!(synced.journal_used > 0);
        store.checkpoint().unwrap();
        let folded = store.activity();
        assert!(folded.checkpoints.count > synced.checkpoints.count);
        assert!(folded.commits.count > synced.commits.count);
        assert_eq!(folded.checkpoints.under_way, 0);
        drop((file, root));
        fs.close().unwrap();
        drop(store);
        let looked = VolumeStore::open_read_only(device, &never).unwrap();
        let (reads, writes) = (
            looked.activity().device.reads,
            looked.activity().device.writes,
        );
        assert!(reads.bytes > 0 && writes == WorkCounts::default());
    }
}
