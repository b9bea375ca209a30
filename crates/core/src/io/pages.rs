//! Terms that loading and mapping share.

use crate::core::Core;
use crate::types::Result;
use holdfast_cache::Account;

pub(super) const PAGE: u64 = holdfast_cache::PAGE_SIZE as u64;

/// How often a thread asks with the pages unlocked, beyond once for each page that it needs. If its
/// reads were useless as often, because others change the file or need the memory, it keeps the
/// lock meanwhile.
pub(super) const TRIES: u64 = 8;

/// Are the pages locked during the request to the store?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    Free,
    Locked,
}

/// The account of pages with space that was taken when they were written.
pub(crate) fn loaded_account(core: &Core) -> Account<'_> {
    Account {
        space: &Loaded,
        stats: &core.cache,
    }
}

/// Space that the store holds already: it was taken when it was written.
pub(crate) struct Loaded;

impl holdfast_cache::Space for Loaded {
    fn reserve(&self, _pages: u64) -> Result<()> {
        Ok(())
    }

    fn release(&self, _pages: u64) {}
}
