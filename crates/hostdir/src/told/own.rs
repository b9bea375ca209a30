//! Operations of this store that are under way. What they cause tells nothing new: their answers are of after it.
//!
//! An operation begins, changes the host, and is *settled*: all events are read that there are by then, and those that may be its own
//! are dropped. What others did to the same names by then is dropped with them, and is in what the operation looks at from then on. One that failed
//! looks at nothing: then all is passed on.

use holdfast_core::store::Operation;
use holdfast_core::types::{FileType, Ino};
use rustix::fs::inotify::ReadFlags;

use super::Told;
use super::event::Key;
use crate::host::Host;

/// An operation as the queue knows it.
pub(super) struct Owned {
    id: u64,
    keys: Vec<Key>,
    /// What it does to them. `None`: anything.
    only: Option<ReadFlags>,
    pub(super) caused: Vec<(Key, ReadFlags)>,
}

impl Owned {
    pub(super) fn causes(&self, key: &Key, what: ReadFlags) -> bool {
        let of_kind = self.only.is_none_or(|only| only.contains(what));
        of_kind && self.keys.contains(key)
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
    pub(super) fn begin(&self, keys: Vec<Key>, only: Option<ReadFlags>) -> OwnChange<'_> {
        let mut queue = self.queue.lock();
        queue.last += 1;
        let id = queue.last;
        queue.own.push(Owned {
            id,
            keys,
            only,
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
        let keys = self.keys(operation);
        match keys.is_empty() {
            true => OwnChange(None),
            false => told.begin(keys, None),
        }
    }

    /// A file that was written is about to be closed, of which the host tells those that listen.
    pub(crate) fn begin_close(&self, ino: Ino) -> OwnChange<'_> {
        match &self.told {
            Some(told) => told.begin(self.keys_of(ino), Some(ReadFlags::CLOSE_WRITE)),
            None => OwnChange(None),
        }
    }

    fn keys(&self, operation: &Operation<'_>) -> Vec<Key> {
        match *operation {
            Operation::Make { dir, name, .. }
            | Operation::Link { dir, name, .. }
            | Operation::Remove { dir, name, .. } => vec![(dir, name.into())],
            Operation::Rename { from, to, .. } => {
                vec![(from.0, from.1.into()), (to.0, to.1.into())]
            }
            Operation::SetAttributes { ino, .. }
            | Operation::SetFlags { ino, .. }
            | Operation::Resize { ino, .. }
            | Operation::Write { ino, .. }
            | Operation::Allocate { ino, .. }
            | Operation::Copy { to: (ino, _), .. }
            | Operation::SetXattr { ino, .. }
            | Operation::RemoveXattr { ino, .. } => self.keys_of(ino),
            Operation::MakeUnnamed { .. } | Operation::Sync { .. } | Operation::Flush { .. } => {
                Vec::new()
            }
        }
    }

    /// What changes of an inode are told by: its name, and a directory by itself as well.
    fn keys_of(&self, ino: Ino) -> Vec<Key> {
        let place = self.places.get(ino);
        let is_directory =
            (place.as_ref()).is_none_or(|place| place.is.kind == FileType::Directory);
        let mut keys = Vec::with_capacity(2);
        keys.extend(place.map(|place| (place.parent, (*place.name).into())));
        if is_directory {
            keys.push((ino, [].into()));
        }
        keys
    }
}
