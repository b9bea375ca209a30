//! Files of a shared store that the kernel has open are looked at again and again.
//!
//! The kernel answers from pages that it keeps, and a mapping never asks for attributes. A store may not tell of
//! each change, or of none. So a thread asks the store for each regular file that is open, and what it finds changed the kernel is told.
//!
//! # Invariants
//! While a file is open, either the thread looks within [`Again::every`], or `idle` is set and the opening, which sees that after the file
//! has its slot, wakes the thread. Without open files the thread sleeps.
//!
//! # Locking
//! `over` and `missed` are leaves.

use super::handles::Handles;
use holdfast_core::{
    FileSystem, Node,
    types::{FileType, Ino},
};
use parking_lot::{Condvar, Mutex};
use std::{
    collections::{HashMap, HashSet},
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// What the thread needs: little more than what the store's questions do.
const STACK: usize = 256 << 10;
/// So long a notification that drops a file's pages may take to reach the kernel.
const MISSED: Duration = Duration::from_secs(1);

/// Looks at open files again.
pub(super) struct Again {
    every: Duration,
    /// Is no file open, as far as the thread saw?
    idle: AtomicBool,
    /// Guards whether it is over.
    over: Mutex<bool>,
    wake: Condvar,
    /// Files of which an opening found that a change was missed, and when, for [`MISSED`].
    missed: Mutex<HashMap<Ino, Instant>>,
}

impl Again {
    /// Starts the thread.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub(super) fn start(
        fs: &FileSystem,
        handles: &Arc<Handles>,
        every: Duration,
    ) -> io::Result<Arc<Self>> {
        let again = Arc::new(Self {
            every,
            idle: AtomicBool::new(false),
            over: Mutex::new(false),
            wake: Condvar::new(),
            missed: Mutex::default(),
        });
        let (own, fs, handles) = (again.clone(), fs.clone(), handles.clone());
        thread::Builder::new()
            .name("holdfast-again".into())
            .stack_size(STACK)
            .spawn(move || own.run(&fs, &handles))?;
        Ok(again)
    }

    /// A file was opened.
    pub(super) fn opened(&self) {
        if self.idle.load(Ordering::SeqCst) {
            // With the lock, so that the thread is before its look or asleep.
            let over = self.over.lock();
            self.idle.store(false, Ordering::SeqCst);
            drop(over);
            self.wake.notify_one();
        }
    }

    /// An opening found that a change of this file was missed.
    pub(super) fn missed(&self, ino: Ino) {
        let now = Instant::now();
        let mut missed = self.missed.lock();
        missed.retain(|_, at| now - *at < MISSED);
        missed.insert(ino, now);
    }

    /// May the kernel have pages of this file from before a change that was missed?
    pub(super) fn has_missed(&self, ino: Ino) -> bool {
        let missed = self.missed.lock();
        missed.get(&ino).is_some_and(|at| at.elapsed() < MISSED)
    }

    /// The thread ends when it has the answer that it waits for.
    pub(super) fn end(&self) {
        *self.over.lock() = true;
        self.wake.notify_one();
    }

    fn run(&self, fs: &FileSystem, handles: &Handles) {
        while self.wait() {
            self.idle.store(true, Ordering::SeqCst);
            let open = open_files(handles);
            if open.is_empty() {
                continue;
            }
            self.idle.store(false, Ordering::SeqCst);
            for node in open {
                // A file that is gone, or cannot be asked for, is told to those that use it.
                let _ = fs.look_again(&node);
            }
        }
    }

    /// Waits for the next look; `false`: there is none.
    fn wait(&self) -> bool {
        let mut over = self.over.lock();
        while !*over && self.idle.load(Ordering::SeqCst) {
            self.wake.wait(&mut over);
        }
        if !*over {
            self.wake.wait_for(&mut over, self.every);
        }
        !*over
    }
}

/// The regular files that are open, each once.
fn open_files(handles: &Handles) -> Vec<Node> {
    let (mut open, mut known) = (Vec::new(), HashSet::<Ino>::new());
    handles.each(|handle| {
        let node = handle.file.node();
        if node.kind() == FileType::Regular && known.insert(node.ino()) {
            open.push(node.clone());
        }
    });
    open
}
