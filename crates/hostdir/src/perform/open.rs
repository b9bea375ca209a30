//! Opening files.

use holdfast_core::types::{Caps, Errno, FileType, Ino, Result};
use rustix::fs::OFlags;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::Performer;
use crate::host::reach::reopen;
use crate::identity::kind;

impl Performer<'_> {
    /// Opens an inode, and keeps it; a regular file for writing if `writes`, and then also for
    /// reading if permitted.
    ///
    /// # Errors
    /// `ESTALE`: it is gone. For writing those of open(2) and `ENFILE`.
    pub(crate) fn open(self, ino: Ino, writes: bool) -> Result<bool> {
        let held = &self.host.held;
        let reader = match writes {
            true => None,
            false => self.open_without_size(ino)?,
        };
        if !held.count_open(ino, writes) {
            let open = match writes {
                true => Some(Arc::new(self.open_for_writing(ino)?)),
                false => self.name(ino)?,
            };
            held.opened(ino, open, writes);
        }
        if let Some(reader) = reader {
            held.read_by(ino, reader);
        }
        Ok(true)
    }

    /// Opens a file of unknown length for reading as the caller: the host may base access and
    /// content on the opener.
    fn open_without_size(self, ino: Ino) -> Result<Option<OwnedFd>> {
        let host = self.host;
        if !host.has_no_size(0) || ino == Ino::ROOT {
            return Ok(None);
        }
        let (pinned, stat) = host.pin(ino)?;
        if kind(&stat) != FileType::Regular || !host.has_no_size(stat.stx_size) {
            return Ok(None);
        }
        // No capabilities except for root: the kernel in front has only checked the file's
        // permissions.
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
            // It may be append-only.
            Err(Errno::EPERM) => open_to_write(named, OFlags::APPEND),
            opened => opened,
        }
    }

    /// An `O_PATH` descriptor for an open inode. `None`: it needs none, or there is no room; then
    /// it is reached by its name or its handle.
    fn name(self, ino: Ino) -> Result<Option<Arc<OwnedFd>>> {
        let host = self.host;
        let named = match host.name(ino) {
            Err(Errno::ESTALE | Errno::ENOENT) => return Err(Errno::ESTALE),
            // Other errors are reported when it is used.
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

/// Opens a file for writing, and also for reading if permitted.
fn open_to_write(named: BorrowedFd<'_>, how: OFlags) -> Result<OwnedFd> {
    match reopen(named, OFlags::RDWR | how) {
        Err(Errno::EACCES) => reopen(named, OFlags::WRONLY | how),
        opened => opened,
    }
}
