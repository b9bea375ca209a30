//! Makes the kernel look at a queue's waiting requests.
//!
//! A frame that is registered late serves the next request that comes, not those that wait in
//! the queue already: they are only looked at when a reply is committed. If all frames are with
//! requests that wait (for locks), nothing is committed, and the unlock that would end the wait
//! may be among those in the queue. So whenever a queue has grown, a thread asks the mount for
//! its space (`STATFS`) from that queue's processor: the request takes a new frame, and
//! committing its reply brings in the first that waits. Each nudge has a thread of its own,
//! because one that finds the new frames taken queues up like the rest.

use super::sys::ask_space;
use crate::session::workers::Workers;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

/// Nudges under way, at most.
const NUDGES_MAX: usize = 64;

/// Has queues looked at. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Nudger {
    workers: Workers,
    /// The mount: its device number as the kernel packs it, and where it is.
    mount: Arc<OnceLock<(u32, PathBuf)>>,
}

impl Nudger {
    pub(crate) fn new() -> Self {
        Self {
            workers: Workers::new("holdfast-nudge", NUDGES_MAX),
            mount: Arc::default(),
        }
    }

    /// Tells which mount it is.
    pub(crate) fn aim(&self, device: u32, dir: PathBuf) {
        let _ = self.mount.set((device, dir));
    }

    /// Has queue `qid` looked at soon.
    pub(super) fn nudge(&self, qid: u16) {
        let mount = self.mount.clone();
        let job = Box::new(move |taken| {
            let mut set = CpuSet::new();
            if usize::from(qid) < CpuSet::MAX_CPU {
                set.set(qid.into());
            }
            // A processor that is not there any more sends no requests either.
            if taken
                && let Some((device, dir)) = mount.get()
                && sched_setaffinity(None, &set).is_ok()
            {
                ask_space(*device, dir);
            }
        });
        // With so many under way, one more would not help.
        let _ = self.workers.run_now(job);
    }

    /// The session is over.
    pub(crate) fn close(&self) {
        self.workers.close();
    }
}
