//! Who keeps caches of its own in front of the core, and must hear of changes.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use crate::FileSystem;
use crate::evictions::Evictions;
use crate::file_system::Core;
use crate::reclaim::Observed;
use crate::types::{Caller, Ino};

/// Told of changes that did not come through it: callers with [`Caller::checked`] are the
/// observer's own and are left out. Called without locks held, after the change.
pub trait Observer: Send + Sync {
    /// Attributes changed, and with `data` the content too.
    fn inode_changed(&self, ino: Ino, data: bool);
    /// A name appeared, went, or leads elsewhere.
    fn entry_changed(&self, dir: Ino, name: &[u8]);
    /// Any name may lead elsewhere by now.
    fn all_entries_changed(&self) {}
    /// Does it keep something only of the root, and of inodes of which it has turned a use into a number
    /// ([`Node::into_raw`](crate::Node::into_raw))? Then it is told of no others.
    ///
    /// It must take the use before it reads what it keeps, with a fence (`SeqCst`) in between: a later change of the inode finds
    /// the use.
    fn keeps_by_number(&self) -> bool {
        false
    }
    /// What is remembered of inodes that are not in memory, and of which it has uses by number, takes too much of that
    /// ([`Options::memory`](crate::Options::memory)): the observer had better give its uses of these back
    /// ([`FileSystem::forget`]), where it has no need of them.
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

impl Core {
    fn tell(&self, who: &Caller, what: impl FnOnce(&dyn Observer)) {
        if who.checked || !self.is_observed() {
            return;
        }
        self.tell_anyhow(what);
    }

    fn tell_anyhow(&self, what: impl FnOnce(&dyn Observer)) {
        let observer = self.observer.read().clone();
        if let Some(observer) = observer {
            what(&*observer);
        }
    }

    /// Has somebody uses of inodes who hears of what is to be forgotten?
    pub(crate) fn is_observed(&self) -> bool {
        self.observed.load(Ordering::Acquire)
    }

    /// Asks for inodes that are held for the observer.
    pub(crate) fn ask_back(&self, inodes: &[Ino]) {
        if !inodes.is_empty() {
            self.tell_anyhow(|observer| observer.is_to_forget(inodes));
        }
    }

    pub(crate) fn notify_inode(&self, who: &Caller, ino: Ino, data: bool) {
        self.tell(who, |observer| {
            if self.may_be_kept(observer, ino) {
                observer.inode_changed(ino, data);
            }
        });
    }

    /// Any name may lead elsewhere.
    pub(crate) fn tell_all(&self) {
        if self.is_observed() {
            self.tell_anyhow(|observer| observer.all_entries_changed());
        }
    }

    pub(crate) fn notify_entry(&self, who: &Caller, dir: Ino, name: &[u8]) {
        self.tell(who, |observer| {
            if self.may_be_kept(observer, dir) {
                observer.entry_changed(dir, name);
            }
        });
    }

    /// May the observer keep something of this inode, which has just changed?
    fn may_be_kept(&self, observer: &dyn Observer, ino: Ino) -> bool {
        if ino == Ino::ROOT || !observer.keeps_by_number() {
            return true;
        }
        // Pairs with the observer's fence: it read what was changed, or its use is seen here.
        fence(Ordering::SeqCst);
        self.evictions.may_be_held(&self.index, ino)
    }
}

impl Observed for Core {
    fn evictions(&self) -> &Evictions {
        &self.evictions
    }

    fn memory_limit(&self) -> u64 {
        self.reclaim.memory.limit()
    }

    fn is_observed(&self) -> bool {
        Self::is_observed(self)
    }

    fn ask_back(&self, inodes: &[Ino]) {
        Self::ask_back(self, inodes);
    }
}
