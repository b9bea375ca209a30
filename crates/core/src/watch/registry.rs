//! Who watches what.

use super::event::{Event, EventMask};
use super::queue::EventQueue;
use hashbrown::HashMap;
use holdfast_sync::{Padded, PerCore};
use holdfast_types::Ino;
use parking_lot::RwLock;
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

const SHARDS: usize = 64;
/// Events that a watch holds for its receiver, as inotify's `max_queued_events`.
const CAPACITY: usize = 16384;

/// All watches of a file system.
pub(crate) struct WatchRegistry {
    /// Was there ever a watch? Written once, so that those who only ask read a line that rests.
    used: Padded<AtomicBool>,
    // Each by itself: a watch may outlive the registry, and what counts that is the shard's.
    shards: Box<[Arc<Shard>]>,
    /// The cookie dealt next: each slot goes through its own residue class, so no two slots deal
    /// the same and no two threads write one line.
    cookies: PerCore<AtomicU32>,
    cookie_step: u32,
}

/// The watches of some inodes, on lines of its own.
#[derive(Default)]
struct Shard(Padded<Guarded>);

#[derive(Default)]
struct Guarded {
    /// One bit for each bucket of inode numbers that has a watch. Changes with the lock held.
    filter: AtomicU64,
    /// Watches. Changes with the lock held.
    count: AtomicUsize,
    lists: RwLock<Lists>,
}

struct Lists {
    /// No entry is empty.
    targets: HashMap<Ino, Vec<Arc<Target>>, foldhash::fast::RandomState>,
    /// Watched inodes in each bucket.
    buckets: [u32; 64],
}

impl Default for Lists {
    fn default() -> Self {
        Self {
            targets: HashMap::default(),
            buckets: [0; 64],
        }
    }
}

/// One watch as reporters see it.
#[derive(Debug)]
struct Target {
    mask: EventMask,
    queue: EventQueue,
}

/// Shard, and bucket within it, of an inode number.
#[derive(Clone, Copy)]
struct Place {
    shard: usize,
    bucket: u32,
}

impl Place {
    fn of(ino: Ino) -> Self {
        // Fibonacci hashing: numbers come in runs, which this scatters evenly.
        let hash = ino.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 52;
        Self {
            shard: (hash >> 6) as usize,
            bucket: (hash & 63) as u32,
        }
    }
}

impl Guarded {
    /// False only if nobody watches; true, on a chance of at most the share of buckets in use,
    /// also if nobody does.
    ///
    /// Relaxed here and where it is written: a reporter that must see a watch is ordered
    /// after [`WatchRegistry::add`] by whatever made it so, and no other may rely on it.
    fn may_be_watched(&self, place: Place) -> bool {
        self.filter.load(Ordering::Relaxed) >> place.bucket & 1 != 0
    }

