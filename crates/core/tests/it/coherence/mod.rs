//! Over a store that others change, no answer is older than the store's coherence allows (D9). The
//! test moves the clock.

mod kernels;
mod lost;
mod order;
mod trips;
mod under_way;
mod windows;

use holdfast_core::store::{Coherence, Shared as _};
use holdfast_core::types::{Attr, Caller, Errno, FileType, Ino, OpenFlags, RenameFlags, Result};
use holdfast_core::{DirEntry, FileSystem, Node, Observer, Options};
use holdfast_testkit::rng::Rng;
use holdfast_testkit::store::{SharedState, SharedStore};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const VALID: u64 = 1000;
const FOR_A_SECOND: Coherence = Coherence::For(Duration::from_millis(VALID));
/// With change events an answer is valid for a very long time.
const NOTIFIED: Coherence = Coherence::Notified {
    valid: Duration::from_millis(VALID),
    notified: Duration::from_secs(3600),
};
/// Nothing holds but what the store proves to hear of.
const LEASED: Coherence = Coherence::Notified {
    valid: Duration::ZERO,
    notified: Duration::MAX,
};
const NAMES: [&[u8]; 4] = [b"a", b"b", b"c", b"d"];
/// Sibling directories.
const WALKED: [&[u8]; 8] = [b"0", b"1", b"2", b"3", b"4", b"5", b"6", b"7"];

/// A store, a file system over it, and all earlier states of the store with their beginnings.
struct Pair {
    store: Arc<SharedStore>,
    fs: FileSystem,
    dirs: Vec<Ino>,
    now: u64,
    past: Vec<(u64, SharedState)>,
    /// The greatest age of an answer. `None`: nothing older than the last change is allowed.
    oldest: Option<u64>,
}

impl Pair {
    fn new(coherence: Coherence) -> Self {
        Self::with(coherence, Options::default())
    }

    fn with(coherence: Coherence, options: Options) -> Self {
        let store = Arc::new(SharedStore::new(coherence));
        let below = store.make_dir(Ino::ROOT, b"below");
        let walked = WALKED.map(|name| store.make_dir(below, name));
        let fs = FileSystem::new(store.clone(), options).unwrap();
        let past = vec![(0, store.state())];
        Self {
            store,
            fs,
            dirs: [Ino::ROOT, below].into_iter().chain(walked).collect(),
            now: 0,
            past,
            oldest: Some(VALID),
        }
    }

    fn pass(&mut self, millis: u64) {
        self.store.pass(millis);
        self.now += millis;
    }

    /// The states of the store that may still be shown.
    fn lately(&self) -> impl Iterator<Item = &SharedState> {
        let oldest = match self.oldest {
            Some(valid) => self.now.saturating_sub(valid),
            None => self.now + 1,
        };
        let evictions = self.past.iter().skip(1).map(|(begin, _)| *begin);
        let evictions = evictions.chain(std::iter::once(u64::MAX));
        let spans = self.past.iter().zip(evictions);
        spans
            .filter(move |(_, end)| *end >= oldest)
            .map(|((_, state), _)| state)
    }

    fn change(&mut self, rng: &mut Rng) {
        let pick = |rng: &mut Rng| {
            let dir = self.dirs[rng.below(self.dirs.len() as u64) as usize];
            (dir, NAMES[rng.below(NAMES.len() as u64) as usize])
        };
        let (dir, name) = pick(rng);
        let len = rng.below(6000) as usize;
        let content = vec![1 + rng.below(255) as u8; len];
        match rng.below(8) {
            0 => self.store.remove(dir, name),
            1 => self.store.rename((dir, name), pick(rng)),
            2 | 3 => drop(self.store.write(dir, name, &content)),
            4 => self.remove_here(dir, name),
            5 => self.rename_here((dir, name), pick(rng)),
            _ => self.write_here(dir, name, &content),
        }
        self.past.push((self.now, self.store.state()));
    }

    /// Removes a name by the file system, which may believe it absent or another file's.
    fn remove_here(&self, dir: Ino, name: &[u8]) {
        let before = self.store.state();
        let node = self.dir(dir);
        let removed = self.fs.unlink(&Caller::root(), &node, name);
        let is_there = before.child(dir, name).is_some();
        match removed {
            Ok(()) => {
                assert!(is_there && self.store.state().child(dir, name).is_none());
                assert_eq!(self.lookup(&node, name), Err(Errno::ENOENT));
                assert!(!self.list(&node).contains(&name.into()));
            }
            Err(error) => assert!(refuses_by_age(error, is_there), "{error:?}"),
        }
    }

