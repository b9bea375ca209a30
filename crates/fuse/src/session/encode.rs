//! Replies of fixed size: from an operation's answer to the kernel's structure.

use crate::{
    operations::{Answer, FoundLock, Opened},
    wire::{
        LockType, layout,
        reply::{Validities, put, statfs},
    },
};
use holdfast_types::{Errno, Result};

/// Writes the result of an ioctl(2), for which its caller has `room` bytes.
pub(super) fn encode_ioctl(bytes: &[u8], room: u32, out: &mut [u8]) -> Result<usize> {
    let len = put(out, &layout::IoctlOut::default());
    let end = len + bytes.len();
    if bytes.len() > room as usize || end > out.len() {
        return Err(Errno::ERANGE);
    }
    out[len..end].copy_from_slice(bytes);
    Ok(end)
}

/// Writes the answer to `out`; returns its length.
pub(super) fn encode(answer: Answer, validities: &Validities, out: &mut [u8]) -> Result<usize> {
    hop!();
    Ok(match answer {
        Answer::Done => 0,
        Answer::Entry(attr) => put(out, &validities.entry(&attr)),
        Answer::Negative => put(out, &validities.negative()),
        Answer::Attr(attr) => put(out, &validities.attr(&attr)),
        Answer::StatX(attr) => put(out, &validities.statx(&attr)),
        Answer::Opened(opened) => put(out, &open_out(&opened)),
        Answer::Created(attr, opened) => {
            let entry = validities.entry(&attr);
            let open = open_out(&opened);
            put(out, &layout::CreateOut { entry, open })
        }
        Answer::StatFs(stat) => put(out, &statfs(&stat)),
        Answer::Lock(lock) => put(out, &lock_out(&lock)),
        Answer::Offset(bytes) | Answer::Copied { bytes, wide: true } => put(out, &bytes),
        Answer::Copied { bytes, .. } => put(out, &[narrow(bytes)?, 0]),
        Answer::Written(bytes) => put(out, &[narrow(bytes as u64)?, 0]),
    })
}

fn narrow(bytes: u64) -> Result<u32> {
    u32::try_from(bytes).map_err(|_| Errno::EIO)
}

fn open_out(opened: &Opened) -> layout::OpenOut {
    layout::OpenOut {
        fh: opened.fh,
        open_flags: opened.flags.bits(),
        backing_id: opened.backing.unwrap_or_default(),
    }
}

fn lock_out(lock: &FoundLock) -> layout::LkOut {
    let kind = match lock.kind {
        LockType::Read => libc::F_RDLCK,
        LockType::Write => libc::F_WRLCK,
        LockType::Unlock => libc::F_UNLCK,
    };
    layout::LkOut {
        start: lock.start,
        end: lock.end,
        kind: kind.cast_unsigned(),
        pid: lock.pid,
    }
}
