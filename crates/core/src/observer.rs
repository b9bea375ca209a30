//! Observers: front ends with caches of their own, which are notified of changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;

use crate::types::Ino;

/// Notified of changes that did not come through it. Changes by callers with
/// [`checked`](crate::types::Caller::checked) are the observer's own, and are not reported. Called
/// without locks held, after the change.
pub trait Observer: Send + Sync {
    /// Attributes changed, and with `data` the content too.
    fn inode_changed(&self, ino: Ino, data: bool);
    /// A name was added, removed, or leads to another inode.
    fn entry_changed(&self, dir: Ino, name: &[u8]);
    /// Any name may lead elsewhere.
    fn all_entries_changed(&self) {}
    /// Does it cache only the root, and inodes of which it has turned a reference into a number
    /// ([`Node::into_raw`](crate::Node::into_raw))? Then it is notified of no others.
    ///
    /// It must take the reference before it reads what it caches, with a fence (`SeqCst`) in
    /// between: a later change of the inode then sees the reference.
    fn keeps_by_number(&self) -> bool {
        false
    }
    /// The counts of evicted inodes that it references by number take too much of the memory
    /// ([`Options::memory`](crate::Options::memory)). The observer should drop unneeded references
    /// to these inodes ([`forget`](crate::FileSystem::forget)).
    fn is_to_forget(&self, inodes: &[Ino]) {
        let _ = inodes;
    }
}

/// The one observer of a file system, if there is one.
#[derive(Default)]
pub(crate) struct Observers {
    observer: RwLock<Option<Arc<dyn Observer>>>,
    is_set: AtomicBool,
}

impl Observers {
    /// Sets or removes the observer.
    pub(crate) fn set(&self, observer: Option<Arc<dyn Observer>>) {
        let mut held = self.observer.write();
        self.is_set.store(observer.is_some(), Ordering::Release);
        *held = observer;
    }

    /// Is there an observer?
    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// Calls `tell` with the observer, if there is one.
    pub(crate) fn tell(&self, tell: impl FnOnce(&dyn Observer)) {
        if !self.is_set() {
            return;
        }
        let observer = self.observer.read().clone();
        if let Some(observer) = observer {
            tell(&*observer);
        }
    }
}