    fn rename_here(&self, from: (Ino, &[u8]), to: (Ino, &[u8])) {
        let before = self.store.state();
        let (from_node, to_node) = (self.dir(from.0), self.dir(to.0));
        let who = Caller::root();
        let none = RenameFlags::empty();
        let renamed = self
            .fs
            .rename(&who, &from_node, from.1, &to_node, to.1, none);
        let source = before.child(from.0, from.1);
        match renamed {
            Ok(()) => {
                // Names that it believed to be links of one file stay as they are.
                let state = self.store.state();
                let moved = state.child(to.0, to.1) == source;
                assert!(moved || state.child(from.0, from.1) == source);
                if moved && from != to {
                    assert_eq!(
                        self.lookup(&to_node, to.1).map(|it| it.ino()),
                        Ok(source.unwrap())
                    );
                    assert_eq!(self.lookup(&from_node, from.1), Err(Errno::ENOENT));
                    assert!(!self.list(&from_node).contains(&from.1.into()));
                }
            }
            Err(error) => assert!(refuses_by_age(error, source.is_some()), "{error:?}"),
        }
    }

    /// Rewrites or creates a file by the file system.
    fn write_here(&self, dir: Ino, name: &[u8], content: &[u8]) {
        let who = Caller::root();
        let node = self.dir(dir);
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE | OpenFlags::TRUNCATE;
        let file = match self.fs.create(&who, &node, name, 0o644, flags) {
            Ok(file) => file,
            // It was believed to exist, and was removed by others.
            Err(error) => return assert_eq!(error, Errno::ESTALE),
        };
        let written = self.fs.write(&who, &file, 0, content);
        assert_eq!(written, Ok(content.len()));
        let ino = file.node().ino();
        assert_eq!(self.store.state().content(ino).as_deref(), Some(content));
        let mut read = vec![0; content.len() + 10];
        let len = self.fs.read(&file, 0, &mut read).unwrap();
        assert!(
            read[..len] == *content,
            "{len} bytes, not {}",
            content.len()
        );
        assert_eq!(self.fs.attributes(file.node()).unwrap().size, len as u64);
    }

    /// A directory, found by its path.
    fn dir(&self, ino: Ino) -> Node {
        let root = self.fs.root();
        if ino == Ino::ROOT {
            return root;
        }
        let below = self.lookup(&root, b"below").unwrap();
        match self.dirs.iter().skip(2).position(|dir| *dir == ino) {
            Some(at) => self.lookup(&below, WALKED[at]).unwrap(),
            None => below,
        }
    }

    fn lookup(&self, dir: &Node, name: &[u8]) -> Result<Node> {
        self.fs.lookup(&Caller::root(), dir, name)
    }

    fn look(&self, rng: &mut Rng) {
        let dir = self.dirs[rng.below(self.dirs.len() as u64) as usize];
        let node = self.dir(dir);
        match rng.below(8) {
            0 => self.check_names(dir),
            1 => self.check_attributes(dir),
            2 => self.dirs.iter().for_each(|dir| self.check_names(*dir)),
            3 => (self.dirs.iter().rev()).for_each(|dir| self.check_attributes(*dir)),
            _ => {
                let name = NAMES[rng.below(NAMES.len() as u64) as usize];
                let found = match self.lookup(&node, name) {
                    Err(Errno::ENOENT) => None,
                    found => Some(found.unwrap()),
                };
                let ino = found.as_ref().map(Node::ino);
                let known = |state: &SharedState| state.child(dir, name) == ino;
                assert!(self.lately().any(known), "{name:?} is {ino:?}");
                let Some(found) = found else { return };
                let content = match rng.below(2) {
                    0 => self.content(&found),
                    _ => self.content_once(&found),
                };
                self.check_content(dir, name, found.ino(), content.as_deref().ok());
            }
        }
    }

    fn check_names(&self, dir: Ino) {
        let names = self.list(&self.dir(dir));
        let known = |state: &SharedState| state.names(dir) == names;
        assert!(self.lately().any(known), "{names:?} of {dir:?}");
    }

