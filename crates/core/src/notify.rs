//! Notifications of the [observer](Observer).

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use crate::FileSystem;
use crate::core::Core;
use crate::observer::Observer;
use crate::types::{Caller, Ino};

impl FileSystem {
    /// Sets (or, with `None`, removes) the one observer.
    pub fn set_observer(&self, observer: Option<Arc<dyn Observer>>) {
        self.core.observers.set(observer);
    }
}

/// Attributes changed, and with `data` the content too.
pub(crate) fn notify_inode(core: &Core, who: &Caller, ino: Ino, data: bool) {
    if who.checked {
        return;
    }
    core.observers.tell(|observer| {
        if may_be_kept(core, observer, ino) {
            observer.inode_changed(ino, data);
        }
    });
}

/// A name was added, removed, or leads to another inode.
pub(crate) fn notify_entry(core: &Core, who: &Caller, dir: Ino, name: &[u8]) {
    if who.checked {
        return;
    }
    core.observers.tell(|observer| {
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
