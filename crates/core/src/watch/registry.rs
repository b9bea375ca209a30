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
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

const SHARDS: usize = 64;
/// Events that a watch holds for its receiver, as inotify's `max_queued_events`.
const CAPACITY: usize = 16384;

/// All watches of a file system.
pub(crate) struct WatchRegistry {
    shared: Arc<Shared>,
    /// The cookie dealt next: each slot goes through its own residue class, so no two slots deal
    /// the same and no two threads write one line.
    cookies: PerCore<AtomicU32>,
    cookie_step: u32,
}

/// What the watches need of the registry: they may outlive it.
struct Shared {
    /// Watches in all. Changes with a shard's lock held. Apart from what notifying writes.
    count: Padded<AtomicUsize>,
    /// For each shard, one bit for each bucket of inode numbers that has a watch. Bits change
    /// with the shard's lock held.
    filters: Padded<[AtomicU64; SHARDS]>,
    shards: Box<[Padded<RwLock<Shard>>]>,
}

struct Shard {
    /// No entry is empty.
    targets: HashMap<Ino, Vec<Arc<Target>>, foldhash::fast::RandomState>,
    /// Watched inodes in each bucket.
    buckets: [u32; 64],
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

impl Shared {
    /// False only if nobody watches; true, on a chance of at most the share of buckets in use,
    /// also if nobody does.
    ///
    /// Relaxed here and where these are written: a reporter that must see a watch is ordered
    /// after [`WatchRegistry::add`] by whatever made it so, and no other may rely on it.
    fn may_be_watched(&self, place: Place) -> bool {
        self.count.load(Ordering::Relaxed) != 0
            && self.filters[place.shard].load(Ordering::Relaxed) >> place.bucket & 1 != 0
    }

    fn add(&self, ino: Ino, target: Arc<Target>) {
        let place = Place::of(ino);
        let mut shard = self.shards[place.shard].write();
        let targets = shard.targets.entry(ino).or_default();
        targets.push(target);
        if targets.len() == 1 {
            shard.buckets[place.bucket as usize] += 1;
            self.filters[place.shard].fetch_or(1 << place.bucket, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Forgets one target, if it has not been forgotten before.
    fn remove(&self, ino: Ino, target: &Arc<Target>) {
        let place = Place::of(ino);
        let mut shard = self.shards[place.shard].write();
        let Some(targets) = shard.targets.get_mut(&ino) else {
            return;
        };
        let before = targets.len();
        targets.retain(|other| !Arc::ptr_eq(other, target));
        let removed = before - targets.len();
        if targets.is_empty() {
            self.remove_inode(&mut shard, ino);
        }
        self.count.fetch_sub(removed, Ordering::Relaxed);
    }

    /// Takes an inode with its targets out of its shard; the count is the caller's.
    fn remove_inode(&self, shard: &mut Shard, ino: Ino) -> Vec<Arc<Target>> {
        let Some(targets) = shard.targets.remove(&ino) else {
            return Vec::new();
        };
        let place = Place::of(ino);
        let left = &mut shard.buckets[place.bucket as usize];
        *left -= 1;
        if *left == 0 {
            self.filters[place.shard].fetch_and(!(1 << place.bucket), Ordering::Relaxed);
        }
        targets
    }
}

impl WatchRegistry {
    pub(crate) fn new() -> Self {
        let shard = || {
            let targets = HashMap::default();
            Padded(RwLock::new(Shard {
                targets,
                buckets: [0; 64],
            }))
        };
        let next = Cell::new(0);
        let cookies = PerCore::new(|| AtomicU32::new(next.replace(next.get() + 1)));
        Self {
            shared: Arc::new(Shared {
                count: Padded::default(),
                filters: Padded([const { AtomicU64::new(0) }; SHARDS]),
                shards: (0..SHARDS).map(|_| shard()).collect(),
            }),
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
        self.shared.add(ino, Arc::clone(&target));
        Watch {
            shared: Arc::clone(&self.shared),
            ino,
            target,
        }
    }

    /// Does anybody watch this inode? Cheap, and writes nothing shared, unless somebody watches
    /// it or one of the few that share its bucket.
    pub(crate) fn is_watched(&self, ino: Ino) -> bool {
        let place = Place::of(ino);
        self.shared.may_be_watched(place)
            && self.shared.shards[place.shard]
                .read()
                .targets
                .contains_key(&ino)
    }

    /// Tells the watches of `ino` that asked for it; each is told of the kinds it asked for.
    ///
    /// `name` is the name in the directory `ino` that this is about, if it is about a name.
    pub(crate) fn notify(&self, ino: Ino, mask: EventMask, name: Option<&[u8]>, cookie: u32) {
        let place = Place::of(ino);
        if !self.shared.may_be_watched(place) {
            return;
        }
        let shard = self.shared.shards[place.shard].read();
        for target in shard.targets.get(&ino).into_iter().flatten() {
            let kinds = mask & target.mask;
            if !kinds.is_empty() {
                let kinds = kinds | mask & EventMask::ISDIR;
                target.queue.push(ino, kinds, name, cookie);
            }
        }
    }

    /// The inode is gone (and `DELETE_SELF` reported): ends its watches with `IGNORED`.
    pub(crate) fn gone(&self, ino: Ino) {
        let place = Place::of(ino);
        if !self.shared.may_be_watched(place) {
            return;
        }
        let targets = {
            let mut shard = self.shared.shards[place.shard].write();
            let targets = self.shared.remove_inode(&mut shard, ino);
            self.shared
                .count
                .fetch_sub(targets.len(), Ordering::Relaxed);
            targets
        };
        for target in targets {
            target.queue.push(ino, EventMask::IGNORED, None, 0);
        }
    }

    /// Ends every watch with `UNMOUNT` and `IGNORED`.
    pub(crate) fn release_all(&self) {
        for shard in &self.shared.shards {
            let mut ended = Vec::new();
            {
                let mut shard = shard.write();
                let inos: Vec<Ino> = shard.targets.keys().copied().collect();
                for ino in inos {
                    let targets = self.shared.remove_inode(&mut shard, ino);
                    self.shared
                        .count
                        .fetch_sub(targets.len(), Ordering::Relaxed);
                    ended.extend(targets.into_iter().map(|target| (ino, target)));
                }
            }
            for (ino, target) in ended {
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

    /// Watches in all. Reads one line that only adding and removing watches writes.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.shared.count.load(Ordering::Relaxed)
    }
}

/// A watch on one inode. Dropping it ends it.
///
/// Several threads may receive from one watch; each event goes to one of them.
pub struct Watch {
    shared: Arc<Shared>,
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
        self.shared.remove(self.ino, &self.target);
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
