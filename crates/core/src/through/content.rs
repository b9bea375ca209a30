//! The content of regular files.
//!
//! *Invariant.* While the page lock is free, the pages in memory equal the store's content. So the
//! lock is held while the store writes. Written bytes are not kept in memory: the next reader asks
//! the store for them.

use holdfast_cache::PagesLock;

use super::Performed;
use crate::inode::{Inode, Numbered as _};
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
