//! The registry of watches.

use super::event::{Event, EventMask};
use super::queue::EventQueue;
use hashbrown::HashMap;
use holdfast_sync::Padded;
use holdfast_types::Ino;
use parking_lot::RwLock;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

const SHARDS: usize = 64;
/// The most events in the queue of a watch, like inotify's `max_queued_events`.
const CAPACITY: usize = 16384;

/// All watches of a file system.
pub(crate) struct WatchRegistry {
    /// Was there ever a watch? Written once, so checks read a cache line that does not change.
    used: Padded<AtomicBool>,
    // Reference-counted each: a watch may outlive the registry, and its shard counts it.
    shards: Box<[Arc<Shard>]>,
    /// The next cookie.
    cookie: AtomicU32,
}

/// The watches of some inodes, on cache lines of its own.
#[derive(Default)]
struct Shard(Padded<Guarded>);

#[derive(Default)]
struct Guarded {
    /// Watches. Changes with the lock held.
    count: AtomicUsize,
    targets: RwLock<Targets>,
}

/// No entry is empty.
type Targets = HashMap<Ino, Vec<Arc<Target>>, foldhash::fast::RandomState>;

/// One watch, as reporters use it.
#[derive(Debug)]
struct Target {
    mask: EventMask,
    queue: EventQueue,
}

impl Guarded {
    /// False if no inode of the shard is watched.
    ///
    /// Relaxed here and where it is written: a reporter that must see a watch is ordered
    /// after [`WatchRegistry::add`] by other synchronization, and no other may rely on it.
    fn may_be_watched(&self) -> bool {
        self.count.load(Ordering::Relaxed) != 0
    }

    fn add(&self, ino: Ino, target: Arc<Target>) {
        let mut targets = self.targets.write();
        targets.entry(ino).or_default().push(target);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes one target, if it is still there.
    fn remove(&self, ino: Ino, target: &Arc<Target>) {
        let mut targets = self.targets.write();
        let Some(list) = targets.get_mut(&ino) else {
            return;
        };
        let before = list.len();
        list.retain(|other| !Arc::ptr_eq(other, target));
        let removed = before - list.len();
        if list.is_empty() {
            targets.remove(&ino);
        }
        self.count.fetch_sub(removed, Ordering::Relaxed);
    }

    /// Ends the watches of the inodes that `take` removes, with `IGNORED` as the last event.
    fn end(&self, events: EventMask, take: impl FnOnce(&mut Targets) -> Targets) {
        let ended = {
            let mut targets = self.targets.write();
            let ended = take(&mut targets);
            let count = ended.values().map(Vec::len).sum();
            self.count.fetch_sub(count, Ordering::Relaxed);
            ended
        };
        for (ino, targets) in &ended {
            for target in targets {
                for event in events.iter() {
                    target.queue.push(*ino, event, None, 0);
                }
            }
        }
    }
}

/// The shard of an inode.
fn shard_of(ino: Ino) -> usize {
    // Fibonacci hashing: numbers come in runs, which this scatters evenly.
    (ino.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - SHARDS.ilog2())) as usize
}

impl WatchRegistry {
    pub(crate) fn new() -> Self {
        Self {
            used: Padded::default(),
            shards: (0..SHARDS).map(|_| Arc::default()).collect(),
            cookie: AtomicU32::new(0),
        }
    }

    /// Watches an inode for these kinds of events until the result is dropped.
    pub(crate) fn add(&self, ino: Ino, mask: EventMask) -> Watch {
        self.add_with_capacity(ino, mask, CAPACITY)
    }

    /// Like [`WatchRegistry::add`], with room for this many events.
    pub(super) fn add_with_capacity(&self, ino: Ino, mask: EventMask, capacity: usize) -> Watch {
        let mask = mask & EventMask::ALL_EVENTS;
        let target = Arc::new(Target {
            mask,
            queue: EventQueue::new(capacity),
        });
        if !self.is_used() {
            self.used.store(true, Ordering::Relaxed);
        }
        let shard = &self.shards[shard_of(ino)];
        shard.0.add(ino, Arc::clone(&target));
        Watch {
            shard: Arc::clone(shard),
            ino,
            target,
        }
    }

    /// Was there ever a watch? Reads a cache line that is written once.
    #[inline]
    pub(crate) fn is_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// The shard of an inode that may be watched.
    fn shard_of(&self, ino: Ino) -> Option<&Guarded> {
        if !self.is_used() {
            return None;
        }
        let shard: &Guarded = &self.shards[shard_of(ino)].0;
        shard.may_be_watched().then_some(shard)
    }

    /// Is this inode watched? Takes a lock only if an inode of its shard is.
    pub(crate) fn is_watched(&self, ino: Ino) -> bool {
        self.shard_of(ino)
            .is_some_and(|shard| shard.targets.read().contains_key(&ino))
    }

    /// Reports an event to the watches of `ino` with a mask that contains it.
    ///
    /// `name`: the name in the directory `ino`, if the event is about a name.
    pub(crate) fn notify(&self, ino: Ino, mask: EventMask, name: Option<&[u8]>, cookie: u32) {
        let Some(shard) = self.shard_of(ino) else {
            return;
        };
        let targets = shard.targets.read();
        for target in targets.get(&ino).into_iter().flatten() {
            let kinds = mask & target.mask;
            if !kinds.is_empty() {
                let kinds = kinds | mask & EventMask::ISDIR;
                target.queue.push(ino, kinds, name, cookie);
            }
        }
    }

    /// The inode was freed (and `DELETE_SELF` reported): ends its watches with `IGNORED`.
    pub(crate) fn gone(&self, ino: Ino) {
        if let Some(shard) = self.shard_of(ino) {
            shard.end(EventMask::IGNORED, |targets| {
                targets.remove_entry(&ino).into_iter().collect()
            });
        }
    }

    /// Ends every watch with `UNMOUNT` and `IGNORED`.
    pub(crate) fn release_all(&self) {
        for shard in &self.shards {
            shard
                .0
                .end(EventMask::UNMOUNT | EventMask::IGNORED, std::mem::take);
        }
    }

    /// A number for the two events of one rename: not 0, and not reused for a long time.
    pub(crate) fn next_cookie(&self) -> u32 {
        // Relaxed: only uniqueness matters.
        loop {
            match self.cookie.fetch_add(1, Ordering::Relaxed) {
                0 => {}
                cookie => return cookie,
            }
        }
    }

    /// The number of watches. A sum over shards: exact only without concurrent changes.
    pub(crate) fn count(&self) -> usize {
        let count = |shard: &Arc<Shard>| shard.0.count.load(Ordering::Relaxed);
        self.shards.iter().map(count).sum()
    }
}

/// A watch on one inode. Dropping it ends it.
///
/// Several threads may receive from one watch; each event goes to one of them.
pub struct Watch {
    shard: Arc<Shard>,
    ino: Ino,
    target: Arc<Target>,
}

impl Watch {
    /// The inode watched.
    #[must_use]
    pub fn ino(&self) -> Ino {
        self.ino
    }

    /// The next event, if there is one.
    pub fn try_next(&self) -> Option<Event> {
        self.target.queue.try_pop()
    }

    /// The next event; waits at most `timeout`.
    pub fn next_timeout(&self, timeout: Duration) -> Option<Event> {
        self.target.queue.pop_timeout(timeout)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shard.0.remove(self.ino, &self.target);
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("ino", &self.ino)
            .field("mask", &self.target.mask)
            .finish_non_exhaustive()
    }
}
