//! Notifications to the kernel.
//!
//! # Invariants
//! Only the notifier's thread writes notifications: the kernel handles one under the inode's lock,
//! which a request under way may hold. So a thread that serves requests must not write one. Calls
//! only queue, except [`Notifier::drop_listing`], for which the kernel takes no such lock. Nothing
//! is dropped while the connection lives. When the kernel is slow, callers wait, unless they serve
//! requests.
//!
//! A notification of an inode by a request is sent [after its reply](AFTER_REPLY): the kernel would
//! drop the attributes in the reply. Until then [`Notifier::is_queued`] is true of the inode.
//!
//! The kernel ignores a notification of an inode until it has processed the first reply with it,
//! and then fills its caches from that reply. When it does so cannot be observed. So a notification
//! of an unknown inode is [late](Resend): it is repeated until the kernel accepts it or has no
//! reference of the inode.

use super::{
    notification::{Notification, Taken, sent},
    resend::Resend,
    service::Service,
};
use crate::{operations::Operations, transport::is_serving};
use holdfast_types::Ino;
use parking_lot::{Condvar, Mutex};
use std::{
    collections::VecDeque,
    mem,
    os::fd::OwnedFd,
    sync::{Arc, OnceLock},
    thread,
    time::{Duration, Instant},
};

/// Notifications waiting, above which callers wait.
const QUEUE_MAX: usize = 16384;
/// Inodes in one prune notification, at most.
const PRUNE_MAX: usize = 512;
/// Time from a notification by a request until it is sent. The kernel has the reply by then, unless
/// the machine is overloaded.
const AFTER_REPLY: Duration = Duration::from_millis(50);
/// How far back in the queue an equal notification is searched.
const REPEATS: usize = 8;

/// Invalidates the kernel's caches. Cheap to clone.
#[derive(Clone, Default)]
pub struct Notifier {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Notifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Notifier").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Shared {
    /// Guards the queue.
    state: Mutex<State>,
    work: Condvar,
    room: Condvar,
    /// The connection, once there is a session.
    device: OnceLock<Arc<OwnedFd>>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Notification>,
    /// Notifications of inodes by threads that serve requests, in the order of their due times.
    later: VecDeque<(Instant, Notification)>,
    sending: bool,
    closed: bool,
}

impl State {
    /// Queues a notification, unless an equal one is queued: that is sent after this change too.
    fn put(&mut self, notification: Notification) {
        let is_queued = matches!(notification, Notification::Inode { .. })
            && (self.queue.iter().rev().take(REPEATS)).any(|last| *last == notification);
        if !is_queued {
            self.queue.push_back(notification);
        }
    }

    /// Queues what is due. Returns the time until more is.
    fn ripen(&mut self, now: Instant) -> Option<Duration> {
        while self.later.front().is_some_and(|(due, _)| *due <= now) {
            let (_, notification) = self.later.pop_front()?;
            self.put(notification);
        }
        Some(self.later.front()?.0 - now)
    }
}

impl Notifier {
    /// A notifier. Notifications stay queued until its thread runs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Drops the inode's cached attributes, and cached data in `offset..offset+len` (`len` 0 or
    /// less: to the end; `offset` below 0: attributes only).
    pub fn invalidate_inode(&self, ino: Ino, offset: i64, len: i64) {
        self.queue(Notification::Inode { ino, offset, len });
    }

    /// Drops the cached entry of this name.
    pub fn invalidate_entry(&self, parent: Ino, name: &[u8]) {
        self.queue(Notification::Entry {
            parent,
            name: name.into(),
        });
    }

    /// Expires all names and absences (Linux 6.16; an older kernel ignores it).
    pub fn expire_all_entries(&self) {
        self.queue(Notification::Epoch);
    }

    /// Asks the kernel to drop those of these inodes that nothing uses: their FORGETs follow.
    pub fn prune(&self, nodes: &[Ino]) {
        for chunk in nodes.chunks(PRUNE_MAX) {
            self.queue(Notification::Prune(chunk.iter().map(|ino| ino.0).collect()));
        }
    }

    /// Drops a directory's cached listing before it returns. The caller serves a request of this
    /// directory, which therefore exists, and a directory has no dirty pages.
    pub(crate) fn drop_listing(&self, dir: Ino) {
        let notification = Notification::Inode {
            ino: dir,
            offset: 0,
            len: 0,
        };
        let device = self.shared.device.get();
        let is_dropped = |device: &Arc<OwnedFd>| {
            matches!(sent(device, &notification), Ok(Taken::Yes | Taken::Unknown))
        };
        if !device.is_some_and(is_dropped) {
            // The notifier's thread retries, and reports an error.
            self.queue(notification);
        }
    }

