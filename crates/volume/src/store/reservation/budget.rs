//! How much memory the volume may take for what it could have written, or could read again: parts of
//! the [`Memory`] that it shares with its file system.
//!
//! | of the limit | | at least |
//! |---|---|---|
//! | a sixth | pages that wait to be written; as many are on their way | 4 MiB |
//! | a sixth | changes that are not in the trees yet; from the half on they are brought there, while as many come | 4 MiB |
//! | an eighth | nodes of the trees, and no more than [`OpenOptions::cache`](crate::store::OpenOptions::cache) | 2 MiB |
//!
//! What can be freed at any time makes way for all of that.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use holdfast_core::budget::{Class, Member, Memory, Usage};
use holdfast_core::shrinkers::Registered;

use super::nodes::{HasNodes, Nodes};
use crate::store::commit::progress::HELP_MAX;
use crate::store::load::device::Blocks;
use crate::store::memtable::Memtable;
use crate::store::{Inner, VolumeStore};
use crate::tree::NodeCache;
use crate::{BLOCK, Result};

/// At least so many bytes of pages may wait: fewer are not worth a commit.
const PAGES_MIN: u64 = 4 << 20;
/// At least so many bytes of changes may wait: fewer are not worth a checkpoint.
const CHANGES_MIN: u64 = 4 << 20;
/// At least so many bytes of nodes: the upper ones of all trees.
const NODES_MIN: u64 = 2 << 20;

/// The volume's limit, and whether changes may have come to their part of it.
#[derive(Debug)]
pub(in crate::store) struct Budget {
    limit: AtomicU64,
    crowded: AtomicBool,
    memory: OnceLock<Arc<Memory>>,
    /// Frees nodes beyond their part.
    shrinker: OnceLock<Arc<Registered<Nodes<Inner>>>>,
}

impl Budget {
    /// Without a limit.
    pub(in crate::store) fn new() -> Self {
        Self {
            limit: AtomicU64::new(u64::MAX),
            crowded: AtomicBool::new(false),
            memory: OnceLock::new(),
            shrinker: OnceLock::new(),
        }
    }

    /// Pages that may wait.
    pub(in crate::store) fn pages(&self) -> u64 {
        (self.limit.load(Relaxed) / 6).max(PAGES_MIN) / BLOCK as u64
    }

    /// Bytes of changes that may wait. From the half on they are worth a checkpoint.
    fn changes(&self) -> u64 {
        changes_of(self.limit.load(Relaxed))
    }

    /// Bytes of nodes.
    fn nodes(&self) -> u64 {
        (self.limit.load(Relaxed) / 8).max(NODES_MIN)
    }

    /// Looks, now and then, whether changes have come to their part.
    pub(in crate::store) fn look(&self, changes: u64) {
        if changes > self.changes() / 2 {
            self.crowded.store(true, Relaxed);
        }
        self.moved();
    }

    /// Something was added: the whole memory is looked at, by and by.
    pub(in crate::store) fn moved(&self) {
        if let Some(memory) = self.memory.get() {
            memory.moved();
        }
    }
}

/// Bytes of changes that may wait, of this limit.
fn changes_of(limit: u64) -> u64 {
    (limit / 6).max(CHANGES_MIN)
}

/// As many in this process, before the volume shares any memory.
pub(in crate::store) fn changes_of_process() -> u64 {
    changes_of(Memory::of_process().limit())
}

impl VolumeStore {
    /// Shares this memory with others from now on.
    pub(in crate::store) fn share(&self, memory: &Arc<Memory>) {
        let first = self.inner.budget.memory.set(Arc::clone(memory)).is_ok();
        if !first {
            return;
        }
        let nodes = memory.shrinkers().register(Nodes::new(), &self.inner);
        // It shares a memory once.
        let _ = self.inner.budget.shrinker.set(nodes);
        memory.join(Arc::downgrade(&self.inner) as Weak<dyn Member>);
    }

    /// Waits if there are too many changes, until a checkpoint has taken them, not until it is done: so it takes as many
    /// as there may be, and as many more come meanwhile. If the volume's thread comes to nothing, the checkpoint is made
    /// here.
    pub(in crate::store) fn keep_budget(&self) -> Result<()> {
        if self.has_room_for_changes() {
            return Ok(());
        }
        let inner = &self.inner;
        let _waits = inner.tallies.writer_waits.begin();
        let until = Instant::now() + HELP_MAX;
        loop {
            inner.running()?;
            let seen = inner.progress.steps();
            if self.has_room_for_changes() {
                return Ok(());
            }
            if !inner.progress.wait_behind(seen, until) {
                return inner.checkpoint();
            }
        }
    }

