//! One caller on the host: a thread with credentials, umask, root and descriptor table of
//! its own, so that the kernel sees a process of its own.

use super::{calls, errno, inspect, sys};
use crate::diff::op::Op;
use crate::diff::target::{SLOTS, Step};
use crate::diff::view::View;
use holdfast_types::{Caller, Caps, Errno, Result};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::thread::CapabilitySet;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

type Request = (Op, Vec<usize>);

/// The driver's end of a caller's thread.
#[derive(Debug)]
pub(super) struct Worker {
    requests: Option<Sender<Request>>,
    answers: Receiver<Step>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts the thread of a caller inside the mount behind `mount`.
    pub(super) fn start(who: &Caller, mount: &Arc<OwnedFd>) -> Result<Self> {
        let (requests, inbox) = channel::<Request>();
        let (outbox, answers) = channel();
        let (ready, started) = channel();
        let who = who.clone();
        let mount = Arc::clone(mount);
        let thread = std::thread::spawn(move || {
            let entered = enter(&who, &mount);
            // Before the driver goes on: the last owner must be a thread that has the number.
            drop(mount);
            let mut process = match entered {
                Ok(process) => process,
                Err(error) => {
                    let _ = ready.send(Err(error));
                    return;
                }
            };
            let _ = ready.send(Ok(()));
            while let Ok((op, slots)) = inbox.recv() {
                if outbox.send(process.step(&op, &slots)).is_err() {
                    return;
                }
            }
        });
        started.recv().map_err(|_| Errno::EIO)??;
        Ok(Self {
            requests: Some(requests),
            answers,
            thread: Some(thread),
        })
    }

    /// Has the thread run `op`.
    pub(super) fn step(&self, op: &Op, slots: &[usize]) -> Step {
        let requests = self.requests.as_ref().expect("present until dropped");
        requests
            .send((op.clone(), slots.to_vec()))
            .expect("the caller's thread lives");
        self.answers.recv().expect("the caller's thread answers")
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the thread knows as its own: its open files, and the names the kernel gives them.
#[derive(Debug)]
pub(super) struct Process {
    /// Open files by slot.
    pub(super) files: [Option<OwnedFd>; SLOTS],
    /// `/proc/thread-self/fd`, by which an unnamed file is given a name.
    pub(super) descriptors: OwnedFd,
}

impl Process {
    pub(super) fn file(&self, slot: usize) -> Result<&OwnedFd> {
        self.files
            .get(slot)
            .and_then(Option::as_ref)
            .ok_or(Errno::EBADF)
    }

    fn step(&mut self, op: &Op, slots: &[usize]) -> Step {
        let before = self.look(slots);
        let outcome = calls::run(self, op);
        Step {
            before,
            outcome,
            after: self.look(slots),
        }
    }

    fn look(&self, slots: &[usize]) -> Vec<Result<View>> {
        slots
            .iter()
            .map(|&slot| inspect::look_open(self.file(slot)?))
            .collect()
    }
}

/// Turns the calling thread into the caller's process. The order matters: the mount is reached
/// by a descriptor of the old table, `/proc` by the old root, and privileges go last.
fn enter(who: &Caller, mount: &OwnedFd) -> Result<Process> {
    sys::unshare_fs()?;
    rustix::process::fchdir(mount).map_err(errno)?;
    sys::unshare_files()?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let descriptors = rustix::fs::openat(CWD, "/proc/thread-self/fd", flags, Mode::empty());
    let descriptors = descriptors.map_err(errno)?;
    rustix::process::chroot(".").map_err(errno)?;
    rustix::process::umask(Mode::from_raw_mode(who.umask.into()));
    let groups: Vec<_> = who
        .groups
        .iter()
        .map(|&gid| rustix::fs::Gid::from_raw(gid))
        .collect();
    rustix::thread::set_thread_groups(&groups).map_err(errno)?;
    sys::set_fs_ids(who.uid, who.gid)?;
    let mut sets = rustix::thread::capabilities(None).map_err(errno)?;
    sets.effective = if who.caps == Caps::all() {
        sets.permitted
    } else {
        // A container's root may lack some: none of those decides anything on tmpfs.
        sets.permitted & CapabilitySet::from_bits_retain(who.caps.bits())
    };
    rustix::thread::set_capabilities(None, sets).map_err(errno)?;
    Ok(Process {
        files: Default::default(),
        descriptors,
    })
}
