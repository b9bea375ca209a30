//! Replies of fixed shape: what an operation answered, as the kernel reads it.

use crate::{
    operations::{FoundLock, Opened},
    wire::{
        LockType, layout,
        reply::{Validities, put, statfs},
    },
};
use holdfast_types::{Attr, Errno, Result, StatFs};

/// What an operation answered, free of any borrow of the request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    Done,
    /// LOOKUP found it, or something was made.
    Entry(Attr),
    /// LOOKUP found nothing, and the kernel may remember that.
    Absent,
    Attr(Attr),
    StatX(Attr),
    Opened(Opened),
    Created(Attr, Opened),
    Written(usize),
    Copied {
        bytes: u64,
        wide: bool,
    },
    StatFs(StatFs),
    Lock(FoundLock),
    Offset(u64),
}

/// Writes what an ioctl(2) brings back, for which its caller has so much room.
pub(super) fn encode_ioctl(bytes: &[u8], room: u32, out: &mut [u8]) -> Result<usize> {
    let len = put(out, &layout::IoctlOut::default());
    let end = len + bytes.len();
    if bytes.len() > room as usize || end > out.len() {
        return Err(Errno::ERANGE);
    }
    out[len..end].copy_from_slice(bytes);
    Ok(end)
}

/// Writes the answer to `out`; gives its length.
pub(super) fn encode(
    answer: Result<Answer>,
    validities: &Validities,
    out: &mut [u8],
) -> Result<usize> {
    Ok(match answer? {
        Answer::Done => 0,
        Answer::Entry(attr) => put(out, &validities.entry(&attr)),
        Answer::Absent => put(out, &validities.negative()),
        Answer::Attr(attr) => put(out, &validities.attr(&attr)),
        Answer::StatX(attr) => put(out, &validities.statx(&attr)),
        Answer::Opened(opened) => put(out, &open_out(&opened)),
        Answer::Created(attr, opened) => {
            let entry = validities.entry(&attr);
            put(
                out,
                &layout::CreateOut {
                    entry,
                    open: open_out(&opened),
                },
            )
        }
        Answer::Written(bytes) => {
            let size = u32::try_from(bytes).map_err(|_| Errno::EIO)?;
            put(out, &layout::WriteOut { size, padding: 0 })
        }
        Answer::Copied { bytes, wide: true } => put(
            out,
            &layout::CopyFileRangeOut {
                bytes_copied: bytes,
            },
        ),
        Answer::Copied { bytes, wide: false } => {
            let size = u32::try_from(bytes).map_err(|_| Errno::EOVERFLOW)?;
            put(out, &layout::WriteOut { size, padding: 0 })
        }
        Answer::StatFs(stat) => put(out, &statfs(&stat)),
        Answer::Lock(lock) => put(out, &lock_out(&lock)),
        Answer::Offset(offset) => put(out, &layout::LseekOut { offset }),
    })
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
