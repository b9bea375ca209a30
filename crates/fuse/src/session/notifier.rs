//! Notifications: what this side tells the kernel unasked.
//!
//! # Invariants
//! Only the notifier's own thread writes notifications: the kernel takes one under the inode's
//! lock, which a request under way may hold, so a thread that serves requests must not. Calls
//! only queue, but for [`Notifier::drop_listing`], for which the kernel takes no such lock.
//! Nothing is dropped while the connection lives; when the kernel is slow, callers wait, unless
//! they serve requests.
//!
//! The kernel ignores a notification of an inode whose first reply it has not processed yet, and
//! then fills its caches from that reply. When it processes the reply is not observable. So a
//! notification of an unknown inode is [late](Late): it is sent again until the kernel takes it
//! or has given back all its references to the inode.

use super::late::Late;
use super::service::Service;
use crate::{
    transport::is_serving,
    wire::{flags::bit, layout},
};
use holdfast_types::Ino;
use parking_lot::{Condvar, Mutex};
use rustix::io::Errno as Code;
use std::{
    collections::VecDeque,
    io::IoSlice,
    mem,
    os::fd::OwnedFd,
    sync::{Arc, OnceLock},
    thread,
    time::{Duration, Instant},
};
use zerocopy::IntoBytes;

/// Notifications waiting, above which callers wait.
const QUEUE_MAX: usize = 16384;
/// Inodes in one prune notification, at most.
const PRUNE_MAX: usize = 512;
/// How often a notification is tried for which the kernel has no memory, and after what time again.
const TRIES_MAX: u32 = 1000;
const PAUSE: Duration = Duration::from_millis(10);
/// How far back in the queue a notice is looked for that says the same.
const REPEATS: usize = 8;

#[derive(PartialEq)]
pub(super) enum Notification {
    Inode {
        ino: Ino,
        offset: i64,
        len: i64,
    },
    Entry {
        parent: Ino,
        name: Box<[u8]>,
        expire: bool,
    },
    Delete {
        parent: Ino,
        child: Ino,
        name: Box<[u8]>,
    },
    Epoch,
    Prune(Box<[u64]>),
}

/// Tells the kernel to forget what it has cached. Cheap to clone.
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
    /// Guards what waits to be sent.
    state: Mutex<State>,
    work: Condvar,
    room: Condvar,
    /// Where notices go, once there is a session.
    device: OnceLock<Arc<OwnedFd>>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Notification>,
    sending: bool,
    closed: bool,
}

impl Notifier {
    /// A notifier whose notices wait until its thread runs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The inode changed: its attributes are asked anew, and cached data in `offset..offset+len`
    /// goes (`len` 0 or less: to the end; `offset` below 0: attributes only).
    pub fn invalidate_inode(&self, ino: Ino, offset: i64, len: i64) {
        self.queue(Notification::Inode { ino, offset, len });
    }

    /// The name in `parent` means something else, or nothing, or something now.
    pub fn invalidate_entry(&self, parent: Ino, name: &[u8]) {
        self.queue(Notification::Entry {
            parent,
            name: name.into(),
            expire: false,
        });
    }

    /// The name in `parent` is to be asked anew before it is believed again.
    pub fn expire_entry(&self, parent: Ino, name: &[u8]) {
        self.queue(Notification::Entry {
            parent,
            name: name.into(),
            expire: true,
        });
    }

    /// Every name, and every absence of one, is to be asked anew before it is believed again
    /// (Linux 6.16; an older kernel goes on believing).
    pub fn expire_all_entries(&self) {
        self.queue(Notification::Epoch);
    }

    /// The name, which meant `child`, was removed: watchers in the kernel hear of it.
    pub fn delete_entry(&self, parent: Ino, child: Ino, name: &[u8]) {
        self.queue(Notification::Delete {
            parent,
            child,
            name: name.into(),
        });
    }

    /// Asks the kernel to let go of these inodes, where nothing uses them: their FORGETs follow.
    pub fn prune(&self, nodes: &[Ino]) {
        for chunk in nodes.chunks(PRUNE_MAX) {
            self.queue(Notification::Prune(chunk.iter().map(|ino| ino.0).collect()));
        }
    }

