//! Orders stores through mappings before a modification time that is set after them.
//!
//! The kernel writes stores through a shared mapping later, and that write changes the modification
//! time. So before a modification time is set, the kernel is made to write the file if the process
//! has it mapped. The kernel announces no mmap(2), but it writes dirty pages at munmap(2): pages
//! are dirty through a mapping only while the mapping exists.
//!
//! # Invariants
//! The kernel's writes are requests, which need a thread. A thread waits for them only if another
//! one is ready, as for a file lock. Reading the mappings may block on the process's address space,
//! which another of its threads may hold locked during such a write. So one thread of a session
//! reads at a time.

use super::{notifier::Notifier, sys::shared_mapping, worker::Worker};
use crate::wire::{Header, SetAttrRequest};
use holdfast_types::{Ino, SetTime};
use rustix::io::Errno as Code;
use std::{
    cell::RefCell,
    fs::File,
    sync::atomic::{AtomicBool, Ordering},
};

/// Most mappings that are read. A process with more counts as having mapped everything.
const LOOKED_AT_MAX: usize = 64;

/// Whether processes have files mapped.
#[derive(Default)]
pub(super) struct Mappings {
    asking: AtomicBool,
}

impl Mappings {
    /// If this sets a modification time, has the kernel write what the process stored through a
    /// mapping. If no thread can be had for that, the time is set all the same.
    pub(super) fn before_attributes(
        &self,
        header: &Header,
        request: &SetAttrRequest,
        worker: &mut Worker,
        notifier: &Notifier,
    ) {
        let sets_time = matches!(request.set.mtime, Some(SetTime::At(_)));
        if sets_time
            && self.may_have(header.pid, header.ino)
            && let Ok(_wait) = worker.before_request_wait()
        {
            notifier.invalidate_inode(header.ino, 0, 0);
            notifier.flush();
        }
    }

    /// May this process have a shared mapping of this inode? Yes, if another thread is reading
    /// mappings.
    fn may_have(&self, pid: u32, ino: Ino) -> bool {
        // Acquire, Release: `asking` only excludes a second reader.
        if self.asking.swap(true, Ordering::Acquire) {
            return true;
        }
        let found = has_mapped(pid, ino);
        self.asking.store(false, Ordering::Release);
        found
    }
}

thread_local! {
    /// The process that this thread read last, and its `maps` file. An open costs as much as the
    /// query, and a program that unpacks an archive sets the time of each file.
    static LAST: RefCell<Option<(u32, File)>> = const { RefCell::new(None) };
}

/// Has this process a shared mapping of this inode? A process that cannot be read has none. Before
/// Linux 6.11 no process can be read.
fn has_mapped(pid: u32, ino: Ino) -> bool {
    LAST.with_borrow_mut(|last| {
        if let Some((_, maps)) = last.as_ref().filter(|(known, _)| *known == pid) {
            match is_in(maps, ino) {
                // The process runs another program now, or the id is another process's.
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
