//! Operations of this store that are under way. What they cause tells nothing new: their answers are of after it.
//!
//! An operation begins, changes the host, and is *settled*: all events are read that there are by then, and those that may be its own
//! are dropped. Of an inode it looks at the attributes from then on, so events of content and attributes are dropped that others caused by then.
//! Of a name it does not: each event of a name that it causes is dropped once, and a second one is another's. An operation that failed looks at
//! nothing: then all is passed on.

use holdfast_core::store::Operation;
use holdfast_core::types::{FileType, Ino};
use rustix::fs::inotify::ReadFlags;

use super::Told;
use super::event::Key;
use crate::host::Host;

/// Events of names; the rest is of what a name leads to.
const NAMES: ReadFlags = ReadFlags::CREATE
    .union(ReadFlags::DELETE)
    .union(ReadFlags::MOVED_FROM)
    .union(ReadFlags::MOVED_TO);
/// Events of an inode that is written or has its attributes changed.
const INODES: ReadFlags = ReadFlags::MODIFY
    .union(ReadFlags::ATTRIB)
    .union(ReadFlags::CLOSE_WRITE);

/// What an operation does to a name, or to what it leads to.
pub(super) struct Own {
    pub(super) key: Key,
    /// What is still to come.
    pub(super) causes: ReadFlags,
}

/// An operation as the queue knows it.
pub(super) struct Owned {
    id: u64,
    own: Vec<Own>,
    pub(super) caused: Vec<(Key, ReadFlags)>,
}

impl Owned {
    /// May it have caused this event? Then it causes that of a name no more.
    pub(super) fn causes(&mut self, key: &Key, what: ReadFlags) -> bool {
        // Whether it is a directory says nothing.
        let what = what.difference(ReadFlags::ISDIR);
        let own = self
            .own
            .iter_mut()
            .find(|own| own.key == *key && own.causes.contains(what));
        own.is_some_and(|own| {
            own.causes.remove(what & NAMES);
            true
        })
    }
}

/// An operation that is under way, as long as this is there.
pub(crate) struct OwnChange<'t>(Option<(&'t Told, u64)>);

impl OwnChange<'_> {
    /// None: nothing is changed.
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    /// The host is changed: what is looked at from now on has the change.
    pub(crate) fn settle(&self) {
        let Some((told, id)) = self.0 else { return };
        let mut queue = told.queue.lock();
        if told.read(&mut queue).is_err() {
            queue.missed = true;
        }
        queue.own.retain(|own| own.id != id);
        let wakes = !queue.is_empty();
        drop(queue);
        if wakes {
            told.wake();
        }
    }
}

impl Drop for OwnChange<'_> {
    fn drop(&mut self) {
        let Some((told, id)) = self.0 else { return };
        let mut queue = told.queue.lock();
        let Some(at) = queue.own.iter().position(|own| own.id == id) else {
            return;
        };
        let failed = queue.own.swap_remove(at);
        let wakes = !failed.caused.is_empty();
        for (key, what) in failed.caused {
            *queue.waiting.entry(key).or_insert(ReadFlags::empty()) |= what;
        }
        drop(queue);
        if wakes {
            told.wake();
        }
    }
}

impl Told {
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

    /// Has the thread look what waits.
    pub(super) fn wake(&self) {
        // Full: it is awake anyway.
        let _ = rustix::io::write(&self.wake, &[1; 8]);
    }
}

impl Host {
    /// An operation begins.
    pub(crate) fn begin(&self, operation: &Operation<'_>) -> OwnChange<'_> {
        let Some(told) = &self.told else {
            return OwnChange(None);
        };
        let own = self.caused_by(operation);
        match own.is_empty() {
            true => OwnChange(None),
            false => told.begin(own),
        }
    }

    /// A file that was written is about to be closed, of which the host tells those that listen.
    pub(crate) fn begin_close(&self, ino: Ino) -> OwnChange<'_> {
        match &self.told {
            Some(told) => told.begin(self.caused_at(ino, ReadFlags::CLOSE_WRITE)),
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
            // Two names are exchanged, or one is left: each may go, and each may come.
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
            Operation::MakeUnnamed { .. } | Operation::Sync { .. } | Operation::Flush { .. } => {
                Vec::new()
            }
        }
    }

    /// What changes of an inode are told by: its name, and a directory by itself as well.
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