    fn check_attributes(&self, dir: Ino) {
        for (name, attr) in self.list_plus(&self.dir(dir)) {
            let known = |state: &SharedState| {
                let size = state.content(attr.ino).map(|content| content.len() as u64);
                state.child(dir, &name) == Some(attr.ino) && size == Some(attr.size)
            };
            // The length may be of a later time than the name.
            let was = |state: &SharedState| {
                let content = state.content(attr.ino);
                content.is_some_and(|content| content.len() as u64 == attr.size)
            };
            let later = self.since_led(dir, &name, attr.ino).any(was);
            assert!(self.lately().any(known) || later, "{name:?}: {attr:?}");
        }
    }

    /// The states that may be shown of a file that was found by its name: none from before it had
    /// that name.
    fn since_led(&self, dir: Ino, name: &[u8], ino: Ino) -> impl Iterator<Item = &SharedState> {
        self.lately()
            .skip_while(move |state| state.child(dir, name) != Some(ino))
    }

    /// A file's length and bytes may be of different times: it may be truncated while its length is
    /// still valid. Both are not older than the name.
    fn check_content(&self, dir: Ino, name: &[u8], ino: Ino, content: Option<&[u8]>) {
        let len = |state: &SharedState| {
            state.content(ino).map(|was| was.len()) == content.map(<[u8]>::len)
        };
        let bytes = |state: &SharedState| match (state.content(ino), content) {
            (Some(was), Some(content)) => {
                let both = was.len().min(content.len());
                was[..both] == content[..both] && content[both..].iter().all(|byte| *byte == 0)
            }
            (was, content) => was.as_deref() == content,
        };
        let lately = || self.since_led(dir, name, ino);
        let so = lately().any(len) && lately().any(bytes);
        assert!(so, "{:?} bytes", content.map(<[u8]>::len));
    }

    fn list(&self, dir: &Node) -> Vec<Box<[u8]>> {
        let open = self
            .fs
            .open(&Caller::root(), dir, OpenFlags::DIRECTORY)
            .unwrap();
        let mut names: Vec<Box<[u8]>> = Vec::new();
        let mut note = |entry: DirEntry<'_>| {
            names.push(entry.name.into());
            true
        };
        self.fs.read_dir(&open, 0, &mut note).unwrap();
        names.retain(|name| **name != *b"." && **name != *b"..");
        names.sort();
        names
    }

    fn list_plus(&self, dir: &Node) -> Vec<(Box<[u8]>, Attr)> {
        let open = self
            .fs
            .open(&Caller::root(), dir, OpenFlags::DIRECTORY)
            .unwrap();
        let mut all: Vec<(Box<[u8]>, Attr)> = Vec::new();
        let mut note = |entry: DirEntry<'_>, attr: Result<&Attr>| {
            all.push((entry.name.into(), *attr.unwrap()));
            true
        };
        self.fs.read_dir_plus(&open, 0, &mut note).unwrap();
        all.retain(|(_, attr)| attr.kind == FileType::Regular);
        all
    }

    /// Reads a file as a mount with a kernel's page cache does.
    fn content_once(&self, node: &Node) -> Result<Vec<u8>> {
        let open = self.fs.open_unseen(node.clone(), OpenFlags::empty())?;
        let mut content = vec![0; 8192];
        let read = self.fs.read_once(&open, 0, &mut content)?;
        content.truncate(read);
        Ok(content)
    }

    fn content(&self, node: &Node) -> Result<Vec<u8>> {
        let open = self.fs.open(&Caller::root(), node, OpenFlags::empty())?;
        let mut content = vec![0; 8192];
        let read = self.fs.read(&open, 0, &mut content)?;
        content.truncate(read);
        Ok(content)
    }
}

/// Can a change fail with this error because it relied on an old answer? `is_there`: its name
/// exists.
fn refuses_by_age(error: Errno, is_there: bool) -> bool {
    error == Errno::ESTALE || error == Errno::ENOENT || !is_there
}

#[test]
fn nothing_older_than_the_validity_is_answered() {
    for seed in 0..60 {
        println!("seed {seed}");
        change_and_look(&mut Pair::new(FOR_A_SECOND), &mut Rng::new(seed));
    }
}

/// Changes, lookups and passing time, in random order.
fn change_and_look(pair: &mut Pair, rng: &mut Rng) {
    for _ in 0..300 {
        match rng.below(6) {
            0 | 1 => pair.change(rng),
            2 => pair.pass(rng.below(VALID)),
            _ => pair.look(rng),
        }
        match rng.below(50) {
            0 => drop(pair.fs.drop_caches().unwrap()),
            1 => pair.store.miss(),
            _ => {}
        }
    }
}

