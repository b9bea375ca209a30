//! Bytes of a file that are being read from the store: what readers and concurrent changes see.
//! Over a store of this core alone, and over one that others change.
//!
//! The store is blocked in a call, so no test depends on timing.

use holdfast_core::store::{Coherence, Store};
use holdfast_core::types::{Caller, Errno, Ino, OpenFlags, Result, SetAttr};
use holdfast_core::{FileSystem, OpenFile, Options};
use holdfast_testkit::store::{Call, Hook, ModelStore, SharedStore, Wrapped};
use parking_lot::{Condvar, Mutex};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

const PAGE: usize = 4096;
const LARGE: usize = 1 << 20;
const SMALL: usize = 10_000;
/// Upper bound for an operation that must not wait.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where a read of bytes is blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Begin,
    End,
}

#[derive(Default)]
struct State {
    hold: Option<At>,
    held: usize,
    /// How often blocked reads were released.
    let_go: usize,
    reads: usize,
    error: Option<Errno>,
    panics: bool,
}

/// Blocks, fails or aborts reads of bytes.
#[derive(Default)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

impl Gate {
    fn set(&self, set: impl FnOnce(&mut State)) {
        set(&mut self.state.lock());
        self.changed.notify_all();
    }

    fn pass(&self, at: At) {
        let mut state = self.state.lock();
        if state.hold != Some(at) {
            return;
        }
        state.held += 1;
        self.changed.notify_all();
        let let_go = state.let_go;
        while state.hold == Some(at) && state.let_go == let_go {
            let timed_out = self.changed.wait_for(&mut state, PATIENCE).timed_out();
            assert!(!timed_out, "something waits for a read that is held");
        }
        state.held -= 1;
    }

    /// Waits until so many reads are blocked.
    fn holds(&self, reads: usize) -> bool {
        let until = Instant::now() + PATIENCE;
        let mut state = self.state.lock();
        while state.held < reads && Instant::now() < until {
            self.changed.wait_until(&mut state, until);
        }
        state.held >= reads
    }
}

impl Hook for Gate {
    fn before(&self, call: Call) -> Result<()> {
        if call != Call::ReadData {
            return Ok(());
        }
        self.pass(At::Begin);
        let mut state = self.state.lock();
        state.reads += 1;
        let panics = state.panics;
        let error = state.error;
        drop(state);
        assert!(!panics, "a store that panics");
        error.map_or(Ok(()), Err)
    }

    fn has_read(&self, _ino: Ino, _offset: u64) {
        self.pass(At::End);
    }
}

/// A file system over a store that can be blocked, with a large and a small file that are not in
/// memory.
struct World {
    gate: Arc<Wrapped<Gate>>,
    fs: FileSystem,
    /// The store, if others change it.
    below: Option<Arc<SharedStore>>,
}

fn byte(at: usize) -> u8 {
    (at % 251) as u8 + 1
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(byte).collect()
}

impl World {
    fn over(store: Arc<dyn Store>, below: Option<Arc<SharedStore>>) -> Self {
        let gate = Wrapped::new(store, Gate::default());
        let fs = FileSystem::new(gate.clone(), Options::default()).unwrap();
        Self { gate, fs, below }
    }

    fn alone() -> Self {
        let world = Self::over(Arc::new(ModelStore::new()), None);
        for (name, len) in [(b"large", LARGE), (b"small", SMALL)] {
            let file = world.open(name, OpenFlags::CREATE);
            let written = world.fs.write(&Caller::root(), &file, 0, &bytes(len));
            assert_eq!(written, Ok(len));
        }
        world.fs.sync().unwrap();
        world.fs.drop_caches().unwrap();
        world
    }

    fn shared() -> Self {
        let store = Arc::new(SharedStore::new(Coherence::Notified {
            valid: Duration::from_secs(3600),
            notified: Duration::from_secs(3600),
        }));
        store.write(Ino::ROOT, b"large", &bytes(LARGE));
        store.write(Ino::ROOT, b"small", &bytes(SMALL));
        Self::over(store.clone(), Some(store))
    }

    fn both() -> [Self; 2] {
        [Self::alone(), Self::shared()]
    }

    fn gate(&self) -> &Gate {
        self.gate.hook()
    }

    fn open(&self, name: &[u8], flags: OpenFlags) -> OpenFile {
        let (who, root) = (Caller::root(), self.fs.root());
        let flags = OpenFlags::READ_WRITE | flags;
        self.fs.open_at(&who, &root, name, flags, 0o644).unwrap()
    }

