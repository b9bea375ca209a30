//! Locks: record locks by the kernel's owner number, flock(2) by the open file's.
//!
//! The kernel does not say whether a record lock belongs to a process or to an open file
//! (`F_OFD_SETLK`). It sends an owner, and flushes a process's owner at every close. So the owners
//! that lock through an open file are stored in its handle. Owners left at RELEASE are open file
//! owners, and their locks are released. A conflict with a lock of a file about to be released
//! waits for that (see [`super::closing`]).

use super::{CoreOperations, handles::Handle};
use crate::{
    FoundLock,
    wire::{LockRequest, LockType, ReleaseRequest},
};
use holdfast_core::{
    Cancel, LockKind, LockOwner, LockRange, LockSpace, Node,
    types::{Errno, Ino, Result},
};
use std::sync::atomic::Ordering;

/// The end of an unbounded lock, as the kernel writes it.
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
        let ask = || {
            self.fs
                .get_lock(&node, owner, space(request), wanted, range(request))
        };
        let mut held = ask()?;
        if held.is_some() && self.closing.wait_for_release(ino) {
            held = ask()?;
        }
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
        wait: Option<&Cancel>,
    ) -> Result<()> {
        let node = self.fs.node(ino)?;
        if !request.flock && request.kind != LockType::Unlock {
            self.remember_owner(request);
        }
        let take = || {
            self.fs.set_lock(
                &node,
                LockOwner(request.owner),
                space(request),
                kind(request),
                range(request),
                request.pid,
                wait,
            )
        };
        match take() {
            Err(Errno::EAGAIN) if self.closing.wait_for_release(ino) => take()?,
            taken => taken?,
        }
        if request.flock
            && let Ok(handle) = self.handles.get(request.fh)
        {
            let held = request.kind != LockType::Unlock;
            handle.flocked.store(held, Ordering::Relaxed);
        }
        Ok(())
    }

    fn remember_owner(&self, request: &LockRequest) {
        if let Ok(handle) = self.handles.get(request.fh) {
            let mut owners = handle.lock_owners.lock();
            if !owners.contains(&request.owner) {
                owners.push(request.owner);
            }
        }
    }

    /// A descriptor of the file was closed: releases the record locks of its process.
    pub(super) fn release_record_locks(&self, ino: Ino, fh: u64, owner: u64) -> Result<()> {
        // The handle's node, if there is one: closing works even after a revocation.
        let Ok(handle) = self.handles.get(fh) else {
            self.release(&self.fs.node(ino)?, owner, LockSpace::Posix);
            return Ok(());
        };
        self.release(handle.file.node(), owner, LockSpace::Posix);
        handle.lock_owners.lock().retain(|&held| held != owner);
        if handle.holds_locks() {
            self.closing.flushed(handle.file.node().ino(), fh);
        }
        Ok(())
    }

    /// Releases the locks of a closed file: record locks of its own, and its flock(2) lock.
    pub(super) fn release_handle_locks(&self, request: &ReleaseRequest, handle: &Handle) {
        let node = handle.file.node();
        for &owner in &*handle.lock_owners.lock() {
            self.release(node, owner, LockSpace::Posix);
        }
        if request.flock_unlock {
            self.release(node, request.lock_owner, LockSpace::Flock);
        }
    }

    fn release(&self, node: &Node, owner: u64, space: LockSpace) {
        self.fs.release_locks(node, LockOwner(owner), space);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Answer, Config, Context, Notifier, Operations,
        wire::{CreateRequest, Extensions, OpenRequest, Request},
    };
    use holdfast_core::{FileSystem, MemoryLimits, Options};
    use std::{
        thread,
        time::{Duration, Instant},
    };

    const READ_WRITE: i32 = 2;

    fn context() -> Context<'static> {
        Context {
            uid: 0,
            gid: 0,
            pid: 1,
            umask: 0,
            extensions: Extensions::default(),
        }
    }

    /// A file that is open twice.
    fn twice() -> (CoreOperations, Ino, [u64; 2]) {
        let fs = FileSystem::memory(MemoryLimits::default(), Options::default());
        let served = CoreOperations::new(fs, &Config::default(), Notifier::new());
        let request = CreateRequest {
            name: b"f",
            flags: READ_WRITE,
            mode: 0o644,
            umask: 0,
            kill_suidgid: false,
            extensions: Extensions::default(),
        };
        let created = served.answer(&context(), Ino::ROOT, Request::Create(request));
        let Ok(Answer::Created(attr, first)) = created else {
            panic!("{created:?}")
        };
        let again = OpenRequest {
            flags: READ_WRITE,
            kill_suidgid: false,
        };
        let opened = served.answer(&context(), attr.ino, Request::Open(again));
        let Ok(Answer::Opened(second)) = opened else {
            panic!("{opened:?}")
        };
        (served, attr.ino, [first.fh, second.fh])
    }

    fn flush(served: &CoreOperations, ino: Ino, fh: u64) {
        let request = Request::Flush { fh, lock_owner: 99 };
        served.answer(&context(), ino, request).unwrap();
    }

    fn write_lock(fh: u64, owner: u64, flock: bool) -> LockRequest {
        LockRequest {
            fh,
            owner,
            start: 0,
            end: KERNEL_END,
            kind: LockType::Write,
            pid: 1,
            flock,
        }
    }

    fn released(fh: u64, owner: u64, flock: bool) -> ReleaseRequest {
        ReleaseRequest {
            fh,
            flock_unlock: flock,
            lock_owner: owner,
        }
    }

    fn takes_over(flock: bool) {
        let (mut served, ino, [first, second]) = twice();
        served.closing.release_timeout = Duration::from_secs(60);
        let (one, other) = (write_lock(first, 11, flock), write_lock(second, 12, flock));
        served.setlk(ino, &one, None).unwrap();
        assert_eq!(served.setlk(ino, &other, None), Err(Errno::EAGAIN));
        // What close(2) waits for, with the owner of the process's own locks.
        flush(&served, ino, first);
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(20));
                let release = released(first, 11, flock);
                let release = Request::Release(release);
                served.answer(&context(), ino, release).unwrap();
            });
            let held = served.find_lock(ino, &other).unwrap();
            assert_eq!(held.kind, LockType::Unlock, "no lock is left");
            served.setlk(ino, &other, None).unwrap();
        });
    }

    #[test]
    fn a_lock_that_goes_with_its_open_file_is_in_nobodys_way_once_that_is_closed() {
        takes_over(true);
        takes_over(false);
    }

    #[test]
    fn a_lock_whose_open_file_lives_on_refuses_after_a_moment_and_then_at_once() {
        let (served, ino, [first, second]) = twice();
        let (one, other) = (write_lock(first, 11, true), write_lock(second, 12, true));
        served.setlk(ino, &one, None).unwrap();
        // A copy of the descriptor was closed, not the open file.
        flush(&served, ino, first);
        let began = Instant::now();
        for _ in 0..20 {
            let taken = served.setlk(ino, &other, None);
            assert_eq!(taken, Err(Errno::EAGAIN));
        }
        let release_timeout = served.closing.release_timeout;
        assert!(
            began.elapsed() < 20 * release_timeout,
            "waited for each time"
        );
    }
}
