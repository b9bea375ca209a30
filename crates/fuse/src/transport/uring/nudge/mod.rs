//! Makes the kernel look at a queue's waiting requests.
//!
//! An entry that is registered late serves the next request that comes, not those that wait in
//! the queue already: they are only looked at when a reply is committed. If all threads of a queue
//! wait (for locks), nothing is committed, and the unlock that would end the wait may be among those
//! in the queue. So whenever a queue has grown, the mount is asked for its space (`STATFS`)
//! from that queue's processor: the request takes the new entry, and committing its reply brings in
//! the first that waits.
//!
//! # Invariants
//! No thread of the daemon waits for the daemon's own mount: a process beside it asks, which shares neither memory nor
//! descriptors with it. For the kernel waits for the answer to a request that was taken even when the caller is killed. A
//! thread that waits so would keep the rings mapped, and with them the connection: a killed daemon would never be gone, and every
//! caller of its mount would hang.

mod sys;

use parking_lot::Mutex;
use std::{
    io,
    path::{Path, PathBuf},
};
use sys::Helper;

/// Has queues looked at.
pub(crate) struct Nudger {
    /// The mount: its device number as the kernel packs it, and where it is.
    device: u32,
    dir: PathBuf,
    /// The process that asks.
    helper: Mutex<Helper>,
}

impl Nudger {
    /// Starts the process that asks the mount at `dir`. It ends when this is dropped, and with this process.
    ///
    /// # Errors
    /// There is no memory for it, or no process more is allowed.
    pub(crate) fn start(device: u32, dir: &Path) -> io::Result<Self> {
        Ok(Self {
            device,
            dir: dir.to_owned(),
            helper: Mutex::new(Helper::start(device, dir)?),
        })
    }

    /// Has queue `qid` looked at. Waits for nothing.
    ///
    /// # Errors
    /// The process is gone, and there can be no other.
    pub(super) fn nudge(&self, qid: u16) -> io::Result<()> {
        let mut helper = self.helper.lock();
        if helper.ask(qid).is_err() {
            // It was killed by itself.
            *helper = Helper::start(self.device, &self.dir)?;
            helper.ask(qid)?;
        }
        Ok(())
    }
}
