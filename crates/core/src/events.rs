//! Notifying watchers.

use holdfast_sync::epoch;

use crate::FileSystem;
use crate::core::Core;
use crate::directory::Residency;
use crate::inode::{Inode, Numbered as _};
use crate::node::Node;
use crate::store::NameRun;
use crate::types::{Errno, Ino, Result};
use crate::watch::{EventMask, Watch};

impl FileSystem {
    /// Watches an inode: a directory's watch also reports events of the files in it, by name.
    ///
    /// An event of a file reaches the watch of the directory in which it got its latest name.
    /// Operations that a front end's kernel serves from its own cache cause no event.
    ///
    /// # Errors
    /// `EINVAL` for a mask without an event.
    pub fn watch(&self, node: &Node, mask: EventMask) -> Result<Watch> {
        if !mask.intersects(EventMask::ALL_EVENTS) {
            return Err(Errno::EINVAL);
        }
        self.core.alive()?;
        self.core.registration.place().watch();
        self.core.policy.watched();
        let watch = self.core.watches.add(node.ino(), mask);
        // `Watches` is released after the file system is marked dead. Either the release covered
        // this watch, or the mark is visible here.
        self.core.alive()?;
        Ok(watch)
    }
}

/// Notifies the watchers of an inode, and those of the directory of its latest name. The caller
/// holds no lock of that directory.
#[inline]
pub(crate) fn notify_event(core: &Core, inode: &Inode, mask: EventMask) {
    if core.watches.is_used() {
        notify_watchers(core, inode, mask);
    }
}

#[inline(never)]
fn notify_watchers(core: &Core, inode: &Inode, mask: EventMask) {
    let mask = if inode.kind().is_dir() {
        mask | EventMask::ISDIR
    } else {
        mask
    };
    core.watches.notify(inode.ino(), mask, None, 0);
    let (dir, cookie) = inode.meta().home;
    if !core.watches.is_watched(dir) {
        return;
    }
    {
        let guard = epoch::pin();
        let Some(dir) = core.index.peek(dir.0, &guard) else {
            return;
        };
        let Ok(body) = dir.directory() else { return };
        if matches!(body.names.place(), Residency::Whole | Residency::Dated) {
            body.names.with_cookie(cookie, |name, entry| {
                if entry.ino == inode.ino() {
                    core.watches.notify(dir.ino(), mask, Some(name), 0);
                }
            });
            return;
        }
    }
    notify_watchers_of_stored(core, inode, mask, dir, cookie);
}

/// As [`notify_watchers`], for a directory that is not in memory as a
/// whole.
#[cold]
fn notify_watchers_of_stored(core: &Core, inode: &Inode, mask: EventMask, dir: Ino, cookie: u64) {
    let Some(before) = cookie.checked_sub(1) else {
        return;
    };
    let mut run = NameRun::default();
    // If the name cannot be read, the directory's watchers get no event.
    if core.store.read_names(dir, before, 1, &mut run).is_ok()
        && let Some(entry) = run.iter().next()
        && (entry.cookie, entry.ino) == (cookie, inode.ino())
    {
        core.watches.notify(dir, mask, Some(entry.name), 0);
    }
}

/// Notifies the watchers of a directory of an event of a name in it.
pub(crate) fn notify_name(
    core: &Core,
    dir: Ino,
    mask: EventMask,
    name: &[u8],
    of_dir: bool,
    cookie: u32,
) {
    if core.watches.is_watched(dir) {
        let mask = if of_dir {
            mask | EventMask::ISDIR
        } else {
            mask
        };
        core.watches.notify(dir, mask, Some(name), cookie);
    }
}
