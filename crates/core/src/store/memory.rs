//! The memory store: nothing is behind it, and everything that the core holds is pinned. It takes
//! the changes of each operation as any store that is written behind, and counts what they need.
//!
//! It only enforces limits, like the `size` and `nr_inodes` options of tmpfs: content counts by
//! pages, and names, extended attributes and targets of links by bytes. Without a limit a
//! reservation writes no shared cache line: usage is counted by thread and summed on demand.
//!
//! Reserved pages count as used at once, and are freed by [`Behind::release`]: the page cache
//! completes their account. All else that was reserved and not used goes back with the reservation.

use std::sync::Arc;

use holdfast_cache::{PAGE_SIZE, Space as _, SpacePool};

use super::{
    Behind, Change, Class, EntryRecord, Grant, Guarantees, InodeRecord, Intent, Lsn, NameRun, Rest,
    Space, SpaceReport, SpaceRun, Store, Writes, kept_bytes,
};
use crate::types::{Errno, Ino, Result};

/// Bytes that a thread takes from the pool beyond its request.
const BATCH: u64 = 1 << 20;

/// Limits of a memory store; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Bytes of names and values, and of content by pages of 4 KiB.
    pub bytes: Option<u64>,
    /// Inodes, the root included.
    pub inodes: Option<u64>,
}

/// The store of `mem:`. Its content is what the core holds, and goes with it.
pub struct MemoryStore {
    bytes: SpacePool,
    inodes: SpacePool,
}

impl MemoryStore {
    /// A store with these limits.
    #[must_use]
    pub fn new(limits: MemoryLimits) -> Self {
        Self {
            bytes: SpacePool::with_batch(limits.bytes, BATCH),
            inodes: SpacePool::new(limits.inodes),
        }
    }
}

impl Store for MemoryStore {
    fn guarantees(&self) -> Guarantees {
        Guarantees {
            pinned: true,
            blocks: false,
            small: 0,
            frees: false,
        }
    }

    fn writes(self: Arc<Self>) -> Writes {
        Writes::Behind(self)
    }

    fn load_inodes(&self, _inos: &[Ino], _found: &mut Vec<InodeRecord>) -> Result<()> {
        Ok(())
    }

    fn load_rests(&self, records: &[InodeRecord], _found: &mut Vec<Rest>) -> Result<()> {
        match records {
            [] => Ok(()),
            _ => Err(Errno::ESTALE),
        }
    }

    fn look_up(
        &self,
        _dir: Ino,
        names: &[&[u8]],
        found: &mut Vec<Option<(EntryRecord, Option<InodeRecord>)>>,
    ) -> Result<()> {
        found.extend(names.iter().map(|_| None));
        Ok(())
    }

    fn read_names(&self, _dir: Ino, _after: u64, _max: usize, _run: &mut NameRun) -> Result<()> {
        Ok(())
    }

    fn end_cookie(&self, _dir: Ino) -> Result<u64> {
        Ok(0)
    }

    fn next_space(&self, _ino: Ino, _offset: u64) -> Result<Option<SpaceRun>> {
        Ok(None)
    }

    fn read_data(&self, _ino: Ino, _offset: u64, buf: &mut [u8]) -> Result<()> {
        buf.fill(0);
        Ok(())
    }

    fn space(&self) -> Result<SpaceReport> {
        let page = PAGE_SIZE as u64;
        let pages = self.bytes.limit().map(|bytes| bytes / page);
        Ok(SpaceReport {
            pages,
            // The rest of a page is not free: no file can get a page of it.
            pages_reserved: 0,
            pages_used: match pages {
                Some(pages) => pages.saturating_sub(self.bytes.free() / page),
                None => self.bytes.used() / page,
            },
            inodes: self.inodes.limit(),
            inodes_used: self.inodes.used(),
        })
    }

    fn commit(&self, _upto: Option<Lsn>) -> Result<()> {
        Ok(())
    }
}

impl Behind for MemoryStore {
    fn reserve(&self, intent: &Intent) -> Result<Grant> {
        let held = Grant {
            inodes: intent.inodes,
            // What replaces something takes its place.
            kept: match intent.class {
                Class::Growing => intent.kept(),
                _ => 0,
            },
            ..Grant::NONE
        };
        let bytes = intent.pages * PAGE_SIZE as u64 + held.kept;
        if bytes > 0 {
            self.bytes.reserve(bytes)?;
        }
        if held.inodes > 0
            && let Err(full) = self.inodes.reserve(held.inodes)
        {
            self.bytes.release(bytes);
            return Err(full);
        }
        Ok(held)
    }

    fn give_back(&self, held: Grant) {
        self.release(held.space());
    }

    fn release(&self, space: Space) {
        let bytes = space.pages * PAGE_SIZE as u64 + space.bytes;
        if bytes > 0 {
            self.bytes.release(bytes);
        }
        if space.inodes > 0 {
            self.inodes.release(space.inodes);
        }
    }

    fn apply(&self, held: &mut Grant, batch: &[Change<'_>]) -> Result<Lsn> {
        let (mut kept, mut left) = (0, 0);
        for change in batch {
            match *change {
                Change::Leave { name, .. } => left += kept_bytes(name.len()),
                Change::Enter { name, .. } => kept += kept_bytes(name.len()),
                Change::Create {
                    target: Some(target),
                    ..
                } => kept += kept_bytes(target.len()),
                Change::Xattr {
                    name,
                    value: Some(value),
                    ..
                } => kept += kept_bytes(name.len() + value.len()),
                _ => {}
            }
        }
        // A name that replaces another takes its place.
        let beyond = kept.saturating_sub(held.kept);
        self.bytes.release(left.saturating_sub(beyond));
        *held = Grant {
            kept: held.kept.saturating_sub(kept),
            ..Grant::NONE
        };
        Ok(Lsn::default())
    }

    fn last_ino(&self) -> Result<Ino> {
        Ok(Ino(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intent(pages: u64, inodes: u64) -> Intent {
        Intent {
            pages,
            inodes,
            ..Intent::default()
        }
    }

    #[test]
    fn a_reservation_is_all_or_nothing() {
        let store = MemoryStore::new(MemoryLimits {
            bytes: Some(3 * 4096 + 1),
            inodes: Some(1),
        });
        let held = store.reserve(&intent(1, 1)).unwrap();
        assert_eq!((held.pages, held.inodes), (0, 1));
        assert_eq!(store.reserve(&intent(1, 1)), Err(Errno::ENOSPC));
        assert_eq!(store.space().map(|space| space.pages_used), Ok(1));
        assert_eq!(store.reserve(&intent(3, 0)), Err(Errno::ENOSPC));
        assert_eq!(store.reserve(&intent(2, 0)), Ok(Grant::NONE));
        let name = Intent::default().name(b"name");
        assert_eq!(store.reserve(&name), Err(Errno::ENOSPC), "no byte is left");
        store.give_back(held);
        store.release(Space {
            pages: 3,
            ..Space::default()
        });
        let space = store.space().unwrap();
        assert_eq!((space.pages_used, space.inodes_used), (0, 0));
    }

    #[test]
    fn without_limits_usage_is_still_told() {
        let store = MemoryStore::new(MemoryLimits::default());
        assert!(store.reserve(&intent(u64::from(u32::MAX), 5)).is_ok());
        let space = store.space().unwrap();
        assert_eq!((space.pages, space.inodes_used), (None, 5));
    }
}
