//! Notifications: what this side tells the kernel unasked.
//!
//! # Invariants
//! Only the notifier's own thread writes notifications: the kernel takes one under the inode's
//! lock, which a request under way may hold, so a thread that serves requests must not. Calls
//! only queue. Nothing is dropped while the connection lives; when the kernel is slow, callers
//! wait, unless they serve requests.

use super::service::Service;
use crate::{
    transport::is_serving,
    wire::{flags::bit, layout},
};
use holdfast_types::Ino;
use parking_lot::{Condvar, Mutex};
use rustix::io::Errno as Code;
use std::{
    collections::VecDeque, io::IoSlice, mem, os::fd::OwnedFd, sync::Arc, thread, time::Duration,
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
enum Notice {
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
}

#[derive(Default)]
struct State {
    queue: VecDeque<Notice>,
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
        self.queue(Notice::Inode { ino, offset, len });
    }

    /// The name in `parent` means something else, or nothing, or something now.
    pub fn invalidate_entry(&self, parent: Ino, name: &[u8]) {
        self.queue(Notice::Entry {
            parent,
            name: name.into(),
            expire: false,
        });
    }

    /// The name in `parent` is to be asked anew before it is believed again.
    pub fn expire_entry(&self, parent: Ino, name: &[u8]) {
        self.queue(Notice::Entry {
            parent,
            name: name.into(),
            expire: true,
        });
    }

    /// Every name, and every absence of one, is to be asked anew before it is believed again
    /// (Linux 6.16; an older kernel goes on believing).
    pub fn expire_all_entries(&self) {
        self.queue(Notice::Epoch);
    }

    /// The name, which meant `child`, was removed: watchers in the kernel hear of it.
    pub fn delete_entry(&self, parent: Ino, child: Ino, name: &[u8]) {
        self.queue(Notice::Delete {
            parent,
            child,
            name: name.into(),
        });
    }

    /// Asks the kernel to let go of these inodes, where nothing uses them: their FORGETs follow.
    pub fn prune(&self, nodes: &[Ino]) {
        for chunk in nodes.chunks(PRUNE_MAX) {
            self.queue(Notice::Prune(chunk.iter().map(|ino| ino.0).collect()));
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

    fn queue(&self, notice: Notice) {
        let mut state = self.shared.state.lock();
        while state.queue.len() >= QUEUE_MAX && !state.closed && !is_serving() {
            self.shared.room.wait(&mut state);
        }
        if !state.closed {
            // One that still waits is sent after this change as well.
            if let Notice::Inode { .. } = notice
                && state
                    .queue
                    .iter()
                    .rev()
                    .take(REPEATS)
                    .any(|last| *last == notice)
            {
                return;
            }
            state.queue.push_back(notice);
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

    /// The thread.
    pub(super) fn run(&self, device: &OwnedFd, service: &Service) {
        let _end = End {
            notifier: self,
            service,
        };
        let mut state = self.shared.state.lock();
        while !state.closed {
            if state.queue.is_empty() {
                self.shared.work.wait(&mut state);
                continue;
            }
            let batch = mem::take(&mut state.queue);
            state.sending = true;
            self.shared.room.notify_all();
            drop(state);
            let alive = batch.iter().all(|notice| match sent(device, notice) {
                Ok(alive) => alive,
                Err(error) => {
                    // The kernel would go on believing what is not true any more.
                    service.fail(format_args!("the kernel took no notification: {error}"));
                    false
                }
            });
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

/// Sends one notice, again and again while the kernel has no memory for it; `false` if the
/// connection is gone.
fn sent(device: &OwnedFd, notice: &Notice) -> Result<bool, Code> {
    let mut tries = 0;
    loop {
        match send(device, notice) {
            Ok(()) => return Ok(true),
            Err(Code::NODEV | Code::NOTCONN | Code::CONNABORTED) => return Ok(false),
            // Not cached, in use (a directory with something mounted below), or an older kernel.
            Err(
                Code::NOENT
                | Code::NOTDIR
                | Code::NOTEMPTY
                | Code::BUSY
                | Code::INVAL
                | Code::NOSYS,
            ) => return Ok(true),
            Err(Code::NOMEM | Code::AGAIN | Code::INTR) if tries < TRIES_MAX => {
                tries += 1;
                thread::sleep(PAUSE);
            }
            Err(error) => return Err(error),
        }
    }
}

fn send(device: &OwnedFd, notice: &Notice) -> Result<(), Code> {
    match notice {
        &Notice::Inode { ino, offset, len } => {
            let body = layout::NotifyInvalInode {
                ino: ino.0,
                off: offset,
                len,
            };
            write(device, bit::NOTIFY_INVAL_INODE, &[body.as_bytes()])
        }
        Notice::Entry {
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
        Notice::Delete {
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
        Notice::Epoch => write(device, bit::NOTIFY_INC_EPOCH, &[]),
        Notice::Prune(nodes) => {
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
