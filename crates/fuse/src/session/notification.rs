//! One notification: its value, its bytes, and how it is sent.

use crate::wire::{flags::bit, layout};
use holdfast_types::Ino;
use rustix::io::Errno as Code;
use std::{io::IoSlice, os::fd::OwnedFd, thread, time::Duration};
use zerocopy::IntoBytes;

/// Tries of a notification for which the kernel has no memory, and the pause between them.
const TRIES_MAX: u32 = 1000;
const PAUSE: Duration = Duration::from_millis(10);

/// Something that the kernel must drop.
#[derive(PartialEq)]
pub(super) enum Notification {
    Inode { ino: Ino, offset: i64, len: i64 },
    Entry { parent: Ino, name: Box<[u8]> },
    Epoch,
    Prune(Box<[u64]>),
}

/// Outcome of a notification.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Taken {
    Yes,
    /// The kernel does not know the inode.
    Unknown,
    /// The connection is gone.
    Gone,
}

/// Sends one notification; repeats it while the kernel has no memory for it.
pub(super) fn sent(device: &OwnedFd, notification: &Notification) -> Result<Taken, Code> {
    let mut tries = 0;
    loop {
        match send(device, notification) {
            Ok(()) => return Ok(Taken::Yes),
            Err(Code::NODEV | Code::NOTCONN | Code::CONNABORTED) => return Ok(Taken::Gone),
            Err(Code::NOENT) if matches!(notification, Notification::Inode { .. }) => {
                return Ok(Taken::Unknown);
            }
            // Not cached, in use (a directory with a mount below), or an older kernel.
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
        Notification::Entry { parent, name } => {
            let body = layout::NotifyInvalEntry {
                parent: parent.0,
                namelen: name.len() as u32,
                flags: 0,
            };
            let parts = [body.as_bytes(), name, &[0]];
            write(device, bit::NOTIFY_INVAL_ENTRY, &parts)
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
