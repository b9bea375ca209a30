//! The volume's shares of the [`Memory`] budget that it has in common with its file system.
//!
//! | of the limit | | at least |
//! |---|---|---|
//! | a sixth | dirty pages; as many are in flight | 4 MiB |
//! | a sixth | changes in the active memtable; from half of it on they are checkpointed | 4 MiB |
//! | an eighth | tree nodes, up to [`OpenOptions::cache`](crate::store::OpenOptions::cache) | 2 MiB
//! |
//!
//! Reclaimable memory makes way for all of that.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use holdfast_core::Memory;

use crate::block::BLOCK;

/// The least limit of dirty bytes: fewer are not worth a commit.
const PAGES_MIN: u64 = 4 << 20;
/// The least limit of changes: fewer are not worth a checkpoint.
const CHANGES_MIN: u64 = 4 << 20;
/// The least limit of nodes: the upper levels of all trees.
const NODES_MIN: u64 = 2 << 20;

/// The volume's limit, and whether changes may have reached half of their share.
#[derive(Debug)]
pub(in crate::store) struct Budget {
    /// The limit of the whole budget, in bytes.
    pub(in crate::store) limit: AtomicU64,
    pub(in crate::store) over_half: AtomicBool,
    pub(in crate::store) memory: OnceLock<Arc<Memory>>,
}

impl Budget {
    pub(in crate::store) fn new() -> Self {
        Self {
            limit: AtomicU64::new(u64::MAX),
            over_half: AtomicBool::new(false),
            memory: OnceLock::new(),
        }
    }

    /// The limit of dirty pages.
    pub(in crate::store) fn pages(&self) -> u64 {
        (self.limit.load(Relaxed) / 6).max(PAGES_MIN) / BLOCK as u64
    }

    /// The limit of changes in bytes. From half of it on they are worth a checkpoint.
    pub(in crate::store) fn changes(&self) -> u64 {
        changes_of(self.limit.load(Relaxed))
    }

    /// The limit of nodes in bytes.
    pub(in crate::store) fn nodes(&self) -> u64 {
        (self.limit.load(Relaxed) / 8).max(NODES_MIN)
    }

    /// Checks the changes against half of their limit.
    pub(in crate::store) fn look(&self, changes: u64) {
        if changes > self.changes() / 2 {
            self.over_half.store(true, Relaxed);
        }
        self.moved();
    }

    /// Has the shared budget look at all memory, eventually.
    pub(in crate::store) fn moved(&self) {
        if let Some(memory) = self.memory.get() {
            memory.moved();
        }
    }
}