    fn add(&self, ino: Ino, target: Arc<Target>) {
        let place = Place::of(ino);
        let mut lists = self.lists.write();
        let targets = lists.targets.entry(ino).or_default();
        targets.push(target);
        if targets.len() == 1 {
            lists.buckets[place.bucket as usize] += 1;
            self.filter.fetch_or(1 << place.bucket, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Forgets one target, if it has not been forgotten before.
    fn remove(&self, ino: Ino, target: &Arc<Target>) {
        let mut lists = self.lists.write();
        let Some(targets) = lists.targets.get_mut(&ino) else {
            return;
        };
        let before = targets.len();
        targets.retain(|other| !Arc::ptr_eq(other, target));
        let removed = before - targets.len();
        if targets.is_empty() {
            self.take(&mut lists, ino);
        }
        self.count.fetch_sub(removed, Ordering::Relaxed);
    }

    /// Takes an inode with its targets out; the count is the caller's.
    fn take(&self, lists: &mut Lists, ino: Ino) -> Vec<Arc<Target>> {
        let Some(targets) = lists.targets.remove(&ino) else {
            return Vec::new();
        };
        let place = Place::of(ino);
        let left = &mut lists.buckets[place.bucket as usize];
        *left -= 1;
        if *left == 0 {
            self.filter
                .fetch_and(!(1 << place.bucket), Ordering::Relaxed);
        }
        targets
    }

    /// Takes these inodes out, with their targets.
    fn end(&self, which: impl FnOnce(&Lists) -> Vec<Ino>) -> Vec<(Ino, Arc<Target>)> {
        let mut lists = self.lists.write();
        let mut ended = Vec::new();
        for ino in which(&lists) {
            let targets = self.take(&mut lists, ino);
            self.count.fetch_sub(targets.len(), Ordering::Relaxed);
            ended.extend(targets.into_iter().map(|target| (ino, target)));
        }
        ended
    }
}

impl WatchRegistry {
    pub(crate) fn new() -> Self {
        let next = Cell::new(0);
        let cookies = PerCore::new(|| AtomicU32::new(next.replace(next.get() + 1)));
        Self {
            used: Padded::default(),
            shards: (0..SHARDS).map(|_| Arc::default()).collect(),
            cookies,
            cookie_step: next.get(),
        }
    }

    /// Watches an inode for these kinds of events until the result is dropped.
    pub(crate) fn add(&self, ino: Ino, mask: EventMask) -> Watch {
        self.add_with_capacity(ino, mask, CAPACITY)
    }

    /// As [`WatchRegistry::add`], with room for this many events.
    pub(super) fn add_with_capacity(&self, ino: Ino, mask: EventMask, capacity: usize) -> Watch {
        let mask = mask & EventMask::ALL_EVENTS;
        let target = Arc::new(Target {
            mask,
            queue: EventQueue::new(capacity),
        });
        if !self.is_used() {
            self.used.store(true, Ordering::Relaxed);
        }
        let shard = &self.shards[Place::of(ino).shard];
        shard.0.add(ino, Arc::clone(&target));
        Watch {
            shard: Arc::clone(shard),
            ino,
            target,
        }
    }

    /// Was there ever a watch? Reads a line that is written once.
    #[inline]
    pub(crate) fn is_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// The shard of an inode that somebody may watch.
    fn shard_of(&self, ino: Ino) -> Option<&Guarded> {
        if !self.is_used() {
            return None;
        }
        let place = Place::of(ino);
        let shard: &Guarded = &self.shards[place.shard].0;
        shard.may_be_watched(place).then_some(shard)
    }

    /// Does anybody watch this inode? Cheap, and writes nothing shared, unless somebody watches
    /// it or one of the few that share its bucket.
    pub(crate) fn is_watched(&self, ino: Ino) -> bool {
        self.shard_of(ino)
            .is_some_and(|shard| shard.lists.read().targets.contains_key(&ino))
    }

    /// Tells the watches of `ino` that asked for it; each is told of the kinds it asked for.
    ///
    /// `name` is the name in the directory `ino` that this is about, if it is about a name.
    pub(crate) fn notify(&self, ino: Ino, mask: EventMask, name: Option<&[u8]>, cookie: u32) {
        let Some(shard) = self.shard_of(ino) else {
            return;
        };
        let lists = shard.lists.read();
        for target in lists.targets.get(&ino).into_iter().flatten() {
            let kinds = mask & target.mask;
            if !kinds.is_empty() {
                let kinds = kinds | mask & EventMask::ISDIR;
                target.queue.push(ino, kinds, name, cookie);
            }
        }
    }

    /// The inode is gone (and `DELETE_SELF` reported): ends its watches with `IGNORED`.
    pub(crate) fn gone(&self, ino: Ino) {
        let Some(shard) = self.shard_of(ino) else {
            return;
        };
        for (ino, target) in shard.end(|_| vec![ino]) {
            target.queue.push(ino, EventMask::IGNORED, None, 0);
        }
    }

    /// Ends every watch with `UNMOUNT` and `IGNORED`.
    pub(crate) fn release_all(&self) {
        for shard in &self.shards {
            for (ino, target) in shard.0.end(|lists| lists.targets.keys().copied().collect()) {
                target.queue.push(ino, EventMask::UNMOUNT, None, 0);
                target.queue.push(ino, EventMask::IGNORED, None, 0);
            }
        }
    }

    /// A number for the two events of one rename: not 0, and not dealt again for a long time.
    pub(crate) fn next_cookie(&self) -> u32 {
        let slot = self.cookies.mine();
        // Relaxed: only that it is dealt once matters.
        loop {
            match slot.fetch_add(self.cookie_step, Ordering::Relaxed) {
                0 => {}
                cookie => return cookie,
            }
        }
    }

    /// Watches in all. A sum over shards: exact only while none comes or goes.
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

    /// The next event, if one has come.
    pub fn try_next(&self) -> Option<Event> {
        self.target.queue.try_pop()
    }

    /// The next event; waits for one no longer than `timeout`.
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
