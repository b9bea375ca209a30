//! FUSE passthrough: which inodes the kernel reads and writes itself, and by which registration.
//!
//! # Invariants
//! All concurrent opens of an inode have one mode and one registration; the kernel fails any other
//! open with `EIO`. The kernel leaves the mode before it sends RELEASE, so `Open::opens` is at
//! least the number of opens that the kernel counts. The first open chooses the mode, and later
//! opens follow it until the last RELEASE.
//!
//! While the kernel can write an inode itself, the core trusts no cached state of it
//! ([`FileSystem::begin_bypass`]). The kernel drops its own pages of a file at each passthrough
//! open, and has none until the last of these ends.
//!
//! # Locking
//! A shard is never locked during a call to the host or to the kernel. The core is told of the
//! start and the end of a bypass with the shard locked, so these calls are ordered.

use crate::{Config, KeptContent, Passthrough, session::BackingFiles};
use holdfast_core::{
    FileSystem, Node, OpenFile,
    types::{Errno, FileType, Ino},
};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

/// A file of so many bytes is large: what it costs to register it is saved by its first reads.
const LARGE: u64 = 1 << 20;
const SHARDS: usize = 16;

/// An inode that is open.
struct Open {
    /// Its registration; `None`: its requests come here.
    backing: Option<i32>,
    opens: u32,
    /// Of them those for writing.
    writers: u32,
}

/// The files of a mount that are open, if the kernel may read and write some of them by itself.
pub(super) struct Backings {
    /// Files of at least this size when opened are passed through; `None`: no files.
    least: Option<u64>,
    /// Once the kernel has said that it can.
    files: OnceLock<BackingFiles>,
    /// The host's files turned out not to be such as the kernel takes.
    refused: AtomicBool,
    /// Inodes that the kernel writes itself. While it is 0, no shard is locked.
    written: AtomicUsize,
    open: [Mutex<HashMap<Ino, Open>>; SHARDS],
}

impl Backings {
    pub(super) fn new(fs: &FileSystem, config: &Config) -> Self {
        let seen = fs.options().read_only || fs.sees_bypass();
        let least = match config.passthrough {
            Passthrough::Off => None,
            Passthrough::Auto if config.content != KeptContent::Mapped => Some(LARGE),
            Passthrough::Auto | Passthrough::All => Some(0),
        };
        Self {
            least: least.filter(|_| seen),
            files: OnceLock::new(),
            refused: AtomicBool::new(false),
            written: AtomicUsize::new(0),
            open: Default::default(),
        }
    }

    /// The kernel takes files.
    pub(super) fn can_register(&self, files: BackingFiles) {
        // There is one session.
        let _ = self.files.set(files);
    }

    /// The shard of an inode, if its opens are counted.
    fn shard(&self, node: &Node) -> Option<&Mutex<HashMap<Ino, Open>>> {
        let counts = self.least.is_some() && self.files.get().is_some();
        (counts && node.kind() == FileType::Regular).then(|| self.shard_of(node.ino()))
    }

    fn shard_of(&self, ino: Ino) -> &Mutex<HashMap<Ino, Open>> {
        &self.open[ino.0 as usize % SHARDS]
    }

    /// Should the file be passed through, if it is not open yet?
    fn wants(&self, fs: &FileSystem, file: &OpenFile) -> bool {
        // Relaxed: a thread that sees it late is refused once more.
        if self.refused.load(Ordering::Relaxed) {
            return false;
        }
        let is_large = |least| least == 0 || fs.getattr(file.node()).size >= least;
        self.least.is_some_and(is_large)
    }

    /// A file was opened; gives the registration by which the kernel is to read and write it.
    pub(super) fn opened(&self, fs: &FileSystem, file: &OpenFile) -> Option<i32> {
        let (node, writes) = (file.node(), file.flags().writable());
        let shard = self.shard(node)?;
        if let Some(open) = shard.lock().get_mut(&node.ino()) {
            self.join(fs, node, open, writes);
            return open.backing;
        }
        let own = self.wants(fs, file).then(|| self.register(fs, node));
        let own = own.flatten();
        let mut shard = shard.lock();
        let open = shard.entry(node.ino()).or_insert(Open {
            backing: own,
            opens: 0,
            writers: 0,
        });
        self.join(fs, node, open, writes);
        let backing = open.backing;
        drop(shard);
        if let (Some(own), true) = (own, own != backing) {
            // Another thread registered the inode first.
            self.unregister(own);
        }
        backing
    }

    fn join(&self, fs: &FileSystem, node: &Node, open: &mut Open, writes: bool) {
        open.opens += 1;
        if writes {
            open.writers += 1;
            if open.writers == 1 && open.backing.is_some() {
                fs.begin_bypass(node);
                self.written.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// A file that was opened was released.
    pub(super) fn released(&self, fs: &FileSystem, file: &OpenFile) {
        let (node, writes) = (file.node(), file.flags().writable());
        let Some(shard) = self.shard(node) else {
            return;
        };
        let mut shard = shard.lock();
        let Some(open) = shard.get_mut(&node.ino()) else {
            return;
        };
        open.opens -= 1;
        if writes {
            open.writers -= 1;
            if open.writers == 0 && open.backing.is_some() {
                fs.end_bypass(node);
                self.written.fetch_sub(1, Ordering::Relaxed);
            }
        }
        if open.opens == 0 {
            let backing = open.backing;
            shard.remove(&node.ino());
            drop(shard);
            if let Some(backing) = backing {
                self.unregister(backing);
            }
        }
    }

    /// Is an inode written by the kernel?
    pub(super) fn is_written(&self, ino: Ino) -> bool {
        // Relaxed: `written` was incremented before the open was answered, and a request that
        // depends on a write through that open follows the answer.
        if self.written.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let shard = self.shard_of(ino).lock();
        shard
            .get(&ino)
            .is_some_and(|open| open.backing.is_some() && open.writers > 0)
    }

    fn register(&self, fs: &FileSystem, node: &Node) -> Option<i32> {
        let files = self.files.get()?;
        let mut registered = Err(Errno::EOPNOTSUPP);
        let shown = fs.with_backing(node, &mut |file| registered = files.register(file));
        match shown.and(registered) {
            Ok(number) => Some(number),
            Err(error) => {
                let refused = [Errno::EPERM, Errno::ELOOP, Errno::EOPNOTSUPP, Errno::EINVAL];
                if refused.contains(&error) && !self.refused.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%error, "the kernel does not pass files of this host through");
                }
                None
            }
        }
    }

    fn unregister(&self, number: i32) {
        if let Some(files) = self.files.get() {
            files.unregister(number);
        }
    }
}
