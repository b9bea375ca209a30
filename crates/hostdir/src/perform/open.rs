//! Opening files for writing.

use holdfast_core::types::{Errno, Ino, Result};
use rustix::fs::OFlags;

use super::Performer;
use crate::host::reopen;

impl Performer<'_> {
    /// Opens a regular file for writing, and for reading if the caller may.
    ///
    /// # Errors
    /// Those of open(2).
    pub(crate) fn open(self, ino: Ino) -> Result<()> {
        let host = self.host;
        if host.held.open_again(ino) {
            return Ok(());
        }
        host.held.room()?;
        let (pinned, _) = host.pin(ino)?;
        let opened = {
            let _acting = self.act()?;
            let named = pinned.get(host);
            match reopen(named, OFlags::RDWR) {
                Err(Errno::EACCES) => reopen(named, OFlags::WRONLY)?,
                opened => opened?,
            }
        };
        host.held.opened(ino, opened);
        Ok(())
    }
}
