//! The content of regular files.
//!
//! *Invariant.* While the page lock is free, the pages in memory equal the store's content. So the
//! lock is held while the store writes. Written bytes are not kept in memory: the next reader asks
//! the store for them.

use holdfast_cache::PagesLock;

use super::{Performed, ThroughStore};
use crate::inode::{Inode, Numbered as _};
use crate::open::OpenFile;
use crate::store::Operation;
use crate::types::{Errno, Result};

impl Performed<'_> {
    /// Updates a file that was written, with the page lock that was held meanwhile; returns the
    /// offset and the number of bytes written.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn follow_write(
        &self,
        inode: &Inode,
        locked: Option<PagesLock<'_>>,
    ) -> Result<(u64, usize)> {
        let (through, done) = (self.through, &self.done);
        let end = done.start.saturating_add(done.count);
        let mut pages = locked.ok_or(Errno::EUCLEAN)?;
        let touched = through.touched(done, inode.ino());
        let touched = touched.and_then(|(touched, at)| {
            through.take_in_written(inode, &mut pages, (&touched, at), done.start..end)
        });
        let stands = touched.inspect_err(|_| through.take_in_nothing(inode, &mut pages))?;
        drop(pages);
        through.tell_of_others(inode, stands);
        Ok((
            done.start,
            usize::try_from(done.count).unwrap_or(usize::MAX),
        ))
    }
}

impl ThroughStore<'_> {
    /// Makes a file durable.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn sync(self, file: &OpenFile, data_only: bool) -> Result<()> {
        let ino = file.node().ino();
        let sync = Operation::Sync { ino, data_only };
        self.core.alive()?;
        self.store.perform(&super::itself(), &sync).map(drop)
    }

    /// A descriptor of an open file is closed.
    ///
    /// # Errors
    /// Those of work that the store deferred.
    pub(crate) fn flush(self, file: &OpenFile) -> Result<()> {
        if !file.is_written_through() {
            return Ok(());
        }
        let ino = file.node().ino();
        let flush = Operation::Flush { ino };
        self.store.perform(&super::itself(), &flush).map(drop)
    }
}
