//! Stores through mappings come before a time that is set after them.
//!
//! What a program stores through a shared mapping, the kernel writes later, and that moves the file's time. So before a
//! time of modification is set the kernel is made to write, if the process has the file mapped. The kernel tells nobody of
//! mmap(2); but pages are dirty through a mapping only while there is one, because it writes them at munmap(2).
//!
//! # Invariants
//! The kernel writes by requests of their own, which need a thread: a thread waits for that only where another stands
//! in, as for a file lock. And the question itself may wait for the process's address space, which another of its threads
//! may have locked while it waits for such a write: one thread of a session asks at a time.

use super::{handler::Handler, sys::shared_mapping, worker::Worker};
use crate::wire::{Header, SetAttrRequest};
use holdfast_types::{Ino, SetTime};
use rustix::io::Errno as Code;
use std::{
    cell::RefCell,
    fs::File,
    sync::atomic::{AtomicBool, Ordering},
};

/// Mappings that are looked at. A process with more counts as one that has mapped everything.
const LOOKED_AT_MAX: usize = 64;

/// Tells of which files a process has mapped.
#[derive(Default)]
pub(super) struct Mappings {
    asking: AtomicBool,
}

impl Handler {
    /// Has the kernel write what the process stored through a mapping, if this sets a time of modification. If no thread
    /// is to be had for that, the time is set all the same.
    pub(super) fn before_attributes(
        &self,
        header: &Header,
        request: &SetAttrRequest,
        worker: &mut Worker,
    ) {
        let sets_time = matches!(request.set.mtime, Some(SetTime::At(_)));
        if sets_time
            && self.mappings.may_have(header.pid, header.ino)
            && let Ok(_wait) = worker.before_request_wait()
        {
            let notifier = &self.revocation.notifier;
            notifier.invalidate_inode(header.ino, 0, 0);
            notifier.flush();
        }
    }
}

impl Mappings {
    /// May this process have a shared mapping of a file of this number? Yes, if another thread is just asking.
    fn may_have(&self, pid: u32, ino: Ino) -> bool {
        // Acquire, Release: nothing is guarded but that one thread asks.
        if self.asking.swap(true, Ordering::Acquire) {
            return true;
        }
        let found = has_mapped(pid, ino);
        self.asking.store(false, Ordering::Release);
        found
    }
}

thread_local! {
    /// The process that was looked at last by this thread, and its `maps`: to open it costs as much as the question, and a
    /// program that unpacks an archive sets the time of each file.
    static LAST: RefCell<Option<(u32, File)>> = const { RefCell::new(None) };
}

/// Has this process a shared mapping of a file of this number? One that cannot be looked at has none,
/// and before Linux 6.11 none can.
fn has_mapped(pid: u32, ino: Ino) -> bool {
    LAST.with_borrow_mut(|last| {
        if let Some((_, maps)) = last.as_ref().filter(|(known, _)| *known == pid) {
            match is_in(maps, ino) {
                // Another program runs there now, or another process.
                Err(Code::SRCH) => {}
                found => return found.unwrap_or(false),
            }
        }
        *last = File::open(format!("/proc/{pid}/maps"))
            .ok()
            .map(|maps| (pid, maps));
        last.as_ref()
            .is_some_and(|(_, maps)| is_in(maps, ino).unwrap_or(false))
    })
}

/// # Errors
/// `ESRCH` when the address space that it was opened for is gone.
fn is_in(maps: &File, ino: Ino) -> Result<bool, Code> {
    let mut address = 0;
    for _ in 0..LOOKED_AT_MAX {
        match shared_mapping(maps, address)? {
            Some(mapping) if mapping.inode == ino.0 => return Ok(true),
            Some(mapping) => address = mapping.end,
            None => return Ok(false),
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_has_mapped_what_there_is_not_nor_what_is_private() {
        use std::os::unix::fs::MetadataExt;
        let own = std::process::id();
        let program = std::fs::metadata("/proc/self/exe").unwrap().ino();
        assert!(!has_mapped(own, Ino(program)));
        assert!(!has_mapped(own, Ino(u64::MAX)));
        // No process has this number.
        assert!(!has_mapped(u32::MAX, Ino(program)));
    }

    #[test]
    fn beside_one_that_asks_everything_may_be_mapped() {
        let mappings = Mappings::default();
        assert!(!mappings.may_have(std::process::id(), Ino(u64::MAX)));
        mappings.asking.store(true, Ordering::Relaxed);
        assert!(mappings.may_have(std::process::id(), Ino(u64::MAX)));
    }
}
