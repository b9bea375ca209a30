//! Revoking a mounted file system: forced unmount without aborting the connection.
//!
//! An aborted connection cannot give references back, and the kernel's caches still answer. So the
//! connection stays: operations fail, and only requests that release something are served. The
//! mount ends with its last user, as any mount does.
//!
//! # Invariants
//! After [`Revocation::revoke`] no cache of the kernel answers for this mount. Earlier requests are
//! answered before the caches are emptied, so that none of their replies fills them again. The
//! kernel's references are counted when no request adds any.

use super::{counters::Counters, notifier::Notifier, service::Service};
use crate::{
    operations::{Context, Operations},
    wire::{Request, control::REVOKE, layout, reply::put},
};
use holdfast_types::{Errno, Result};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// How long requests under way are waited for. One that lasts longer, as it waits for a device, may
/// leave something in a cache.
const REPLIES_TIMEOUT: Duration = Duration::from_secs(5);

/// Whether a session's file system was revoked, and what revokes it.
pub(crate) struct Revocation {
    /// Read by every request, written once.
    pub(super) done: AtomicBool,
    pub(super) operations: Arc<dyn Operations>,
    pub(super) service: Arc<Service>,
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
            | Request::Destroy
    ) || matches!(request, Request::Ioctl { command, .. } if *command == REVOKE)
}

impl Revocation {
    pub(super) fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// Revokes the file system; `own` serves the request for it.
    ///
    /// # Errors
    /// Those of [`crate::Operations::revoke`].
    pub(super) fn revoke(&self, cx: Option<&Context<'_>>, own: Option<&Counters>) -> Result<()> {
        let revoked = self.operations.revoke(cx);
        if matches!(revoked, Err(Errno::EPERM | Errno::ENOTTY)) {
            return revoked;
        }
        // Every turn that `wait_for_replies` does not wait for sees this: see `Counters::begin`.
        self.done.store(true, Ordering::SeqCst);
        self.service.interrupts.close();
        let deadline = Instant::now() + REPLIES_TIMEOUT;
        if !self.service.registry.wait_for_replies(own, deadline) {
            tracing::warn!("requests from before the revocation are not answered yet");
        }
        self.empty_caches();
        revoked
    }

    /// Empties the kernel's caches of this mount.
    fn empty_caches(&self) {
        let notifier = &self.notifier;
        let mut known = Vec::new();
        self.operations.known(&mut |ino| known.push(ino));
        known.sort_unstable();
        known.dedup();
        // Pages and attributes. A lookup first asks for a directory's attributes, so names lead
        // nowhere from here on, in kernels without epochs too.
        for &ino in &known {
            notifier.invalidate_inode(ino, 0, 0);
        }
        notifier.expire_all_entries();
        // Inodes that are not open are dropped with all that they hold here. Inodes are mostly
        // older than their children, and the kernel can drop a parent only after these.
        known.reverse();
        notifier.prune(&known);
        notifier.flush();
    }

    /// Serves the ioctl that revokes the file system. Returns the number of open files without its
    /// own.
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
