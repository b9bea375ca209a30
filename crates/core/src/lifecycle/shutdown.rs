//! Unmount by several threads.

use holdfast_sync::Remains;
use std::fmt;
use std::sync::Arc;

use crate::FileSystem;
use crate::core::Core;
use crate::inode::Object;
use crate::inodes::evict::free_unreachable;

/// A file system without handles, of which the inodes are being freed.
///
/// The drop of the last handle does all of it, with threads of its own if there are very many
/// inodes. A program that has threads of its own can let them [help](Self::help).
#[must_use = "dropping it lets this thread do it all"]
pub struct Shutdown(Option<Rest>);

/// The remaining parts, in the order in which they are dropped.
struct Rest {
    inodes: Remains<Object>,
    _core: Core,
}

impl FileSystem {
    /// Ends the file system; this is its last handle. Nothing is made durable: see
    /// [`close`](Self::close). Nodes and files that are still held live on, as they do when the
    /// last handle is dropped.
    ///
    /// # Errors
    /// The handle, if there are others.
    pub fn shut_down(self) -> Result<Shutdown, Self> {
        let Self { core, route } = self;
        match Arc::try_unwrap(route) {
            Err(route) => Err(Self { core, route }),
            Ok(route) => {
                drop(route);
                // If an operation still holds a reference, its drop frees the core.
                Ok(Shutdown(Arc::into_inner(core).map(Rest::of)))
            }
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        free_unreachable(self);
    }
}

impl Rest {
    fn of(mut core: Core) -> Self {
        free_unreachable(&core);
        Self {
            inodes: core.index.take_remains(),
            _core: core,
        }
    }
}

impl Shutdown {
    /// Frees inodes until none is left for this thread; returns their number. The file system has
    /// ended when all helpers have returned and this was dropped.
    pub fn help(&self) -> u64 {
        self.0.as_ref().map_or(0, |rest| rest.inodes.help())
    }
}

impl fmt::Debug for Shutdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shutdown").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Caller, OpenFlags};
    use crate::{MemoryLimits, Options};
    use std::thread;

    fn with_files(count: u64) -> FileSystem {
        let fs = FileSystem::memory(MemoryLimits::default(), Options::default());
        let make = &|part: u64| {
            let flags = OpenFlags::CREATE | OpenFlags::WRITE_ONLY;
            for number in 0..count {
                let name = format!("{part}-{number}");
                fs.open_at(&Caller::root(), &fs.root(), name.as_bytes(), flags, 0o644)
                    .unwrap();
            }
        };
        thread::scope(|scope| {
            let makers: Vec<_> = (0..3).map(|part| scope.spawn(move || make(part))).collect();
            // Joined explicitly: sanitizers do not see how a scope waits.
            makers.into_iter().for_each(|it| it.join().unwrap());
        });
        fs
    }

    #[test]
    fn what_nobody_helps_with_goes_with_it_and_what_is_held_lives_on() {
        let fs = with_files(1000);
        let who = Caller::root();
        let node = fs.resolve(&who, &fs.root(), b"1-7", true).unwrap();
        let file = fs
            .open_at(&who, &fs.root(), b"2-8", OpenFlags::READ_WRITE, 0)
            .unwrap();
        fs.write(&who, &file, 0, b"kept").unwrap();
        drop(fs.shut_down().expect("the only handle"));
        assert_eq!(node.inode().meta().nlink, 1);
        assert_eq!(file.node().inode().size(), 4);
    }

    #[test]
    fn another_handle_keeps_it() {
        let fs = with_files(10);
        let other = fs.clone();
        let fs = fs.shut_down().expect_err("there is another");
        drop(other);
        assert_eq!(fs.stats().inodes, 31);
        assert_eq!(fs.shut_down().expect("the only handle").help(), 31);
    }
}
