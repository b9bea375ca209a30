//! Taking a mounted file system away from its users: forced unmount, without cutting the
//! connection.
//!
//! A connection that is cut takes every way of giving things back with it, and what the kernel has
//! cached goes on answering. So the connection stays: operations fail, and only what gives
//! something back is served. The mount ends with its last user, as any mount does.
//!
//! # Invariants
//! After [`Handler::revoke`] no cache of the kernel answers for this mount. Requests that were
//! begun before are answered before the caches are emptied (so that none of their replies fills
//! them again), and the kernel's references are counted when nobody takes new ones.

use super::{
    counters::{Counters, Registry},
    handler::Handler,
    notifier::Notifier,
};
use crate::{
    operations::Context,
    wire::{Request, layout, reply::put},
};
use holdfast_types::{Errno, Result};
use rustix::ioctl::{Opcode, opcode};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// The ioctl on the mount's root directory that asks for it, and answers how many files are open
/// then, the one that it is asked by included.
pub(crate) const REVOKE: Opcode = opcode::read::<u64>(b'h', 0xf5);

/// How long requests under way may take to be answered. What lasts longer (it waits for a device)
/// may leave something in a cache.
const SETTLE_TIME: Duration = Duration::from_secs(5);

/// Whether a session's file system was taken away, and what takes it away.
pub(crate) struct Revocation {
    /// Read by every request, written once.
    done: AtomicBool,
    pub(super) registry: Arc<Registry>,
    pub(super) notifier: Notifier,
}

/// Is this request served after a revocation?
pub(super) fn outlives(request: &Request<'_>) -> bool {
    matches!(
        request,
        Request::Forget { .. }
            | Request::BatchForget(_)
            | Request::Interrupt { .. }
            | Request::NotifyReply
            | Request::Flush { .. }
            | Request::Release(_)
            | Request::ReleaseDir(_)
            | Request::Destroy
    ) || matches!(request, Request::Ioctl { command, .. } if *command == REVOKE)
}

impl Revocation {
    pub(super) fn new(notifier: Notifier) -> Self {
        Self {
            done: AtomicBool::new(false),
            registry: Arc::default(),
            notifier,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// Waits until the kernel has the replies to all requests that were begun before, except the
    /// one that `own` serves.
    fn settle(&self, own: Option<&Counters>) -> bool {
        let deadline = Instant::now() + SETTLE_TIME;
        self.registry.settle(own, deadline)
    }
}

impl Handler {
    /// Takes the file system away; `own` serves the request that asks for it.
    ///
    /// # Errors
    /// Those of [`crate::Operations::revoke`].
    pub(super) fn revoke(&self, cx: Option<&Context<'_>>, own: Option<&Counters>) -> Result<()> {
        let revoked = self.operations.revoke(cx);
        if matches!(revoked, Err(Errno::EPERM | Errno::ENOTTY)) {
            return revoked;
        }
        // Seen by every turn that `settle` does not wait for: see `Counters::begin`.
        self.revocation.done.store(true, Ordering::SeqCst);
        self.interrupts.close();
        if !self.revocation.settle(own) {
            tracing::warn!("requests from before the revocation are not answered yet");
        }
        self.empty_caches();
        revoked
    }

    /// Makes the kernel forget everything it believes of this mount.
    fn empty_caches(&self) {
        let notifier = &self.revocation.notifier;
        let mut known = Vec::new();
        self.operations.known(&mut |ino| known.push(ino));
        known.sort_unstable();
        known.dedup();
        // Pages and attributes. Directories' attributes are what a walk by name asks for first, so
        // that names lead nowhere from here on, in kernels without epochs too.
        for &ino in &known {
            notifier.invalidate_inode(ino, 0, 0);
        }
        notifier.expire_all_entries();
        // What nobody has open goes, with all it holds here. An inode is mostly older than those
        // below it, and it goes after them.
        known.reverse();
        notifier.prune(&known);
        notifier.flush();
    }

    /// The ioctl that takes the file system away. Answers how many files are open besides the one that it came by.
    pub(super) fn ioctl_revoke(
        &self,
        cx: &Context<'_>,
        fh: u64,
        room: u32,
        out: &mut [u8],
        own: &Counters,
    ) -> Result<usize> {
        if (room as usize) < size_of::<u64>() {
            return Err(Errno::ENOTTY);
        }
        self.revoke(Some(cx), Some(own))?;
        let len = put(out, &layout::IoctlOut::default());
        let own = u64::from(fh != 0);
        let open_files = self.operations.open_files().saturating_sub(own);
        Ok(len + put(&mut out[len..], &open_files))
    }
}
