//! Changes that a store tells of: what it told before is in doubt, and an observer is told.

use std::sync::{Arc, Weak};

use super::SharedStore;
use crate::file_system::Core;
use crate::inode::Inode;
use crate::node::Node;
use crate::store::Changes;
use crate::types::{Caller, Ino};

impl Core {
    /// From now on a store that others change tells of that.
    pub(crate) fn hear_of_changes(self: &Arc<Self>) {
        if let Some(shared) = self.shared().filter(|it| it.coherence.is_dated()) {
            let above = Arc::downgrade(self) as Weak<dyn Changes>;
            shared.attach(above);
        }
    }

    fn doubt(&self, shared: SharedStore<'_>, ino: Ino, content: bool) {
        shared.coherence.doubt(ino, shared.now());
        // A kernel that shows pages by a mapping asks for no attributes: the pages go now.
        self.notify_inode(&Caller::root(), ino, content);
    }
}

impl Changes for Core {
    fn inode(&self, ino: Ino, content: bool) {
        if let Some(shared) = self.shared() {
            self.doubt(shared, ino, content);
        }
    }

    fn entry(&self, dir: Ino, name: &[u8]) {
        let Some(shared) = self.shared() else { return };
        shared.coherence.doubt(dir, shared.now());
        if let Some(node) = self.index.get(dir.0).map(Node::new) {
            // It may have lost this name, or another is its only one now.
            if let Some(child) = known_child(node.inode(), name) {
                self.doubt(shared, child, false);
            }
            self.put(node);
        }
        self.notify_entry(&Caller::root(), dir, name);
    }

    fn all(&self) {
        let Some(shared) = self.shared() else { return };
        let known = shared.coherence.doubt_all(shared.now());
        self.tell_all();
        for ino in known {
            self.notify_inode(&Caller::root(), ino, true);
        }
    }
}

/// What a name led to when it was told last.
fn known_child(dir: &Inode, name: &[u8]) -> Option<Ino> {
    let body = dir.directory().ok()?;
    let entry = body.names.find_in_catalog(name)?;
    Some(entry.ino)
}
