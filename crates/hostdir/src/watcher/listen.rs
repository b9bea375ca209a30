//! Which directories are watched.

use holdfast_core::types::{FileType, Ino};

use crate::host::Host;

impl Host {
    /// Watches an inode, and the content of a directory, as far as possible.
    pub(crate) fn listen(&self, ino: Ino) {
        let Some(watcher) = &self.watcher else { return };
        let Some((dir, parent)) = self.directory_of(ino) else {
            return;
        };
        for dir in [parent, dir] {
            if !watcher.is_watched(dir, None)
                && let Ok(open) = self.opened(dir)
            {
                watcher.watch(dir, open.get(self));
            }
        }
    }

    /// The directory that the inode is or is in, and the parent of that.
    fn directory_of(&self, ino: Ino) -> Option<(Ino, Ino)> {
        if ino == Ino::ROOT {
            return Some((ino, ino));
        }
        let place = self.places.get(ino)?;
        match place.is.kind {
            FileType::Directory => Some((ino, place.parent)),
            _ if place.parent == Ino::ROOT => Some((Ino::ROOT, Ino::ROOT)),
            _ => Some((place.parent, self.places.get(place.parent)?.parent)),
        }
    }
}