#[test]
fn nothing_from_before_a_change_that_was_told_is_answered() {
    for seed in 0..60 {
        println!("seed {seed}");
        let mut pair = Pair::new(NOTIFIED);
        pair.oldest = None;
        change_and_look(&mut pair, &mut Rng::new(seed));
    }
}

#[test]
fn what_a_store_does_not_hear_of_holds_for_the_shorter_time() {
    for seed in 0..60 {
        println!("seed {seed}");
        let mut pair = Pair::new(NOTIFIED);
        pair.store.deafen();
        change_and_look(&mut pair, &mut Rng::new(seed));
    }
}

#[test]
fn what_a_store_hears_of_holds_no_longer_than_it_proves_that_it_hears() {
    const LEASE: u64 = VALID - 100;
    for seed in 0..60 {
        println!("seed {seed}");
        let mut pair = Pair::new(LEASED);
        let (mut rng, mut is_connected) = (Rng::new(seed), true);
        for _ in 0..300 {
            match rng.below(12) {
                0 => {
                    pair.store.cut_off();
                    is_connected = false;
                }
                1 => {
                    pair.store.connect();
                    is_connected = true;
                }
                2 | 3 => pair.change(&mut rng),
                4 => pair.pass(rng.below(VALID)),
                _ => pair.look(&mut rng),
            }
            if is_connected {
                pair.store.prove(LEASE);
            }
        }
    }
}

#[test]
fn what_a_store_proves_to_hear_of_is_not_asked_for() {
    let mut pair = Pair::new(LEASED);
    let file = pair.store.write(Ino::ROOT, b"a", b"one");
    pair.pass(1);
    pair.store.prove(VALID);
    looked(&pair);
    let left = |pair: &Pair| pair.fs.notified_for(file, pair.store.now());
    for _ in 0..20 {
        pair.pass(VALID - 1);
        assert_eq!(left(&pair), Some(Duration::from_millis(1)));
        pair.store.prove(VALID);
        assert_eq!(looked(&pair), (b"one".to_vec(), 0));
    }
    pair.store.write(Ino::ROOT, b"a", b"two");
    assert_eq!(left(&pair), None, "it was told of a change");
    pair.pass(1);
    assert_eq!(looked(&pair).0, b"two");
    pair.store.cut_off();
    pair.store.write(Ino::ROOT, b"a", b"three");
    pair.pass(VALID - 2);
    assert_eq!(looked(&pair), (b"two".to_vec(), 0), "it is told until then");
    pair.pass(1);
    assert_eq!(left(&pair), None);
    assert_eq!(looked(&pair).0, b"three");
}

/// The content of a file, and how often the store was asked for it, its names and attributes.
fn looked(pair: &Pair) -> (Vec<u8>, u64) {
    let (root, before) = (pair.fs.root(), pair.store.asked());
    let node = pair.lookup(&root, b"a").unwrap();
    let content = pair.content(&node).unwrap();
    assert_eq!(pair.list_plus(&root).len(), 1);
    assert_eq!(pair.list(&root).len(), 2);
    assert_eq!(pair.lookup(&root, b"none"), Err(Errno::ENOENT));
    (content, pair.store.asked() - before)
}

