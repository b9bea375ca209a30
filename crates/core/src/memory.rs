//! The memory store: nothing below, everything the core holds is pinned.
//!
//! It only keeps the limits, like the `size` and `nr_inodes` options of tmpfs. Without a limit a
//! reservation touches no shared line: usage is counted by thread and summed when asked.

use holdfast_cache::{PAGE_SIZE, Space as _, SpacePool};

use crate::store::{
    Change, EntryRecord, Guarantees, InodeRecord, Space, SpaceReport, Stamp, Store, XattrList,
};
use crate::types::{Errno, Ino, Result};

/// Limits of a memory store; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Bytes of file content, rounded down to pages of 4 KiB.
    pub bytes: Option<u64>,
    /// Inodes, the root included.
    pub inodes: Option<u64>,
}

/// The store of `mem:`. Its content is what the core holds, and goes with it.
pub struct MemoryStore {
    pages: SpacePool,
    inodes: SpacePool,
}

impl MemoryStore {
    /// A store with these limits.
    #[must_use]
    pub fn new(limits: MemoryLimits) -> Self {
        Self {
            pages: SpacePool::new(limits.bytes.map(|bytes| bytes / PAGE_SIZE as u64)),
            inodes: SpacePool::new(limits.inodes),
        }
    }
}

impl Store for MemoryStore {
    fn guarantees(&self) -> Guarantees {
        Guarantees {
            pinned: true,
            exclusive: true,
            durable: false,
            blocks: false,
            frees: false,
        }
    }

    fn load_inodes(&self, _inos: &[Ino], _found: &mut Vec<InodeRecord>) -> Result<()> {
        Ok(())
    }

    fn load_target(&self, _ino: Ino) -> Result<Box<[u8]>> {
        Err(Errno::ESTALE)
    }

    fn load_xattrs(&self, _ino: Ino) -> Result<XattrList> {
        Ok(Vec::new())
    }

    fn lookup(&self, _dir: Ino, _name: &[u8]) -> Result<Option<EntryRecord>> {
        Ok(None)
    }

    fn read_entries(
        &self,
        _dir: Ino,
        _after: u64,
        _max: usize,
        _run: &mut Vec<(EntryRecord, InodeRecord)>,
    ) -> Result<()> {
        Ok(())
    }

    fn next_data(&self, _ino: Ino, _offset: u64) -> Result<Option<(u64, u64)>> {
        Ok(None)
    }

    fn read_data(&self, _ino: Ino, _offset: u64, buf: &mut [u8]) -> Result<()> {
        buf.fill(0);
        Ok(())
    }

    fn reserve(&self, space: Space) -> Result<()> {
        if space.pages > 0 {
            self.pages.reserve(space.pages)?;
        }
        if space.inodes > 0
            && let Err(full) = self.inodes.reserve(space.inodes)
        {
            self.pages.release(space.pages);
            return Err(full);
        }
        Ok(())
    }

    fn release(&self, space: Space) {
        if space.pages > 0 {
            self.pages.release(space.pages);
        }
        if space.inodes > 0 {
            self.inodes.release(space.inodes);
        }
    }

    fn apply(&self, _batch: &[Change<'_>]) -> Result<Stamp> {
        Ok(Stamp::default())
    }

    fn commit(&self, _upto: Option<Stamp>) -> Result<()> {
        Ok(())
    }

    fn walk(&self, _after: Ino, _max: usize, _run: &mut Vec<InodeRecord>) -> Result<()> {
        Ok(())
    }

    fn next_cookie(&self, _dir: Ino) -> Result<u64> {
        Ok(0)
    }

    fn last_ino(&self) -> Result<Ino> {
        Ok(Ino(0))
    }

    fn space(&self) -> Result<SpaceReport> {
        Ok(SpaceReport {
            pages: self.pages.limit(),
            pages_used: self.pages.used(),
            inodes: self.inodes.limit(),
            inodes_used: self.inodes.used(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_is_all_or_nothing() {
        let store = MemoryStore::new(MemoryLimits {
            bytes: Some(3 * 4096 + 1),
            inodes: Some(1),
        });
        assert_eq!(
            store.reserve(Space {
                pages: 1,
                inodes: 1
            }),
            Ok(())
        );
        assert_eq!(
            store.reserve(Space {
                pages: 1,
                inodes: 1
            }),
            Err(Errno::ENOSPC)
        );
        assert_eq!(store.space().map(|space| space.pages_used), Ok(1));
        assert_eq!(
            store.reserve(Space {
                pages: 3,
                inodes: 0
            }),
            Err(Errno::ENOSPC)
        );
        assert_eq!(
            store.reserve(Space {
                pages: 2,
                inodes: 0
            }),
            Ok(())
        );
        store.release(Space {
            pages: 3,
            inodes: 1,
        });
        let space = store.space().unwrap();
        assert_eq!((space.pages_used, space.inodes_used), (0, 0));
    }

    #[test]
    fn without_limits_usage_is_still_told() {
        let store = MemoryStore::new(MemoryLimits::default());
        assert_eq!(
            store.reserve(Space {
                pages: u64::from(u32::MAX),
                inodes: 5
            }),
            Ok(())
        );
        let space = store.space().unwrap();
        assert_eq!((space.pages, space.inodes_used), (None, 5));
    }
}
