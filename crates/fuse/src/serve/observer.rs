//! Changes made past the mount, for the kernel's caches.

use crate::Notifier;
use holdfast_core::{Observer, types::Ino};

/// Tells the kernel of every change that it did not ask for itself.
#[derive(Debug)]
pub struct KernelCaches {
    notifier: Notifier,
}

impl KernelCaches {
    /// An observer that speaks through `notifier`.
    #[must_use]
    pub fn new(notifier: Notifier) -> Self {
        Self { notifier }
    }
}

impl Observer for KernelCaches {
    fn inode_changed(&self, ino: Ino, data: bool) {
        // A negative offset leaves cached data alone.
        self.notifier
            .invalidate_inode(ino, if data { 0 } else { -1 }, 0);
    }

    fn entry_changed(&self, dir: Ino, name: &[u8]) {
        self.notifier.invalidate_entry(dir, name);
        // The directory's times, link count and cached listing. The kernel drops them by itself only where
        // it knew of the name.
        self.notifier.invalidate_inode(dir, 0, 0);
    }

    fn is_to_forget(&self, inodes: &[Ino]) {
        // An inode is mostly older than those below it, and goes after them.
        let mut youngest_first = inodes.to_vec();
        youngest_first.reverse();
        self.notifier.prune(&youngest_first);
    }
}