    /// The kernel drops what it keeps of a directory's listing before this returns. It is called by
    /// a thread that serves a request of this directory, which exists then, and whose pages have
    /// nothing to be written.
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
            // The thread tries it again, and says what is wrong.
            self.queue(notification);
        }
    }

    /// Waits until the kernel has taken everything queued so far.
    pub fn flush(&self) {
        let mut state = self.shared.state.lock();
        while (state.sending || !state.queue.is_empty()) && !state.closed {
            self.shared.room.wait(&mut state);
        }
    }

    /// Notices that wait to be sent.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.shared.state.lock().queue.len()
    }

    fn queue(&self, notification: Notification) {
        let mut state = self.shared.state.lock();
        while state.queue.len() >= QUEUE_MAX && !state.closed && !is_serving() {
            self.shared.room.wait(&mut state);
        }
        if !state.closed {
            // One that still waits is sent after this change as well.
            if let Notification::Inode { .. } = notification
                && state
                    .queue
                    .iter()
                    .rev()
                    .take(REPEATS)
                    .any(|last| *last == notification)
            {
                return;
            }
            state.queue.push_back(notification);
            self.shared.work.notify_one();
        }
    }

    /// The connection is gone.
    pub(super) fn close(&self) {
        let mut state = self.shared.state.lock();
        state.closed = true;
        state.queue.clear();
        self.shared.work.notify_all();
        self.shared.room.notify_all();
    }

    /// Where notices go from now on.
    pub(super) fn begin(&self, device: &Arc<OwnedFd>) {
        // A notifier has one session.
        let _ = self.shared.device.set(device.clone());
    }

    /// The thread.
    pub(super) fn run(&self, device: &OwnedFd, service: &Service) {
        let _end = End {
            notifier: self,
            service,
        };
        let mut late = Late::default();
        let mut state = self.shared.state.lock();
        while !state.closed {
            let pause = late.pause(Instant::now());
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
            batch.extend(late.due(Instant::now()));
            let alive = batch
                .iter()
                .all(|notification| match sent(device, notification) {
                    Ok(Taken::Unknown) => {
                        let keeps = |ino| service.handler.operations.is_known(ino);
                        late.put(notification, Instant::now(), keeps);
                        true
                    }
                    Ok(taken) => taken == Taken::Yes,
                    Err(error) => {
                        // The kernel would go on believing what is not true any more.
                        service.fail(format_args!("the kernel took no notification: {error}"));
                        false
                    }
                });
            late.tidy();
            state = self.shared.state.lock();
            state.sending = false;
            state.closed |= !alive;
            self.shared.room.notify_all();
        }
    }
}

/// What is left of the notifier's thread, however it goes: nobody waits for it any more.
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

/// What became of a notice.
#[derive(Clone, Copy, PartialEq)]
enum Taken {
    Yes,
    /// The kernel does not know the inode.
    Unknown,
    /// The connection is gone.
    Gone,
}

/// Sends one notice, again and again while the kernel has no memory for it.
fn sent(device: &OwnedFd, notification: &Notification) -> Result<Taken, Code> {
    let mut tries = 0;
    loop {
        match send(device, notification) {
            Ok(()) => return Ok(Taken::Yes),
            Err(Code::NODEV | Code::NOTCONN | Code::CONNABORTED) => return Ok(Taken::Gone),
            Err(Code::NOENT) if matches!(notification, Notification::Inode { .. }) => {
                return Ok(Taken::Unknown);
            }
            // Not cached, in use (a directory with something mounted below), or an older kernel.
            Err(
                Code::NOENT
                | Code::NOTDIR
                | Code::NOTEMPTY
                | Code::BUSY
                | Code::INVAL
                | Code::NOSYS,
            ) => return Ok(Taken::Yes),
            Err(Code::NOMEM | Code::AGAIN | Code::INTR) if tries < TRIES_MAX => {
                tries += 1;
                thread::sleep(PAUSE);
            }
            Err(error) => return Err(error),
        }
    }
}

fn send(device: &OwnedFd, notification: &Notification) -> Result<(), Code> {
    match notification {
        &Notification::Inode { ino, offset, len } => {
            let body = layout::NotifyInvalInode {
                ino: ino.0,
                off: offset,
                len,
            };
            write(device, bit::NOTIFY_INVAL_INODE, &[body.as_bytes()])
        }
        Notification::Entry {
            parent,
            name,
            expire,
        } => {
            let body = layout::NotifyInvalEntry {
                parent: parent.0,
                namelen: name.len() as u32,
                flags: if *expire { bit::ENTRY_EXPIRE_ONLY } else { 0 },
            };
            write(
                device,
                bit::NOTIFY_INVAL_ENTRY,
                &[body.as_bytes(), name, &[0]],
            )
        }
        Notification::Delete {
            parent,
            child,
            name,
        } => {
            let body = layout::NotifyDelete {
                parent: parent.0,
                child: child.0,
                namelen: name.len() as u32,
                padding: 0,
            };
            write(device, bit::NOTIFY_DELETE, &[body.as_bytes(), name, &[0]])
        }
        Notification::Epoch => write(device, bit::NOTIFY_INC_EPOCH, &[]),
        Notification::Prune(nodes) => {
            let body = layout::NotifyPrune {
                count: nodes.len() as u32,
                ..Default::default()
            };
            write(
                device,
                bit::NOTIFY_PRUNE,
                &[body.as_bytes(), nodes.as_bytes()],
            )
        }
    }
}

fn write(device: &OwnedFd, code: i32, parts: &[&[u8]]) -> Result<(), Code> {
    let len = parts.iter().map(|part| part.len()).sum::<usize>();
    let header = layout::OutHeader {
        len: (size_of::<layout::OutHeader>() + len) as u32,
        error: code,
        unique: 0,
    };
    let mut slices = [IoSlice::new(&[]); 4];
    slices[0] = IoSlice::new(header.as_bytes());
    for (slice, part) in slices[1..].iter_mut().zip(parts) {
        *slice = IoSlice::new(part);
    }
    rustix::io::writev(device, &slices[..=parts.len()]).map(drop)
}
