//! The content of files as a member of the memory budget, and what frees it.

use super::files::Files;
use super::joined::Joined;
use holdfast_core::Memory;
use holdfast_core::budget::{Class, Member, Usage};
use holdfast_core::shrinkers::{Count, Load, Request, Scan, Shrinker};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

impl Files {
    /// Makes this a member of the memory budget. Called once.
    pub(crate) fn join(self: &Arc<Self>, memory: &Arc<Memory>) {
        let shrinkers = memory.shrinkers();
        let registered = (
            shrinkers.register(Maps, self),
            shrinkers.register(CachedBlocks, self),
        );
        let joined = Joined {
            memory: Arc::clone(memory),
            added: AtomicU64::new(0),
            _shrinkers: Box::new(registered),
        };
        // Called once.
        let _ = self.joined.set(joined);
        let member: Weak<Self> = Arc::downgrade(self);
        memory.join(member);
    }
}

impl Member for Files {
    /// Content that the database or the object store has can be freed. What waits cannot.
    fn usage(&self) -> Usage {
        let queued = self.disk.as_ref().map_or(0, |disk| disk.queued());
        let clean = self.table.clean.load(Relaxed) + self.blocks.bytes.load(Relaxed);
        let passing = self.limits.packing.load(Relaxed) + self.blocks.fetching.load(Relaxed);
        Usage::NONE.with(Class::Content, clean).with(
            Class::Dirty,
            self.dirty.bytes.load(Relaxed) + passing + queued,
        )
    }

    fn limit(&self, all: u64, own: u64) {
        self.limits.set(all, own);
        self.blocks.limit.store(self.limits.blocks(), Relaxed);
    }
}

/// The load of a cache that keeps to a limit by itself, unless the limit falls.
fn load(held: u64, limit: u64) -> Load {
    Load {
        held,
        wake: limit,
        stop: limit,
        wait: u64::MAX,
    }
}

fn count(objects: usize) -> Count {
    match objects {
        0 => Count::Empty,
        objects => Count::Objects(objects as u64),
    }
}

fn scanned(gone: usize) -> Scan {
    match gone {
        0 => Scan::Stop,
        gone => Scan::Freed(gone as u64),
    }
}

/// The shrinker of maps and bodies.
#[derive(Debug)]
struct Maps;

impl Shrinker for Maps {
    type Owner = Files;

    fn name(&self) -> &'static str {
        "maps"
    }

    fn needs_store(&self) -> bool {
        false
    }

    fn load(&self, files: &Files) -> Load {
        load(files.table.clean.load(Relaxed), files.limits.files())
    }

    fn count(&self, files: &Files) -> Count {
        count(files.table.len())
    }

    fn scan(&self, files: &Files, request: Request) -> Scan {
        let most = usize::try_from(request.objects).unwrap_or(usize::MAX);
        scanned(files.table.shrink(files.limits.files(), most))
    }
}

/// The shrinker of blocks of objects.
#[derive(Debug)]
struct CachedBlocks;

impl Shrinker for CachedBlocks {
    type Owner = Files;

    fn name(&self) -> &'static str {
        "blocks"
    }

    fn needs_store(&self) -> bool {
        false
    }

    fn load(&self, files: &Files) -> Load {
        load(files.blocks.bytes.load(Relaxed), files.limits.blocks())
    }

    fn count(&self, files: &Files) -> Count {
        count(files.blocks.len())
    }

    fn scan(&self, files: &Files, request: Request) -> Scan {
        let most = usize::try_from(request.objects).unwrap_or(usize::MAX);
        scanned(files.blocks.shrink(files.limits.blocks(), most))
    }
}
