//! Recognizing events that operations of this store cause.
//!
//! An operation begins, changes the host, and is *settled*: all available events are read, and
//! those that it may have caused are dropped. The operation then reads the attributes of its inode,
//! so events of content and attributes can be dropped even if others caused them before. It does
//! not read names. So each expected event of a name is dropped once, and a second one is another
//! process's. A failed operation reads nothing: all its events are passed on.

use holdfast_core::store::Operation;
use holdfast_core::types::{FileType, Ino};
use rustix::fs::inotify::ReadFlags;

use super::Watcher;
use super::own::{Own, Owned};
use crate::host::Host;

/// Events of a change of content or attributes.
const INODES: ReadFlags = ReadFlags::MODIFY
    .union(ReadFlags::ATTRIB)
    .union(ReadFlags::CLOSE_WRITE);

/// An operation under way, until this is dropped; the default one changes nothing.
#[derive(Default)]
pub(crate) struct OwnChange<'t>(Option<(&'t Watcher, u64)>);

impl OwnChange<'_> {
    /// The host was changed: what is read from now on includes the change.
    pub(crate) fn finish(&self) {
        let Some((watcher, id)) = self.0 else { return };
        let mut queue = watcher.queue.lock();
        if watcher.read(&mut queue).is_err() {
            queue.missed = true;
        }
        queue.own.retain(|own| own.id != id);
        let wakes = !queue.is_empty();
        drop(queue);
        if wakes {
            watcher.wake();
        }
    }
}

impl Drop for OwnChange<'_> {
    fn drop(&mut self) {
        let Some((watcher, id)) = self.0 else { return };
        let mut queue = watcher.queue.lock();
        let Some(at) = queue.own.iter().position(|own| own.id == id) else {
            return;
        };
        let failed = queue.own.swap_remove(at);
        let wakes = !failed.caused.is_empty();
        for (key, what) in failed.caused {
            queue.wait(key, what);
        }
        drop(queue);
        if wakes {
            watcher.wake();
        }
    }
}

impl Watcher {
    pub(super) fn begin(&self, own: Vec<Own>) -> OwnChange<'_> {
        let mut queue = self.queue.lock();
        queue.last += 1;
        let id = queue.last;
        queue.own.push(Owned {
            id,
            own,
            caused: Vec::new(),
        });
        OwnChange(Some((self, id)))
    }
}

impl Host {
    /// An operation begins.
    pub(crate) fn begin(&self, operation: &Operation<'_>) -> OwnChange<'_> {
        let Some(watcher) = &self.watcher else {
            return OwnChange(None);
        };
        let own = self.caused_by(operation);
        match own.is_empty() {
            true => OwnChange(None),
            false => watcher.begin(own),
        }
    }

    /// A written file is about to be closed, which causes an event.
    pub(crate) fn begin_close(&self, ino: Ino) -> OwnChange<'_> {
        match &self.watcher {
            Some(watcher) => watcher.begin(self.caused_at(ino, ReadFlags::CLOSE_WRITE)),
            None => OwnChange(None),
        }
    }

    fn caused_by(&self, operation: &Operation<'_>) -> Vec<Own> {
        let at = |dir: Ino, name: &[u8], names: ReadFlags| Own {
            key: (dir, name.into()),
            causes: names | INODES,
        };
        match *operation {
            Operation::Make { dir, name, .. } | Operation::Link { dir, name, .. } => {
                vec![at(dir, name, ReadFlags::CREATE)]
            }
            Operation::Remove { dir, name, .. } => vec![at(dir, name, ReadFlags::DELETE)],
            // Either name may be removed and added, because the two may be exchanged.
            Operation::Rename { from, to, .. } => {
                let names = ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO;
                vec![at(from.0, from.1, names), at(to.0, to.1, names)]
            }
            Operation::SetAttributes { ino, .. }
            | Operation::SetFlags { ino, .. }
            | Operation::Resize { ino, .. }
            | Operation::Write { ino, .. }
            | Operation::Allocate { ino, .. }
            | Operation::Copy { to: (ino, _), .. }
            | Operation::SetXattr { ino, .. }
            | Operation::RemoveXattr { ino, .. } => self.caused_at(ino, INODES),
            Operation::MakeUnnamed { .. } => Vec::new(),
        }
    }

    /// The keys of an inode's events: its name, and for a directory also itself.
    fn caused_at(&self, ino: Ino, causes: ReadFlags) -> Vec<Own> {
        let place = self.places.get(ino);
        let is_directory =
            (place.as_ref()).is_none_or(|place| place.is.kind == FileType::Directory);
        let mut own = Vec::with_capacity(2);
        own.extend(place.map(|place| Own {
            key: (place.parent, (*place.name).into()),
            causes,
        }));
        if is_directory {
            own.push(Own {
                key: (ino, [].into()),
                causes,
            });
        }
        own
    }
}
