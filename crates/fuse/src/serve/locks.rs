//! Locks: record locks by the kernel's owner number, flock(2) by the open file's.
//!
//! The kernel does not say whether a record lock belongs to a process or (`F_OFD_SETLK`) to an
//! open file: it names an owner, and flushes a process's owner at every close. Owners that set
//! locks through an open file are therefore remembered with it: those left when it is gone can
//! only be open files' owners, whose locks go then.

use super::{CoreOperations, Handle};
use crate::{
    FoundLock, Interrupt,
    wire::{LockRequest, LockType},
};
use holdfast_core::{
    Cancel, LockKind, LockOwner, LockRange, LockSpace, Node,
    types::{Errno, Ino, Result},
};

/// The end of a lock that has none, as the kernel writes it.
const KERNEL_END: u64 = i64::MAX as u64;

fn range(request: &LockRequest) -> LockRange {
    let end = if request.end >= KERNEL_END {
        u64::MAX
    } else {
        request.end
    };
    LockRange {
        start: request.start,
        end,
    }
}

fn space(request: &LockRequest) -> LockSpace {
    if request.flock {
        LockSpace::Flock
    } else {
        LockSpace::Posix
    }
}

fn kind(request: &LockRequest) -> Option<LockKind> {
    match request.kind {
        LockType::Read => Some(LockKind::Read),
        LockType::Write => Some(LockKind::Write),
        LockType::Unlock => None,
    }
}

impl CoreOperations {
    pub(super) fn find_lock(&self, ino: Ino, request: &LockRequest) -> Result<FoundLock> {
        let node = self.fs.node(ino)?;
        let wanted = kind(request).ok_or(Errno::EINVAL)?;
        let owner = LockOwner(request.owner);
        let held = self
            .fs
            .get_lock(&node, owner, space(request), wanted, range(request))?;
        Ok(match held {
            Some(held) => FoundLock {
                start: held.range.start,
                end: held.range.end.min(KERNEL_END),
                kind: match held.kind {
                    LockKind::Read => LockType::Read,
                    LockKind::Write => LockType::Write,
                },
                pid: held.pid,
            },
            None => FoundLock {
                start: request.start,
                end: request.end,
                kind: LockType::Unlock,
                pid: 0,
            },
        })
    }

    pub(super) fn take_lock(
        &self,
        ino: Ino,
        request: &LockRequest,
        wait: Option<&Interrupt>,
    ) -> Result<()> {
        let node = self.fs.node(ino)?;
        if !request.flock && request.kind != LockType::Unlock {
            self.remember_owner(request);
        }
        let cancel = wait.map(|interrupt| {
            let cancel = Cancel::new();
            let fired = cancel.clone();
            interrupt.on_fire(move || fired.cancel());
            cancel
        });
        self.fs.set_lock(
            &node,
            LockOwner(request.owner),
            space(request),
            kind(request),
            range(request),
            request.pid,
            cancel.as_ref(),
        )
    }

    fn remember_owner(&self, request: &LockRequest) {
        if let Ok(handle) = self.handle(request.fh) {
            let mut owners = handle.lock_owners.lock();
            if !owners.contains(&request.owner) {
                owners.push(request.owner);
            }
        }
    }

    /// A descriptor of the file was closed: its process's record locks go.
    pub(super) fn release_record_locks(&self, ino: Ino, fh: u64, owner: u64) -> Result<()> {
        // By the open file, if there is one: closing works where nothing else does any more.
        let Ok(handle) = self.handle(fh) else {
            let node = self.fs.node(ino)?;
            self.fs
                .release_locks(&node, LockOwner(owner), LockSpace::Posix);
            return Ok(());
        };
        self.fs
            .release_locks(handle.file.node(), LockOwner(owner), LockSpace::Posix);
        handle.lock_owners.lock().retain(|&held| held != owner);
        Ok(())
    }

    /// The open file is gone: so are its own record locks.
    pub(super) fn release_handle_locks(&self, node: &Node, handle: &Handle) {
        for &owner in &*handle.lock_owners.lock() {
            self.fs
                .release_locks(node, LockOwner(owner), LockSpace::Posix);
        }
    }

    /// The open file is gone: so is its flock(2) lock.
    pub(super) fn release_flock(&self, node: &Node, owner: u64) {
        self.fs
            .release_locks(node, LockOwner(owner), LockSpace::Flock);
    }
}