    /// The bytes of a page, up to the end of the file.
    fn page(&self, file: &OpenFile, number: usize) -> Result<Vec<u8>> {
        let mut found = vec![0; PAGE];
        let read = self.fs.read(file, (number * PAGE) as u64, &mut found)?;
        found.truncate(read);
        Ok(found)
    }
}

fn page_of(number: usize) -> Vec<u8> {
    (number * PAGE..(number + 1) * PAGE).map(byte).collect()
}

fn beside<'s, T: Send + 's>(
    scope: &'s thread::Scope<'s, '_>,
    act: impl FnOnce() -> T + Send + 's,
) -> ScopedJoinHandle<'s, T> {
    scope.spawn(act)
}

#[test]
fn an_error_goes_to_all_that_wait_and_nothing_stays_in_flight() {
    for world in World::both() {
        let file = &world.open(b"large", OpenFlags::empty());
        world.page(file, 0).unwrap();
        let gate = world.gate();
        gate.set(|state| (state.hold, state.error) = (Some(At::Begin), Some(Errno::EIO)));
        thread::scope(|scope| {
            let readers: Vec<_> = (0..4)
                .map(|_| beside(scope, || world.page(file, 100)))
                .collect();
            assert!(gate.holds(1));
            gate.set(|state| state.hold = None);
            for reader in readers {
                assert_eq!(reader.join().unwrap(), Err(Errno::EIO));
            }
        });
        gate.set(|state| state.error = None);
        assert_eq!(world.page(file, 100), Ok(page_of(100)));
    }
}

#[test]
fn several_threads_read_a_cold_file_at_the_same_time() {
    for world in &World::both() {
        let file = &world.open(b"large", OpenFlags::empty());
        let gate = world.gate();
        gate.set(|state| state.hold = Some(At::Begin));
        thread::scope(|scope| {
            let number = |reader: usize| 20 + 40 * reader;
            let readers =
                [0, 1, 2, 3].map(|reader| beside(scope, move || world.page(file, number(reader))));
            assert!(gate.holds(4), "one read of the store waits for another");
            gate.set(|state| state.hold = None);
            for (reader, found) in readers.into_iter().enumerate() {
                assert_eq!(found.join().unwrap(), Ok(page_of(number(reader))));
            }
        });
    }
}

#[test]
fn a_panic_leaves_nothing_in_flight() {
    for world in World::both() {
        let large = &world.open(b"large", OpenFlags::empty());
        let small = &world.open(b"small", OpenFlags::empty());
        world.page(large, 0).unwrap();
        let gate = world.gate();
        for (file, number) in [(large, 100), (small, 1)] {
            gate.set(|state| (state.hold, state.panics) = (Some(At::Begin), true));
            thread::scope(|scope| {
                let reader = beside(scope, || {
                    catch_unwind(AssertUnwindSafe(|| world.page(file, number)))
                });
                assert!(gate.holds(1));
                let other = beside(scope, || {
                    catch_unwind(AssertUnwindSafe(|| world.page(file, number)))
                });
                gate.set(|state| state.hold = None);
                assert!(reader.join().unwrap().is_err());
                let _ = other.join().unwrap();
            });
            gate.set(|state| state.panics = false);
            assert_eq!(world.page(file, number), Ok(page_of(number)));
        }
    }
}

#[test]
fn the_map_of_a_file_is_asked_for_once_and_holds_up_nobody_else() {
    for world in World::both() {
        let small = &world.open(b"small", OpenFlags::empty());
        let gate = world.gate();
        gate.set(|state| (state.hold, state.reads) = (Some(At::Begin), 0));
        thread::scope(|scope| {
            let readers: Vec<_> = (0..4)
                .map(|_| beside(scope, || world.page(small, 1)))
                .collect();
            assert!(gate.holds(1));
            // Its attributes do not wait for the read.
            let attr = world.fs.getattr(small.node());
            assert_eq!(attr.size, SMALL as u64);
            gate.set(|state| state.hold = None);
            for reader in readers {
                assert_eq!(reader.join().unwrap(), Ok(page_of(1)));
            }
        });
        assert_eq!(gate.state.lock().reads, 1);
    }
}

