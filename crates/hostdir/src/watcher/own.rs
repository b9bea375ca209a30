//! Events that operations under way are expected to cause.

use holdfast_core::types::Ino;
use rustix::fs::inotify::ReadFlags;

/// A directory and a name in it; an empty name is the directory itself.
pub(super) type Key = (Ino, Box<[u8]>);

/// Events of names; the rest is of inodes.
pub(super) const NAMES: ReadFlags = ReadFlags::CREATE
    .union(ReadFlags::DELETE)
    .union(ReadFlags::MOVED_FROM)
    .union(ReadFlags::MOVED_TO);
/// Expected events of a name or of its inode.
pub(super) struct Own {
    pub(super) key: Key,
    /// Events that are still expected.
    pub(super) causes: ReadFlags,
}

/// An operation in the queue.
pub(super) struct Owned {
    pub(super) id: u64,
    pub(super) own: Vec<Own>,
    pub(super) caused: Vec<(Key, ReadFlags)>,
}

impl Owned {
    /// May it have caused this event? An event of a name is then no longer expected.
    pub(super) fn causes(&mut self, key: &Key, what: ReadFlags) -> bool {
        // The type of the inode does not matter.
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
