//! Invalidates the kernel's caches after changes made past the mount.

use crate::Notifier;
use holdfast_core::{Observer, types::Ino};

/// Notifies the kernel of every change that it did not request.
#[derive(Debug)]
pub struct KernelCaches {
    notifier: Notifier,
}

impl KernelCaches {
    /// An observer that sends by `notifier`.
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
        // The directory's times, link count and cached listing: the kernel drops these itself only
        // if it had the name cached.
        self.notifier.invalidate_inode(dir, 0, 0);
    }

    fn all_entries_changed(&self) {
        self.notifier.expire_all_entries();
    }

    /// The kernel holds references by inode number ([`CoreOperations`](super::CoreOperations)).
    fn keeps_by_number(&self) -> bool {
        true
    }

    fn is_to_forget(&self, inodes: &[Ino]) {
        // Inodes are mostly older than their children, and the kernel can drop a parent only after
        // these.
        let mut youngest_first = inodes.to_vec();
        youngest_first.sort_unstable_by(|one, other| other.cmp(one));
        self.notifier.prune(&youngest_first);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, Notifier, Operations, serve::CoreOperations};
    use holdfast_core::{
        FileSystem, MemoryLimits, Options,
        types::{Caller, FileType, OpenFlags},
    };

    #[test]
    fn the_kernel_is_told_once_of_what_it_knows_and_not_of_what_it_cannot_know() {
        let fs = FileSystem::memory(MemoryLimits::default(), Options::default());
        let notifier = Notifier::new();
        let operations = CoreOperations::new(fs.clone(), &Config::default(), notifier.clone());
        let who = Caller::root();
        let dir = fs.mkdir(&who, &fs.root(), b"d", 0o755).unwrap();
        // The root is known without a reference: its name, and its attributes.
        assert_eq!(notifier.waiting(), 2);
        let make = |name: &[u8]| {
            fs.mknod(&who, &dir, name, FileType::Regular, 0o644, 0)
                .unwrap()
        };
        let file = make(b"file");
        let open = fs.open(&who, &file, OpenFlags::READ_WRITE).unwrap();
        fs.write(&who, &open, 0, b"content").unwrap();
        assert_eq!(notifier.waiting(), 2, "nobody knows the directory");
        // As LOOKUP does: from now on each change is notified, and once while a notification is
        // queued.
        operations.give(&dir);
        make(b"other");
        assert_eq!(notifier.waiting(), 4);
        make(b"third");
        assert_eq!(
            notifier.waiting(),
            5,
            "the directory's attributes wait already"
        );
        operations.give(&file);
        for _ in 0..3 {
            fs.write(&who, &open, 0, b"content").unwrap();
        }
        assert_eq!(notifier.waiting(), 6);
        // What the kernel forgot it does not keep.
        fs.forget(file.ino(), 1);
        fs.forget(dir.ino(), 1);
        fs.write(&who, &open, 8, b"content").unwrap();
        make(b"fourth");
        assert_eq!(notifier.waiting(), 6);
        drop(open);
        operations.destroy();
    }
}
