//! The file systems under test, over memory and over a store that inodes are loaded from.

use holdfast_core::store::{Lsn, Store};
use holdfast_core::types::{Caller, Ino, OpenFlags, Result, XattrSet};
use holdfast_core::{FileSystem, MemoryLimits, MemoryStore, Node, OpenFile, Options};
use holdfast_testkit::store::{Call, Hook, ModelStore, Wrapped};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A file system, its root, and a privileged caller.
pub(crate) struct Stage {
    pub(crate) root: Node,
    pub(crate) fs: FileSystem,
    pub(crate) who: Caller,
    store: Arc<dyn Store>,
}

/// The resources of a file system, in memory and of its store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) inodes: u64,
    pub(crate) names: u64,
    pub(crate) pages: u64,
    pub(crate) bytes: u64,
    pub(crate) open_files: u64,
    pub(crate) watches: u64,
    pub(crate) locks: u64,
    pub(crate) space: (u64, u64),
}

/// The resources of a file system with an empty root.
pub(crate) const NOTHING: Held = Held {
    inodes: 1,
    names: 0,
    pages: 0,
    bytes: 0,
    open_files: 0,
    watches: 0,
    locks: 0,
    space: (0, 1),
};

impl Stage {
    pub(crate) fn over(store: Arc<dyn Store>, options: Options) -> Self {
        let fs = FileSystem::new(Arc::clone(&store), options).unwrap();
        Self {
            root: fs.root(),
            fs,
            who: Caller::root(),
            store,
        }
    }

    /// Over memory: everything is pinned.
    pub(crate) fn memory() -> Self {
        let store = MemoryStore::new(MemoryLimits::default());
        Self::over(Arc::new(store), Options::default())
    }

    /// Over maps: unreferenced inodes can be evicted, and are loaded again.
    pub(crate) fn model() -> Self {
        Self::over(Arc::new(ModelStore::new()), Options::default())
    }

    /// One over each.
    pub(crate) fn each() -> [Self; 2] {
        [Self::memory(), Self::model()]
    }

    /// Is it over memory?
    pub(crate) fn is_memory(&self) -> bool {
        self.store.guarantees().pinned
    }

    /// The number of a new file of the root with an extended attribute, which is loaded with it.
    pub(crate) fn labelled(&self, name: &str) -> Ino {
        let file = self.open(name);
        let (label, how) = (b"user.label", XattrSet::Any);
        let set = self.fs.setxattr(&self.who, file.node(), label, b"", how);
        set.unwrap();
        file.node().ino()
    }

    /// Opens a file of the root for reading and writing, creating it if it does not exist.
    pub(crate) fn open(&self, name: &str) -> OpenFile {
        self.open_in(&self.root, name)
    }

    pub(crate) fn open_in(&self, dir: &Node, name: &str) -> OpenFile {
        let flags = OpenFlags::READ_WRITE | OpenFlags::CREATE;
        self.fs
            .create(&self.who, dir, name.as_bytes(), 0o600, flags)
            .unwrap()
    }

    /// A file without a name.
    pub(crate) fn unnamed(&self) -> OpenFile {
        let flags = OpenFlags::READ_WRITE;
        self.fs
            .tmpfile(&self.who, &self.root, 0o600, flags)
            .unwrap()
    }

    /// Creates a directory in the root.
    pub(crate) fn mkdir(&self, name: &str) -> Node {
        self.fs
            .mkdir(&self.who, &self.root, name.as_bytes(), 0o700)
            .unwrap()
    }

    pub(crate) fn lookup(&self, name: &str) -> Result<Node> {
        self.fs.lookup(&self.who, &self.root, name.as_bytes())
    }

    pub(crate) fn unlink(&self, name: &str) {
        self.fs
            .unlink(&self.who, &self.root, name.as_bytes())
            .unwrap();
    }

    pub(crate) fn write(&self, file: &OpenFile, offset: u64, data: &[u8]) {
        assert_eq!(
            self.fs.write(&self.who, file, offset, data),
            Ok(data.len()),
            "at {offset}"
        );
    }

    pub(crate) fn held(&self) -> Held {
        let stats = self.fs.stats();
        let space = self.store.space().unwrap();
        Held {
            inodes: stats.inodes,
            names: stats.names,
            pages: stats.pages,
            bytes: stats.bytes,
            open_files: stats.open_files,
            watches: stats.watches,
            locks: stats.locks,
            space: (space.pages_used, space.inodes_used),
        }
    }
}

/// Runs `body` in this many threads, repeatedly, until the time is over or one panics.
pub(crate) fn race(threads: usize, body: impl Fn(usize) + Sync) {
    race_for(Duration::from_millis(400), threads, body);
}

pub(crate) fn race_for(time: Duration, threads: usize, body: impl Fn(usize) + Sync) {
    let stopped = AtomicBool::new(false);
    let end = Instant::now() + time;
    in_threads(threads, |thread| {
        // Also on a panic, so that the other threads stop.
        let _stop = StopOthers(&stopped);
        while !stopped.load(Ordering::Relaxed) && Instant::now() < end {
            body(thread);
        }
    });
}

/// Runs `body` once in each of so many threads.
pub(crate) fn in_threads(threads: usize, body: impl Fn(usize) + Sync) {
    thread::scope(|scope| {
        let spawn = |thread| {
            let body = &body;
            scope.spawn(move || body(thread))
        };
        let running: Vec<_> = (0..threads).map(spawn).collect();
        // Joined one by one: the sanitizers do not see the end of a scope.
        for thread in running {
            thread.join().unwrap();
        }
    });
}

struct StopOthers<'a>(&'a AtomicBool);

impl Drop for StopOthers<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Blocks one call of a store before it begins (a commit: after it has ended).
pub(crate) struct Gate {
    call: Call,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Calls pass.
    Idle,
    /// The next call will be blocked.
    Armed,
    /// A call is blocked.
    Reached,
}

impl Gate {
    /// Blocks the next such call.
    pub(crate) fn arm(&self) {
        *self.state.lock() = State::Armed;
    }

    /// Waits until a call is blocked.
    pub(crate) fn wait(&self) {
        self.until(State::Reached);
    }

    /// Releases it.
    pub(crate) fn open(&self) {
        *self.state.lock() = State::Idle;
        self.changed.notify_all();
    }

    fn until(&self, wanted: State) {
        let mut state = self.state.lock();
        while *state != wanted {
            self.changed.wait(&mut state);
        }
    }

    fn pass(&self, call: Call) {
        if call != self.call {
            return;
        }
        {
            let mut state = self.state.lock();
            if *state != State::Armed {
                return;
            }
            *state = State::Reached;
        }
        self.changed.notify_all();
        self.until(State::Idle);
    }
}

impl Hook for Gate {
    fn before(&self, call: Call) -> Result<()> {
        if call != Call::Commit {
            self.pass(call);
        }
        Ok(())
    }

    fn committed(&self, _upto: Option<Lsn>) {
        self.pass(Call::Commit);
    }
}

/// A file system over maps with a gate at this call.
pub(crate) fn gated(call: Call) -> (Arc<Wrapped<Gate>>, Stage) {
    gated_over(call, Arc::new(ModelStore::new()))
}

pub(crate) fn gated_over(call: Call, store: Arc<dyn Store>) -> (Arc<Wrapped<Gate>>, Stage) {
    let gate = Gate {
        call,
        state: Mutex::new(State::Idle),
        changed: Condvar::new(),
    };
    let store = Wrapped::new(store, gate);
    let stage = Stage::over(Arc::clone(&store) as Arc<dyn Store>, Options::default());
    (store, stage)
}
