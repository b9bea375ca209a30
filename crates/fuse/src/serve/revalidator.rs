//! Revalidation of open files of a shared store.
//!
//! The kernel reads from its page cache, and a mapping never asks for attributes. A store may
//! notify of some changes only, or of none. So a thread asks the store for each open regular file,
//! and notifies the kernel of what changed.
//!
//! # Invariants
//! While a file is open, the thread revalidates within [`Revalidator::every`], or `idle` is set.
//! The opening thread reads `idle` after the file has its handle, and wakes the thread. Without
//! open files the thread sleeps.
//!
//! # Locking
//! `over` is a leaf.

use super::handles::Handles;
use crate::Config;
use holdfast_core::{
    FileSystem, Node,
    types::{FileType, Ino},
};
use parking_lot::{Condvar, Mutex};
use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// How often open files are revalidated where attributes have no validity.
const REVALIDATE_EVERY: Duration = Duration::from_millis(250);
/// Stack of the thread: it only calls the store.
const STACK: usize = 256 << 10;

/// Revalidates open files.
pub(super) struct Revalidator {
    every: Duration,
    /// Did the thread find no open file?
    idle: AtomicBool,
    /// Guards the end of the thread.
    over: Mutex<bool>,
    wake: Condvar,
}

impl Revalidator {
    /// Starts the thread, if others may change files and attributes become invalid. `None` also if
    /// it cannot be started: then only notified changes are seen.
    pub(super) fn start(
        fs: &FileSystem,
        handles: &Arc<Handles>,
        config: &Config,
    ) -> Option<Arc<Self>> {
        let valid = config.attr_timeout;
        if !fs.is_shared() || valid == Duration::MAX {
            return None;
        }
        let every = match valid.is_zero() {
            true => REVALIDATE_EVERY,
            false => valid / 2,
        };
        let revalidator = Arc::new(Self {
            every,
            idle: AtomicBool::new(false),
            over: Mutex::new(false),
            wake: Condvar::new(),
        });
        let (own, fs, handles) = (revalidator.clone(), fs.clone(), handles.clone());
        thread::Builder::new()
            .name("holdfast-again".into())
            .stack_size(STACK)
            .spawn(move || own.run(&fs, &handles))
            .ok()?;
        Some(revalidator)
    }

    /// A file was opened.
    pub(super) fn opened(&self) {
        if self.idle.load(Ordering::SeqCst) {
            // The lock is held, so the thread is asleep or before its next scan.
            let over = self.over.lock();
            self.idle.store(false, Ordering::SeqCst);
            drop(over);
            self.wake.notify_one();
        }
    }

    /// Ends the thread, after the store's answer that it may be waiting for.
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
                // An error of a removed or unreachable file is reported to its users.
                let _ = fs.revalidate(&node);
            }
        }
    }

    /// Waits for the next round; `false`: the session ended.
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