/// Others change a file while bytes that were read before are on their way to memory.
fn changed_below(name: &[u8], number: usize, len: usize) {
    let world = World::shared();
    let below = world.below.as_ref().unwrap();
    let file = &world.open(name, OpenFlags::empty());
    if len > 256 << 10 {
        world.page(file, 0).unwrap();
    }
    let gate = world.gate();
    gate.set(|state| state.hold = Some(At::End));
    thread::scope(|scope| {
        let reader = beside(scope, || world.page(file, number));
        assert!(gate.holds(1));
        below.pass(1);
        below.write(Ino::ROOT, name, &vec![9; len]);
        // Learns of the change.
        let attr = world
            .fs
            .stat_at(&Caller::root(), &world.fs.root(), name, true);
        assert_eq!(attr.unwrap().size, len as u64);
        gate.set(|state| state.hold = None);
        let found = reader.join().unwrap().unwrap();
        assert!(found == page_of(number) || found == vec![9; PAGE]);
    });
    assert_eq!(world.page(file, number), Ok(vec![9; PAGE]), "old bytes");
}

#[test]
fn what_others_changed_while_it_was_read_is_not_kept() {
    changed_below(b"large", 100, LARGE);
    changed_below(b"small", 1, SMALL);
}

#[test]
fn what_is_changed_here_while_it_is_read_is_not_brought_back() {
    for world in World::both() {
        let file = &world.open(b"large", OpenFlags::empty());
        world.page(file, 0).unwrap();
        let (gate, who) = (world.gate(), Caller::root());
        for (number, change) in [(100, PAGE), (140, 0)] {
            gate.set(|state| state.hold = Some(At::End));
            thread::scope(|scope| {
                let reader = beside(scope, || world.page(file, number));
                assert!(gate.holds(1));
                let offset = (number * PAGE) as u64;
                if change > 0 {
                    let written = world.fs.write(&who, file, offset, &[9; PAGE]);
                    assert_eq!(written, Ok(PAGE));
                } else {
                    for size in [offset, LARGE as u64] {
                        let set = SetAttr {
                            size: Some(size),
                            ..SetAttr::default()
                        };
                        world
                            .fs
                            .setattr(&who, file.node(), &set, Some(file))
                            .unwrap();
                    }
                }
                gate.set(|state| state.hold = None);
                reader.join().unwrap().unwrap();
            });
            let expected = vec![if change > 0 { 9 } else { 0 }; PAGE];
            assert_eq!(world.page(file, number), Ok(expected));
        }
    }
}

#[test]
fn a_small_file_that_is_cut_off_while_it_is_read_once_is_not_seen_half() {
    for world in World::both() {
        let file = &world.open(b"small", OpenFlags::empty());
        let (gate, who) = (world.gate(), Caller::root());
        gate.set(|state| state.hold = Some(At::End));
        thread::scope(|scope| {
            let reader = beside(scope, || {
                let mut found = vec![0; SMALL];
                let read = world.fs.read_once(file, 0, &mut found).unwrap();
                found.truncate(read);
                found
            });
            assert!(gate.holds(1));
            let set = SetAttr {
                size: Some(0),
                ..SetAttr::default()
            };
            world
                .fs
                .setattr(&who, file.node(), &set, Some(file))
                .unwrap();
            gate.set(|state| state.hold = None);
            let found = reader.join().unwrap();
            assert!(found.is_empty() || found == bytes(SMALL));
        });
        assert_eq!(world.page(file, 0), Ok(Vec::new()));
    }
}

#[test]
fn readers_come_to_an_end_though_others_change_the_file_each_time() {
    let world = World::shared();
    let below = world.below.as_ref().unwrap();
    for (name, len) in [(&b"large"[..], LARGE), (b"small", SMALL)] {
        let file = &world.open(name, OpenFlags::empty());
        let gate = world.gate();
        gate.set(|state| state.hold = Some(At::End));
        thread::scope(|scope| {
            let reader = beside(scope, || world.page(file, 1));
            let mut changes = 0;
            while !reader.is_finished() {
                let until = Instant::now() + Duration::from_millis(10);
                let mut state = gate.state.lock();
                while state.held == 0 && !reader.is_finished() && Instant::now() < until {
                    gate.changed.wait_until(&mut state, until);
                }
                drop(state);
                changes += 1;
                assert!(changes < 10_000, "the reader begins anew for ever");
                below.pass(1);
                below.write(Ino::ROOT, name, &vec![9; len]);
                let asking = beside(scope, || {
                    let _ = world
                        .fs
                        .stat_at(&Caller::root(), &world.fs.root(), name, true);
                });
                // Not while the pages are locked over the read.
                while !asking.is_finished() && Instant::now() < until {
                    thread::yield_now();
                }
                gate.set(|state| state.let_go += 1);
                asking.join().unwrap();
            }
            gate.set(|state| state.hold = None);
            reader.join().unwrap().unwrap();
        });
        assert_eq!(world.page(file, 1), Ok(vec![9; PAGE]));
    }
}
