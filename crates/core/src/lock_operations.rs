//! File locks by inode: fcntl(2) and flock(2).

use crate::FileSystem;
use crate::core::Core;
use crate::locks::{Cancel, HeldLock, LockKind, LockOwner, LockRange, LockRequest, LockSpace};
use crate::node::Node;
use crate::types::Result;

impl FileSystem {
    /// The first lock that conflicts with this one; `None`: it could be taken.
    ///
    /// # Errors
    /// `EINVAL` for a range that ends before it starts.
    pub fn get_lock(
        &self,
        node: &Node,
        owner: LockOwner,
        space: LockSpace,
        kind: LockKind,
        range: LockRange,
    ) -> Result<Option<HeldLock>> {
        self.core.alive()?;
        match node.inode().locks() {
            Some(locks) => locks.conflict(owner, space, kind, range),
            None => Ok(None),
        }
    }

    /// Takes, converts or (`kind == None`) releases a lock; with `wait`, sleeps until it is granted
    /// or the wait is cancelled.
    ///
    /// # Errors
    /// `EAGAIN` if another owner's lock conflicts; `EINTR` when cancelled. `EDEADLK` if waiting
    /// would close a cycle (POSIX locks only). `EINVAL` for a range that ends before it starts;
    /// `ENOLCK` for too many locks. `EIO` when the file system was, or is meanwhile, revoked.
    #[expect(clippy::too_many_arguments, reason = "fcntl(2) says as much")]
    pub fn set_lock(
        &self,
        node: &Node,
        owner: LockOwner,
        space: LockSpace,
        kind: Option<LockKind>,
        range: LockRange,
        pid: u32,
        wait: Option<&Cancel>,
    ) -> Result<()> {
        let request = LockRequest {
            owner,
            space,
            kind,
            range,
            pid,
        };
        self.core.alive()?;
        let (locks, graph) = (node.inode().locks_or_new(), &self.core.lock_graph);
        let set = locks.set(graph, &request, wait);
        // `revoke` sets its mark before it releases all locks: either this lock was among them, or
        // the mark is seen here.
        if let Err(revoked) = self.core.alive() {
            locks.release(graph, owner, space);
            return Err(revoked);
        }
        set
    }

    /// Releases all locks of an owner in one family, as close(2) does with POSIX locks.
    pub fn release_locks(&self, node: &Node, owner: LockOwner, space: LockSpace) {
        release_locks(&self.core, node, owner, space);
    }
}

pub(crate) fn release_locks(core: &Core, node: &Node, owner: LockOwner, space: LockSpace) {
    if let Some(locks) = node.inode().locks() {
        locks.release(&core.lock_graph, owner, space);
    }
}
