//! Names: their inodes, and their hashes.
//!
//! Entries and hashes are read once each, in their own orders. A sum over the hashes of both, for
//! each of some thousand sets of directories, shows the sets in which they differ. Only for those
//! the two trees are read again, and compared key by key.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_types::{FileType, Ino};

use super::context::{Context, Records};
use super::finding::{Branch, Finding};
use super::inodes::{AT_PARENT, Census};
use super::walk::walk;
use crate::checksum::mix;
use crate::store::NameHasher;
use crate::tree::{Entries, Entry, EntryKey, HashKey, Hashes};

/// Sets of directories.
const SETS: usize = 4096;
/// The most keys of differing sets that are compared: 24 bytes each, in two sets.
const KEYS_MAX: usize = 4 << 20;

fn set_of(dir: Ino) -> usize {
    (mix(dir.0) % SETS as u64) as usize
}

/// The sum of entries minus the sum of hashes, for each set.
struct Sums(Vec<AtomicU64>);

impl Sums {
    fn new() -> Self {
        Self((0..SETS).map(|_| AtomicU64::new(0)).collect())
    }

    fn print(key: &HashKey) -> u64 {
        mix(mix(mix(key.dir.0) ^ u64::from(key.hash)) ^ key.cookie)
    }

    // Relaxed: sums are read after the threads that added to them were joined.
    fn add(&self, key: &HashKey) {
        self.0[set_of(key.dir)].fetch_add(Self::print(key), Ordering::Relaxed);
    }

    fn take(&self, key: &HashKey) {
        self.0[set_of(key.dir)].fetch_sub(Self::print(key), Ordering::Relaxed);
    }

    fn differs(&self, set: usize) -> bool {
        self.0[set].load(Ordering::Relaxed) != 0
    }
}

/// Checks both trees.
pub(super) fn check(context: &Context<'_>, census: &Census) {
    let hasher = NameHasher::new(context.superblock.hash_seed);
    let sums = Sums::new();
    context.check::<Entries, _>(Branch::Entries, || Named {
        context,
        census,
        hasher,
        sums: &sums,
    });
    let parts = context.check::<Hashes, _>(Branch::Hashes, || Hashed {
        context,
        sums: &sums,
        first: None,
        last: None,
        alike: Vec::new(),
    });
    let mut alike = Vec::new();
    let mut last: Option<HashKey> = None;
    for part in parts {
        if let (Some(last), Some(first)) = (last, part.first)
            && (last.dir, last.hash) == (first.dir, first.hash)
        {
            alike.push((last, first));
        }
        last = part.last.or(last);
        alike.extend(part.alike);
    }
    same_names(context, &alike);
    if (0..SETS).any(|set| sums.differs(set)) {
        compare(context, hasher, &sums);
    }
}

struct Named<'c> {
    context: &'c Context<'c>,
    census: &'c Census,
    hasher: NameHasher,
    sums: &'c Sums,
}

impl Records<Entries> for Named<'_> {
    fn record(&mut self, key: EntryKey, entry: Entry<'_>) {
        self.context.meter.step();
        let EntryKey { dir, cookie } = key;
        let name = || Box::<[u8]>::from(entry.name);
        let sink = self.context.sink;
        self.sums.add(&HashKey {
            dir,
            hash: self.hasher.hash(entry.name),
            cookie,
        });
        if !is_name(entry.name) || cookie == 0 {
            let name = name();
            sink.put(Finding::EntryName { dir, cookie, name });
        }
        let parent = self.census.get(dir);
        let parent = parent.filter(|parent| parent.kind == FileType::Directory);
        if parent.is_none() {
            let name = name();
            sink.put(Finding::EntryDirectory { dir, cookie, name });
        }
        let ino = entry.ino;
        let Some(known) = self.census.get(ino) else {
            let name = name();
            sink.put(Finding::EntryNowhere {
                dir,
                cookie,
                name,
                ino,
            });
            return;
        };
        known.name();
        if known.kind != entry.kind {
            let name = name();
            sink.put(Finding::EntryKind {
                dir,
                cookie,
                name,
                ino,
            });
        }
        if known.parent == dir {
            known.mark(AT_PARENT);
        }
        if known.kind == FileType::Directory
            && let Some(parent) = parent
        {
            parent.directory();
        }
    }
}

/// Is this a valid name?
pub(crate) fn is_name(bytes: &[u8]) -> bool {
    !matches!(bytes, b"" | b"." | b"..") && !bytes.iter().any(|byte| matches!(byte, 0 | b'/'))
}

struct Hashed<'c> {
    context: &'c Context<'c>,
    sums: &'c Sums,
    first: Option<HashKey>,
    last: Option<HashKey>,
    /// Pairs of neighbouring keys of one directory with equal hashes.
    alike: Vec<(HashKey, HashKey)>,
}

impl Records<Hashes> for Hashed<'_> {
    fn record(&mut self, key: HashKey, (): ()) {
        self.context.meter.step();
        self.sums.take(&key);
        if let Some(last) = self.last
            && (last.dir, last.hash) == (key.dir, key.hash)
            && self.alike.len() < KEYS_MAX
        {
            self.alike.push((last, key));
        }
        self.first.get_or_insert(key);
        self.last = Some(key);
    }
}

/// Reports names with equal hashes that are equal.
fn same_names(context: &Context<'_>, alike: &[(HashKey, HashKey)]) {
    let entries = context.tree::<Entries>(Branch::Entries);
    let name = |key: &HashKey| {
        let place = EntryKey {
            dir: key.dir,
            cookie: key.cookie,
        };
        let found = entries.get(&place, |entry| Box::<[u8]>::from(entry.name));
        found.ok().flatten()
    };
    // A row of equal hashes consists of pairs of neighbours.
    let mut seen: Vec<Box<[u8]>> = Vec::new();
    let mut before: Option<HashKey> = None;
    for (one, other) in alike {
        if before != Some(*one) {
            seen.clear();
            seen.extend(name(one));
        }
        before = Some(*other);
        let Some(name) = name(other) else {
            continue;
        };
        if seen.contains(&name) {
            context.sink.put(Finding::SameName {
                dir: other.dir,
                cookie: other.cookie,
                name,
            });
        } else {
            seen.push(name);
        }
    }
}

/// Reports names without hashes and hashes without names.
fn compare(context: &Context<'_>, hasher: NameHasher, sums: &Sums) {
    let generation = context.superblock.generation;
    let (mut named, mut hashed) = (BTreeSet::new(), BTreeSet::new());
    let keep = |keys: &mut BTreeSet<HashKey>, key: HashKey| {
        if sums.differs(set_of(key.dir)) && keys.len() < KEYS_MAX {
            keys.insert(key);
        }
    };
    // In order of keys: if keys are cut off, then at the same end of both trees.
    let entries = context.tree::<Entries>(Branch::Entries);
    walk(&entries, generation, |key, entry: Entry<'_>| {
        let (dir, cookie) = (key.dir, key.cookie);
        let hash = hasher.hash(entry.name);
        keep(&mut named, HashKey { dir, hash, cookie });
    });
    let hashes = context.tree::<Hashes>(Branch::Hashes);
    walk(&hashes, generation, |key, ()| keep(&mut hashed, key));
    for HashKey { dir, hash, cookie } in named.difference(&hashed).copied() {
        context.sink.put(Finding::NoHash { dir, cookie, hash });
    }
    for HashKey { dir, hash, cookie } in hashed.difference(&named).copied() {
        context.sink.put(Finding::NoEntry { dir, cookie, hash });
    }
}