/// The limit of changes, for this limit of memory.
pub(in crate::store) fn changes_of(limit: u64) -> u64 {
    (limit / 6).max(CHANGES_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{FormatOptions, OpenOptions, VolumeStore, format};
    use holdfast_core::{AtimePolicy, FileSystem, Options};
    use holdfast_device::{BlockDevice, MemoryDevice};
    use holdfast_sync::PerCore;
    use holdfast_types::{Caller, FileType, OpenFlags};
    use parking_lot::Mutex;
    use std::sync::{Arc, mpsc};
    use std::thread;

    #[test]
    fn what_waits_and_what_changed_keep_to_a_small_limit() {
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(512 << 20));
        format(&device, &FormatOptions::default()).unwrap();
        let never = OpenOptions {
            commit_every: None,
            ..OpenOptions::default()
        };
        let store = Arc::new(VolumeStore::open(device, &never).unwrap());
        let memory = Memory::separate(0);
        let fs = FileSystem::within(Arc::clone(&store) as _, Options::default(), memory).unwrap();
        let (who, root) = (Caller::root(), fs.root());
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        let active = || Arc::clone(&store.inner.reader.freeze_barrier.pass().active);
        let file = fs.create(&who, &root, b"large", 0o644, flags).unwrap();
        let most = PAGES_MIN / BLOCK as u64;
        for page in 0..4 * most {
            let at = page * BLOCK as u64;
            fs.write(&who, &file, at, &[1; BLOCK]).unwrap();
            // An estimate: each core batches its updates.
            assert!(active().dirty() <= most + 1024);
        }
        assert!(active().dirty() > 0, "not a commit for each page");
        for number in 0..4 * CHANGES_MIN / 300 {
            let name = format!("file {number}");
            fs.mknod(&who, &root, name.as_bytes(), FileType::Regular, 0o644, 0)
                .unwrap();
            assert!(active().memory() <= CHANGES_MIN + (1 << 20));
        }
        let nodes = fs.memory_in_use().unwrap().shrinkers().totals();
        assert!(nodes.contains_key("nodes"), "{nodes:?}");
        drop((file, root));
        fs.close().unwrap();
        store.close().unwrap();
    }

    /// Runs `test` on a thread without a `PerCore` slot: other threads have them all. A thread has
    /// its slot for its whole life, so those of other tests give none to this one.
    fn without_a_slot(test: impl Fn() + Sync) {
        let slots = PerCore::<()>::default();
        let held = Mutex::new(());
        let guard = held.lock();
        let (send, receive) = mpsc::channel();
        thread::scope(|scope| {
            loop {
                let send = send.clone();
                let (slots, held, test) = (&slots, &held, &test);
                let thread = scope.spawn(move || {
                    let has_slot = slots.own().is_some();
                    send.send(has_slot).unwrap();
                    match has_slot {
                        true => drop(held.lock()),
                        false => test(),
                    }
                });
                if !receive.recv().unwrap() {
                    let result = thread.join();
                    drop(guard);
                    return result.unwrap();
                }
            }
        });
    }

    #[test]
    fn access_times_keep_to_a_small_limit() {
        read_everything_with_strict_times();
    }

    #[test]
    fn access_times_keep_to_a_small_limit_with_more_threads_than_slots() {
        without_a_slot(read_everything_with_strict_times);
    }

    fn read_everything_with_strict_times() {
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(512 << 20));
        format(&device, &FormatOptions::default()).unwrap();
        let never = OpenOptions {
            commit_every: None,
            ..OpenOptions::default()
        };
        let store = Arc::new(VolumeStore::open(device, &never).unwrap());
        let options = Options {
            atime: AtimePolicy::Strict,
            ..Options::default()
        };
        let fs = FileSystem::within(Arc::clone(&store) as _, options, Memory::separate(0)).unwrap();
        let (who, root) = (Caller::root(), fs.root());
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        // More than the budget, if each were one key.
        let count = CHANGES_MIN / 64;
        for number in 0..count {
            let name = format!("{number}");
            let file = fs.create(&who, &root, name.as_bytes(), 0o644, flags);
            fs.write(&who, &file.unwrap(), 0, b"x").unwrap();
        }
        fs.sync().unwrap();
        store.checkpoint().unwrap();
        let begun = store
            .inner
            .reader
            .freeze_barrier
            .pass()
            .active
            .tree_cost()
            .keys;
        assert_eq!(begun, 0);
        let mut most = 0;
        for number in (0..count).map(|number| number * 1009 % count) {
            let name = format!("{number}");
            let file = fs.open_at(&who, &root, name.as_bytes(), OpenFlags::empty(), 0);
            assert_eq!(fs.read(&file.unwrap(), 0, &mut [0]), Ok(1));
            most = most.max(store.inner.reader.freeze_barrier.pass().active.memory());
        }
        assert!(most > CHANGES_MIN / 4, "no time moved: {most}");
        assert!(most <= CHANGES_MIN + (1 << 20), "{most}");
        drop(root);
        fs.close().unwrap();
        store.close().unwrap();
    }

    #[test]
    fn parts_follow_the_limit_down_to_what_is_worth_something() {
        let budget = Budget::new();
        assert!(budget.pages() > 1 << 40 && budget.nodes() > 1 << 40);
        budget.limit.store(1 << 30, Relaxed);
        assert_eq!(budget.pages(), (1 << 30) / 6 / BLOCK as u64);
        assert_eq!((budget.changes(), budget.nodes()), ((1 << 30) / 6, 1 << 27));
        budget.limit.store(0, Relaxed);
        assert_eq!(budget.pages() * BLOCK as u64, PAGES_MIN);
        assert_eq!((budget.changes(), budget.nodes()), (CHANGES_MIN, NODES_MIN));
    }
}
