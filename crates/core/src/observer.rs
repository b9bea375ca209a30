//! Observers: front ends with caches of their own, which are notified of changes.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use crate::FileSystem;
use crate::core::Core;
use crate::types::{Caller, Ino};

/// Notified of changes that did not come through it. Changes by callers with [`Caller::checked`]
/// are the observer's own, and are not reported. Called without locks held, after the change.
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
    /// to these inodes ([`FileSystem::forget`]).
    fn is_to_forget(&self, inodes: &[Ino]) {
        let _ = inodes;
    }
}

impl FileSystem {
    /// Sets (or, with `None`, removes) the one observer.
    pub fn set_observer(&self, observer: Option<Arc<dyn Observer>>) {
        let mut held = self.core.observer.write();
        self.core
            .observed
            .store(observer.is_some(), Ordering::Release);
        *held = observer;
    }
}

fn tell(core: &Core, who: &Caller, what: impl FnOnce(&dyn Observer)) {
    if who.checked || !is_observed(core) {
        return;
    }
    tell_anyhow(core, what);
}

fn tell_anyhow(core: &Core, what: impl FnOnce(&dyn Observer)) {
    let observer = core.observer.read().clone();
    if let Some(observer) = observer {
        what(&*observer);
    }
}

/// Is there an observer that reacts to [`Observer::is_to_forget`]?
pub(crate) fn is_observed(core: &Core) -> bool {
    core.observed.load(Ordering::Acquire)
}

/// Asks the observer to drop its references to these inodes.
pub(crate) fn ask_back(core: &Core, inodes: &[Ino]) {
    if !inodes.is_empty() {
        tell_anyhow(core, |observer| observer.is_to_forget(inodes));
    }
}

pub(crate) fn notify_inode(core: &Core, who: &Caller, ino: Ino, data: bool) {
    tell(core, who, |observer| {
        if may_be_kept(core, observer, ino) {
            observer.inode_changed(ino, data);
        }
    });
}

/// Any name may lead elsewhere.
pub(crate) fn tell_all(core: &Core) {
    if is_observed(core) {
        tell_anyhow(core, |observer| observer.all_entries_changed());
    }
}

pub(crate) fn notify_entry(core: &Core, who: &Caller, dir: Ino, name: &[u8]) {
    tell(core, who, |observer| {
        if may_be_kept(core, observer, dir) {
            observer.entry_changed(dir, name);
        }
    });
}

/// May the observer cache this inode, which has just changed?
fn may_be_kept(core: &Core, observer: &dyn Observer, ino: Ino) -> bool {
    if ino == Ino::ROOT || !observer.keeps_by_number() {
        return true;
    }
    // Pairs with the observer's fence: either it read the new state, or its reference is seen
    // here.
    fence(Ordering::SeqCst);
    core.evictions.may_be_held(&core.index, ino)
}
