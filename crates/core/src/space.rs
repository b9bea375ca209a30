//! Room for a file's pages: of its owner's quota, and of the store.

use holdfast_cache::Account;

use crate::file_system::Core;
use crate::inode::Inode;
use crate::quota::Check;
use crate::store::Space;
use crate::types::Result;

/// Where the pages of one file come from and go to.
///
/// Its content lock is held as long as the page cache works with this: the cache's promises end
/// with the call that made them, so what is charged is what the file has when the lock is free.
pub(crate) struct FileSpace<'f> {
    core: &'f Core,
    inode: &'f Inode,
    check: Check,
}

impl<'f> FileSpace<'f> {
    /// `check`: do limits count for whoever asks for pages?
    pub(crate) fn new(core: &'f Core, inode: &'f Inode, check: Check) -> Self {
        Self { core, inode, check }
    }

    /// Whom the page cache charges.
    pub(crate) fn account(&self) -> Account<'_> {
        Account {
            space: self,
            stats: &self.core.cache,
        }
    }

    fn shrink(&self, pages: u64) {
        let quotas = &self.core.quotas;
        quotas.shrink(self.inode.mark(), pages, || self.inode.owner());
    }
}

impl holdfast_cache::Space for FileSpace<'_> {
    fn reserve(&self, pages: u64) -> Result<()> {
        let (quotas, mark) = (&self.core.quotas, self.inode.mark());
        quotas.grow(mark, pages, self.check, || self.inode.owner())?;
        let reserved = self.core.store.reserve(Space { pages, inodes: 0 });
        if reserved.is_err() {
            self.shrink(pages);
        }
        reserved
    }

    fn release(&self, pages: u64) {
        self.core.store.release(Space { pages, inodes: 0 });
        self.shrink(pages);
    }
}
