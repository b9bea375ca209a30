//! Notifications of changes by others: they invalidate cached answers, and are passed on to the
//! observer.

use std::sync::{Arc, Weak};

use super::shared_store::SharedStore;
use crate::core::Core;
use crate::inode::Inode;
use crate::inodes::free::put_node;
use crate::node::Node;
use crate::notify::{notify_entry, notify_inode};
use crate::store::Changes;
use crate::types::{Caller, Errno, Ino};
use holdfast_sync::epoch;

/// Subscribes to the notifications of a store that others change.
pub(crate) fn hear_of_changes(core: &Arc<Core>) {
    if let Some(shared) = core.shared().filter(|it| it.coherence.is_dated()) {
        let above = Arc::downgrade(core) as Weak<dyn Changes>;
        shared.attach(above);
    }
}

fn invalidate(core: &Core, shared: SharedStore<'_>, ino: Ino, content: bool) {
    shared.coherence.invalidate(ino, shared.now());
    // A kernel that serves pages through a mapping asks for no attributes: its pages are
    // dropped now.
    notify_inode(core, &Caller::root(), ino, content);
}

impl Changes for Core {
    fn inode(&self, ino: Ino, content: bool) {
        if let Some(shared) = self.shared() {
            invalidate(self, shared, ino, content);
        }
    }

    fn entry(&self, dir: Ino, name: &[u8]) {
        let Some(shared) = self.shared() else { return };
        shared.coherence.invalidate(dir, shared.now());
        if let Some(node) = self.index.get(dir.0).map(Node::new) {
            // The inode may have lost this name, or another name may be its only one now.
            if let Some(child) = known_child(node.inode(), name) {
                invalidate(self, shared, child, false);
            }
            put_node(self, node);
        }
        notify_entry(self, &Caller::root(), dir, name);
    }

    fn all(&self) {
        let Some(shared) = self.shared() else { return };
        let known = shared.coherence.invalidate_all(shared.now());
        self.observers
            .tell(|observer| observer.all_entries_changed());
        for ino in known {
            notify_inode(self, &Caller::root(), ino, true);
        }
    }

    fn knows(&self, ino: Ino) -> bool {
        let is_used = |inode: &Inode| inode.may_be_used();
        let inode = self.index.peek(ino.0, &epoch::pin()).map(is_used);
        inode == Some(true) || self.evictions.may_be_held(&self.index, ino)
    }

    fn lost(&self, ino: Ino, reason: Errno) {
        let Some(shared) = self.shared() else { return };
        // Referenced, so that its eviction forgets the loss.
        if let Some(node) = self.index.get(ino.0).map(Node::new) {
            shared.coherence.losses.note(ino, reason);
            put_node(self, node);
        }
        invalidate(self, shared, ino, true);
    }
}

/// The inode that a cached name leads to.
fn known_child(dir: &Inode, name: &[u8]) -> Option<Ino> {
    let body = dir.directory().ok()?;
    let entry = body.names.find_cached(name)?;
    Some(entry.ino)
}