    /// Waits until what is queued is sent. Nothing waits for a reply.
    pub fn flush(&self) {
        let mut state = self.shared.state.lock();
        state.ripen(Instant::now() + AFTER_REPLY);
        self.shared.work.notify_one();
        while (state.sending || !state.queue.is_empty()) && !state.closed {
            self.shared.room.wait(&mut state);
        }
    }

    /// May a notification of this inode still have to reach the kernel? What is being sent may
    /// be one.
    pub(crate) fn is_queued(&self, ino: Ino) -> bool {
        let state = self.shared.state.lock();
        let later = state.later.iter().map(|(_, notification)| notification);
        let is_of =
            |it: &Notification| matches!(it, Notification::Inode { ino: of, .. } if *of == ino);
        state.sending || state.queue.iter().chain(later).any(is_of)
    }

    /// Length of the queue.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        let state = self.shared.state.lock();
        state.queue.len() + state.later.len()
    }

    fn queue(&self, notification: Notification) {
        let mut state = self.shared.state.lock();
        let serves = is_serving();
        while state.queue.len() >= QUEUE_MAX && !state.closed && !serves {
            self.shared.room.wait(&mut state);
        }
        if state.closed {
            return;
        }
        if serves && matches!(notification, Notification::Inode { .. }) {
            let due = Instant::now() + AFTER_REPLY;
            state.later.push_back((due, notification));
            if state.later.len() > 1 {
                return;
            }
        } else {
            state.put(notification);
        }
        self.shared.work.notify_one();
    }

    /// The connection is gone.
    pub(super) fn close(&self) {
        let mut state = self.shared.state.lock();
        state.closed = true;
        state.queue.clear();
        state.later.clear();
        self.shared.work.notify_all();
        self.shared.room.notify_all();
    }

    /// Sets the connection.
    pub(super) fn begin(&self, device: &Arc<OwnedFd>) {
        // A notifier has one session.
        let _ = self.shared.device.set(device.clone());
    }

    /// The thread.
    pub(super) fn run(&self, device: &OwnedFd, service: &Service, operations: &dyn Operations) {
        let _end = End {
            notifier: self,
            service,
        };
        let mut resend = Resend::default();
        let mut state = self.shared.state.lock();
        while !state.closed {
            let now = Instant::now();
            let pause = [state.ripen(now), resend.pause(now)]
                .into_iter()
                .flatten()
                .min();
            if state.queue.is_empty() && pause != Some(Duration::ZERO) {
                match pause {
                    Some(pause) => drop(self.shared.work.wait_for(&mut state, pause)),
                    None => self.shared.work.wait(&mut state),
                }
                continue;
            }
            let mut batch = mem::take(&mut state.queue);
            state.sending = true;
            self.shared.room.notify_all();
            drop(state);
            batch.extend(resend.due(Instant::now()));
            let alive = batch
                .iter()
                .all(|notification| match sent(device, notification) {
                    Ok(Taken::Unknown) => {
                        let keeps = |ino| operations.is_known(ino);
                        resend.put(notification, Instant::now(), keeps);
                        true
                    }
                    Ok(taken) => taken == Taken::Yes,
                    Err(error) => {
                        // The kernel would keep stale data.
                        service.fail(format_args!("the kernel took no notification: {error}"));
                        false
                    }
                });
            resend.tidy();
            state = self.shared.state.lock();
            state.sending = false;
            state.closed |= !alive;
            self.shared.room.notify_all();
        }
    }
}

/// Closes the queue when the notifier's thread ends, also by a panic.
struct End<'a> {
    notifier: &'a Notifier,
    service: &'a Service,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.service
                .fail("the thread of the notifications panicked");
        }
        self.notifier.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_by_a_request_is_queued_after_its_reply() {
        let notifier = Notifier::new();
        let request = notifier.clone();
        let serve = move || {
            crate::transport::mark_serving();
            request.invalidate_inode(Ino(7), 0, 0);
        };
        thread::spawn(serve).join().unwrap();
        notifier.invalidate_inode(Ino(8), 0, 0);
        let mut state = notifier.shared.state.lock();
        assert_eq!(state.queue.len(), 1);
        let pause = state.ripen(Instant::now()).expect("one is not due");
        assert!(pause <= AFTER_REPLY, "{pause:?}");
        assert_eq!(state.ripen(Instant::now() + AFTER_REPLY), None);
        assert_eq!(state.queue.len(), 2);
        drop(state);
        let queued = [7, 8, 9].map(|ino| notifier.is_queued(Ino(ino)));
        assert_eq!(queued, [true, true, false]);
    }
}
