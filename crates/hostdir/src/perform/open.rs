//! Opening files.

use holdfast_core::types::{Caps, Errno, FileType, Ino, Result};
use rustix::fs::OFlags;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::Performer;
use crate::host::reopen;
use crate::identity::kind;

impl Performer<'_> {
    /// Opens an inode; a regular file for writing, if `writes`, and then for reading too if the caller may.
    ///
    /// # Errors
    /// `ESTALE`: it has gone. For writing those of open(2) and `ENFILE`.
    pub(crate) fn open(self, ino: Ino, writes: bool) -> Result<()> {
        let held = &self.host.held;
        let reader = match writes {
            true => None,
            false => self.open_without_size(ino)?,
        };
        if !held.open_again(ino, writes) {
            let open = match writes {
                true => Some(Arc::new(self.open_for_writing(ino)?)),
                false => self.name(ino)?,
            };
            held.opened(ino, open, writes);
        }
        if let Some(reader) = reader {
            held.read_by(ino, reader);
        }
        Ok(())
    }

    /// A file that is opened for reading, of which the size tells nothing: the host may decide by who opens it what is in it, and for whom.
    fn open_without_size(self, ino: Ino) -> Result<Option<OwnedFd>> {
        let host = self.host;
        if !host.has_no_size(0) || ino == Ino::ROOT {
            return Ok(None);
        }
        let (pinned, stat) = host.pin(ino)?;
        if kind(&stat) != FileType::Regular || !host.has_no_size(stat.stx_size) {
            return Ok(None);
        }
        // Only root may raise its limits. The kernel in front has checked the file's permissions only.
        let mut caller = self.caller.clone();
        if caller.uid != 0 {
            caller.caps = Caps::empty();
        }
        let _acting = host.own.act_as(&caller)?;
        reopen(pinned.get(host), OFlags::RDONLY).map(Some)
    }

    fn open_for_writing(self, ino: Ino) -> Result<OwnedFd> {
        let host = self.host;
        host.held.room()?;
        let (pinned, _) = host.pin(ino)?;
        let _acting = self.act()?;
        let named = pinned.get(host);
        match open_to_write(named, OFlags::empty()) {
            // It may be one that can only be appended to.
            Err(Errno::EPERM) => open_to_write(named, OFlags::APPEND),
            opened => opened,
        }
    }

    /// A descriptor that names an inode as long as it is open. `None`: it needs none, or there is no room for it; then its name leads to it, or its
    /// handle.
    fn name(self, ino: Ino) -> Result<Option<Arc<OwnedFd>>> {
        let host = self.host;
        let named = match host.name(ino) {
            Err(Errno::ESTALE | Errno::ENOENT) => return Err(Errno::ESTALE),
            // What keeps it from being reached is told when it is used.
            named => named.ok().flatten(),
        };
        if host.held.has_room() {
            return Ok(named);
        }
        if let Some(named) = named {
            host.note_handle(ino, named.as_fd());
        }
        Ok(None)
    }
}

/// Opens a file for writing, and for reading if that may be.
fn open_to_write(named: BorrowedFd<'_>, how: OFlags) -> Result<OwnedFd> {
    match reopen(named, OFlags::RDWR | how) {
        Err(Errno::EACCES) => reopen(named, OFlags::WRONLY | how),
        opened => opened,
    }
}
