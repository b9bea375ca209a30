//! Makes the kernel serve the waiting requests of a queue.
//!
//! A new entry serves the next request that arrives, not those that already wait: the kernel takes
//! these only when a reply is committed. If all threads of a queue wait for locks, nothing is
//! committed, and the unlock may be among the waiting requests. So after a queue has grown, a
//! STATFS of the mount is sent from that queue's processor. It takes the new entry, and its reply
//! starts the first waiting request.
//!
//! # Invariants
//! No thread of the daemon waits for the daemon's own mount. The STATFS comes from a helper process
//! that shares neither memory nor descriptors with it. For the kernel waits for the answer to a
//! taken request even when the caller is killed. A thread that waits so would keep the rings of a
//! killed daemon, and with them the connection, and every caller of the mount would hang.

mod sys;

use parking_lot::Mutex;
use std::{
    io,
    path::{Path, PathBuf},
};
use sys::Helper;

/// Sends a STATFS from the processor of a queue.
pub(crate) struct Kicker {
    /// The mount: its device number as the kernel packs it, and where it is.
    device: u32,
    dir: PathBuf,
    /// The helper process.
    helper: Mutex<Helper>,
}

impl Kicker {
    /// Starts the helper for the mount at `dir`. It ends when this is dropped, and with this
    /// process.
    ///
    /// # Errors
    /// There is no memory for it, or no more processes are allowed.
    pub(crate) fn start(device: u32, dir: &Path) -> io::Result<Self> {
        Ok(Self {
            device,
            dir: dir.to_owned(),
            helper: Mutex::new(Helper::start(device, dir)?),
        })
    }

    /// Nudges queue `qid`. Does not wait.
    ///
    /// # Errors
    /// The helper is gone, and no other can be started.
    pub(super) fn kick(&self, qid: u16) -> io::Result<()> {
        let mut helper = self.helper.lock();
        if helper.ask(qid).is_err() {
            // The helper alone was killed.
            *helper = Helper::start(self.device, &self.dir)?;
            helper.ask(qid)?;
        }
        Ok(())
    }
}