/// What happens to the store, for how long, and what is asked and seen then.
type Step = (fn(&SharedStore), u64, RangeInclusive<u64>, &'static [u8]);

#[test]
fn what_holds_is_asked_for_again_only_when_it_may_have_changed() {
    const OLD: &[u8] = b"content";
    const NEW: &[u8] = b"another";
    let nothing: fn(&SharedStore) = |_| ();
    let remove: fn(&SharedStore) = |store| store.remove(Ino::ROOT, b"a");
    let write: fn(&SharedStore) = |store| {
        store.write(Ino::ROOT, b"a", NEW);
    };
    let (none, some) = (0..=0, 1..=9);
    let for_a_second: &[Step] = &[
        (nothing, VALID - 1, none.clone(), OLD),
        // The root, the file and the other directory: names and content stand with the records.
        (nothing, 1, 3..=3, OLD),
    ];
    let notified: &[Step] = &[
        (nothing, 10 * VALID, none.clone(), OLD),
        (write, 1, some.clone(), NEW),
        (nothing, 10 * VALID, none.clone(), NEW),
        // Anything may have changed.
        (SharedStore::miss, 1, some.clone(), NEW),
        (nothing, 10 * VALID, none.clone(), NEW),
        // Some changes nobody hears of.
        (nothing, 3_600_000, some, NEW),
    ];
    let exclusive: &[Step] = &[(remove, u64::from(u32::MAX), none, OLD)];
    for (coherence, steps) in [
        (FOR_A_SECOND, for_a_second),
        (NOTIFIED, notified),
        (Coherence::Exclusive, exclusive),
    ] {
        let mut pair = Pair::new(coherence);
        pair.store.write(Ino::ROOT, b"a", OLD);
        pair.pass(1);
        looked(&pair);
        for (number, (change, millis, asks, content)) in steps.iter().enumerate() {
            change(&pair.store);
            pair.pass(*millis);
            let (found, asked) = looked(&pair);
            assert!(asks.contains(&asked), "{coherence:?}, {number}: {asked}");
            assert_eq!(found, *content, "{coherence:?}, {number}");
        }
    }
}

#[test]
fn threads_that_look_while_others_change_see_nothing_that_is_too_old() {
    const ROUNDS: u64 = 2000;
    let pair = Pair::new(Coherence::For(Duration::ZERO));
    let written = AtomicU64::new(0);
    pair.store.write(Ino::ROOT, b"a", &0_u64.to_le_bytes());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                loop {
                    let before = written.load(Ordering::SeqCst);
                    let node = pair.lookup(&pair.fs.root(), b"a").unwrap();
                    let content = pair.content(&node).unwrap();
                    let seen = u64::from_le_bytes(content.try_into().unwrap());
                    assert!(seen >= before, "{seen} after {before} was written");
                    if before == ROUNDS {
                        break;
                    }
                }
            });
        }
        for round in 1..=ROUNDS {
            pair.store.write(Ino::ROOT, b"a", &round.to_le_bytes());
            written.store(round, Ordering::SeqCst);
        }
    });
}

#[test]
fn threads_that_change_one_directory_leave_in_memory_what_is_in_the_store() {
    let names = |thread: u64, rng: &mut Rng| match rng.below(2) {
        0 => format!("shared {}", rng.below(4)),
        _ => format!("own {thread} {}", rng.below(4)),
    };
    for coherence in [
        Coherence::Exclusive,
        Coherence::For(Duration::from_secs(3600)),
    ] {
        for seed in 0..20 {
            println!("{coherence:?}, seed {seed}");
            let pair = &Pair::new(coherence);
            let (fs, root, who) = (&pair.fs, &pair.fs.root(), &Caller::root());
            std::thread::scope(|scope| {
                let work = |thread| {
                    scope.spawn(move || {
                        let mut rng = Rng::new(seed * 4 + thread);
                        for _ in 0..150 {
                            let (name, other) = (names(thread, &mut rng), names(thread, &mut rng));
                            let (name, other) = (name.as_bytes(), other.as_bytes());
                            let none = RenameFlags::empty();
                            let flags = OpenFlags::CREATE | OpenFlags::WRITE_ONLY;
                            let _ = match rng.below(6) {
                                0 => fs.unlink(who, root, name),
                                1 => fs.rename(who, root, name, root, other, none),
                                2 => fs.mkdir(who, root, name, 0o755).map(drop),
                                3 => fs.rmdir(who, root, name),
                                4 => fs.create(who, root, name, 0o644, flags).and_then(|file| {
                                    let data = vec![thread as u8; rng.below(9000) as usize];
                                    fs.write(who, &file, 0, &data).map(drop)
                                }),
                                _ => {
                                    pair.list(root);
                                    fs.lookup(who, root, name).map(drop)
                                }
                            };
                        }
                    })
                };
                let threads = [0, 1, 2, 3].map(work);
                for thread in threads {
                    thread.join().unwrap();
                }
            });
            let state = pair.store.state();
            let listed = pair.list(root);
            assert_eq!(listed, state.names(Ino::ROOT));
            assert_eq!(
                fs.attributes(root).unwrap().nlink,
                state.nlink(Ino::ROOT).unwrap()
            );
            for name in listed {
                let node = pair.lookup(root, &name).unwrap();
                assert_eq!(Some(node.ino()), state.child(Ino::ROOT, &name));
                if node.kind() == FileType::Regular {
                    let expected = state.content(node.ino()).unwrap();
                    assert_eq!(fs.attributes(&node).unwrap().size, expected.len() as u64);
                    let mut shown = vec![0; 9001];
                    let open = fs.open(who, &node, OpenFlags::empty()).unwrap();
                    let len = fs.read(&open, 0, &mut shown).unwrap();
                    assert!(shown[..len] == expected, "{name:?}");
                }
            }
        }
    }
}