    /// May more changes wait? If half of what may does, a checkpoint is asked for.
    pub(in crate::store) fn has_room_for_changes(&self) -> bool {
        let (inner, budget) = (&self.inner, &self.inner.budget);
        // Relaxed: a hint. The line is written when a checkpoint is due, not by every batch.
        if !budget.crowded.load(Relaxed) {
            return true;
        }
        let changed = inner.freeze_barrier.pass().active.memory();
        if changed > budget.changes() / 2 {
            self.worker.ask_to_fold();
        } else {
            budget.crowded.store(false, Relaxed);
        }
        changed <= budget.changes()
    }
}

impl HasNodes for Inner {
    fn nodes(&self) -> &NodeCache<Blocks> {
        &self.cache
    }
}

impl Member for Inner {
    fn usage(&self) -> Usage {
        let (changes, pages) = {
            let layers = self.freeze_barrier.pass();
            let changes = layers.memtables().map(Memtable::memory);
            (changes.sum::<u64>(), layers.active.dirty())
        };
        let pages = pages + self.blocks().on_their_way();
        let nodes = self.cache.counts();
        Usage::NONE
            .with(Class::Nodes, (nodes.bytes - nodes.once) as u64)
            .with(Class::Dirty, changes + self.journal.memory())
            .with(Class::Waiting, pages * BLOCK as u64)
    }

    fn limit(&self, all: u64, _own: u64) {
        self.budget.limit.store(all, Relaxed);
        let nodes = usize::try_from(self.budget.nodes()).unwrap_or(usize::MAX);
        self.cache.limit(nodes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{FormatOptions, OpenOptions, format};
    use holdfast_core::{AtimePolicy, FileSystem, Options};
    use holdfast_device::{BlockDevice, MemoryDevice};
    use holdfast_sync::PerCore;
    use holdfast_types::{Caller, FileType, OpenFlags};
    use std::sync::{Arc, Barrier};
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
        let memory = Memory::apart(0);
        let fs = FileSystem::within(Arc::clone(&store) as _, Options::default(), memory).unwrap();
        let (who, root) = (Caller::root(), fs.root());
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        let active = || Arc::clone(&store.inner.freeze_barrier.pass().active);
        let file = fs.create(&who, &root, b"large", 0o644, flags).unwrap();
        let most = PAGES_MIN / BLOCK as u64;
        for page in 0..4 * most {
            let at = page * BLOCK as u64;
            fs.write(&who, &file, at, &[1; BLOCK]).unwrap();
            // An estimate: a core tells what it adds now and then.
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

    /// Runs `test` on a thread that has no slot of its own in a `PerCore`: others have them all.
    fn without_a_slot(test: impl FnOnce() + Send) {
        let slots = PerCore::<()>::default();
        let (taken, done) = (Barrier::new(2), Barrier::new(slots.iter().count() + 1));
        thread::scope(|scope| {
            for _ in 0..slots.iter().count() {
                scope.spawn(|| {
                    let _ = slots.mine();
                    taken.wait();
                    done.wait();
                });
                taken.wait();
            }
            let test = scope.spawn(|| {
                assert!(slots.own().is_none());
                test();
            });
            let result = test.join();
            done.wait();
            result.unwrap();
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
        let fs = FileSystem::within(Arc::clone(&store) as _, options, Memory::apart(0)).unwrap();
        let (who, root) = (Caller::root(), fs.root());
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        // More than there is room for at once, were each of them one key alone.
        let count = CHANGES_MIN / 64;
        for number in 0..count {
            let name = format!("{number}");
            let file = fs.create(&who, &root, name.as_bytes(), 0o644, flags);
            fs.write(&who, &file.unwrap(), 0, b"x").unwrap();
        }
        fs.sync().unwrap();
        store.inner.checkpoint().unwrap();
        let begun = store.inner.freeze_barrier.pass().active.growth().keys;
        assert_eq!(begun, 0);
        let mut most = 0;
        for number in (0..count).map(|number| number * 1009 % count) {
            let name = format!("{number}");
            let file = fs.open_at(&who, &root, name.as_bytes(), OpenFlags::empty(), 0);
            assert_eq!(fs.read(&file.unwrap(), 0, &mut [0]), Ok(1));
            most = most.max(store.inner.freeze_barrier.pass().active.memory());
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

    #[test]
    fn changes_are_looked_at_by_what_they_take() {
        let budget = Budget::new();
        budget.limit.store(0, Relaxed);
        budget.look(CHANGES_MIN / 2);
        assert!(!budget.crowded.load(Relaxed));
        budget.look(CHANGES_MIN / 2 + 1);
        assert!(budget.crowded.load(Relaxed));
    }
}
