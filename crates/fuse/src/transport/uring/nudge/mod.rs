//! Makes the kernel look at a queue's waiting requests.
//!
//! An entry that is registered late serves the next request that comes, not those that wait in
//! the queue already: they are only looked at when a reply is committed. If all threads of a queue
//! wait (for locks), nothing is committed, and the unlock that would end the wait may be among those
//! in the queue. So whenever a queue has grown, a thread asks the mount for its space (`STATFS`)
//! from that queue's processor: the request takes the new entry, and committing its reply brings in
//! the first that waits. Each nudge has a thread of its own, because one that finds the new entry
//! taken queues up like the rest, and one that meets an unmount waits for its end.

use super::sys::ask_space;
use crate::session::service::{Enlisted, Service};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::{
    io,
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Sender, channel},
    },
    thread,
};

/// Has queues looked at.
pub(crate) struct Nudger {
    /// The mount: its device number as the kernel packs it, and where it is.
    pub(crate) device: u32,
    pub(crate) dir: PathBuf,
}

/// A thread that waits for the word to nudge; dropped without, it goes.
pub(super) struct Nudge(Sender<()>);

impl Nudge {
    /// Has the queue looked at.
    pub(super) fn go(self) {
        // The thread lives until it hears from this side.
        let _ = self.0.send(());
    }
}

impl Nudger {
    /// Starts the thread that will nudge queue `qid`.
    pub(super) fn prepare(self: &Arc<Self>, qid: u16, service: &Arc<Service>) -> io::Result<Nudge> {
        let (go, word) = channel();
        let (nudger, enlisted) = (self.clone(), Enlisted::new(service));
        thread::Builder::new()
            .name("holdfast-nudge".into())
            .spawn(move || {
                let _enlisted = enlisted;
                if word.recv().is_ok() {
                    nudger.nudge(qid);
                }
            })?;
        Ok(Nudge(go))
    }

    fn nudge(&self, qid: u16) {
        let mut set = CpuSet::new();
        if usize::from(qid) < CpuSet::MAX_CPU {
            set.set(qid.into());
        }
        // A processor that is not there any more sends no requests either.
        if sched_setaffinity(None, &set).is_ok() {
            ask_space(self.device, &self.dir);
        }
    }
}
