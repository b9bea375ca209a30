//! Decoding the requests about open files.

use super::{
    Malformed, Opcode, Request,
    cursor::{Cursor, Decoded},
    flags::bit,
    layout,
    request::{
        CopyRequest, CreateRequest, LockRequest, LockType, OpenRequest, ReadRequest,
        ReleaseRequest, WriteRequest,
    },
};
use holdfast_types::Ino;

/// COPY_FILE_RANGE answers in 32 bits: the most that it can report, in whole pages.
const NARROW_COPY_MAX: u64 = 0xffff_f000;

impl<'a> Cursor<'a> {
    pub(super) fn open(&mut self, opcode: Opcode) -> Decoded<'a> {
        if matches!(opcode, Opcode::Open | Opcode::OpenDir) {
            let raw = self.fixed::<layout::OpenIn>()?;
            let open = OpenRequest {
                flags: raw.flags.cast_signed(),
                kill_suidgid: raw.open_flags & bit::OPEN_KILL_SUIDGID != 0,
            };
            return Ok(match opcode {
                Opcode::Open => Request::Open(open),
                _ => Request::OpenDir(open),
            });
        }
        let raw = self.fixed::<layout::CreateIn>()?;
        let create = CreateRequest {
            extensions: self.extensions()?,
            // The kernel puts a placeholder here for a file without a name.
            name: if opcode == Opcode::TmpFile {
                &[]
            } else {
                self.name()?
            },
            mode: raw.mode,
            umask: raw.umask,
            flags: raw.flags.cast_signed(),
            kill_suidgid: raw.open_flags & bit::OPEN_KILL_SUIDGID != 0,
        };
        Ok(match opcode {
            Opcode::Create => Request::Create(create),
            _ => Request::TmpFile(create),
        })
    }

    pub(super) fn read(&mut self, opcode: Opcode) -> Decoded<'a> {
        let layout::ReadIn {
            fh,
            offset,
            size,
            flags,
            ..
        } = self.fixed()?;
        let read = ReadRequest {
            fh,
            offset,
            size,
            flags: flags.cast_signed(),
        };
        let plus = opcode == Opcode::ReadDirPlus;
        Ok(match opcode {
            Opcode::Read => Request::Read(read),
            _ => Request::ReadDir { read, plus },
        })
    }

    pub(super) fn write(&mut self) -> Decoded<'a> {
        let layout::WriteIn {
            fh,
            offset,
            size,
            write_flags,
            flags,
            ..
        } = self.fixed()?;
        Ok(Request::Write(WriteRequest {
            fh,
            offset,
            data: self.data(size)?,
            flags: flags.cast_signed(),
            from_cache: write_flags & bit::WRITE_CACHE != 0,
            kill_suidgid: write_flags & bit::WRITE_KILL_SUIDGID != 0,
        }))
    }

    pub(super) fn release(&mut self) -> Decoded<'a> {
        let layout::ReleaseIn {
            fh,
            release_flags,
            lock_owner,
            ..
        } = self.fixed()?;
        Ok(Request::Release(ReleaseRequest {
            fh,
            flock_unlock: release_flags & bit::RELEASE_FLOCK_UNLOCK != 0,
            lock_owner,
        }))
    }

    pub(super) fn flush(&mut self) -> Decoded<'a> {
        let layout::FlushIn { fh, lock_owner, .. } = self.fixed()?;
        Ok(Request::Flush { fh, lock_owner })
    }

    pub(super) fn fsync(&mut self) -> Decoded<'a> {
        let raw = self.fixed::<layout::FsyncIn>()?;
        Ok(Request::Fsync {
            fh: raw.fh,
            data_only: raw.fsync_flags & bit::FSYNC_FDATASYNC != 0,
        })
    }

    pub(super) fn lock(&mut self, opcode: Opcode) -> Decoded<'a> {
        let layout::LkIn {
            fh,
            owner,
            start,
            end,
            kind,
            pid,
            lk_flags,
            ..
        } = self.fixed()?;
        let kind = match kind.cast_signed() {
            libc::F_RDLCK => LockType::Read,
            libc::F_WRLCK => LockType::Write,
            libc::F_UNLCK => LockType::Unlock,
            _ => return Err(Malformed::new("lock type is unknown")),
        };
        if end < start {
            return Err(Malformed::new("lock ends before it starts"));
        }
        let lock = LockRequest {
            fh,
            owner,
            start,
            end,
            kind,
            pid,
            flock: lk_flags & bit::LK_FLOCK != 0,
        };
        Ok(match opcode {
            Opcode::GetLk => Request::GetLk(lock),
            Opcode::SetLk => Request::SetLk(lock),
            _ => Request::SetLkW(lock),
        })
    }

    pub(super) fn range(&mut self, opcode: Opcode) -> Decoded<'a> {
        Ok(match opcode {
            Opcode::Fallocate => {
                let layout::FallocateIn {
                    fh,
                    offset,
                    length,
                    mode,
                    ..
                } = self.fixed()?;
                Request::Fallocate {
                    fh,
                    offset,
                    length,
                    mode,
                }
            }
            Opcode::Lseek => {
                let layout::LseekIn {
                    fh, offset, whence, ..
                } = self.fixed()?;
                Request::Lseek { fh, offset, whence }
            }
            _ => {
                let layout::CopyFileRangeIn {
                    fh_in,
                    off_in,
                    nodeid_out,
                    fh_out,
                    off_out,
                    len,
                    flags,
                } = self.fixed()?;
                let wide = opcode == Opcode::CopyFileRange64;
                Request::CopyFileRange(CopyRequest {
                    fh_in,
                    offset_in: off_in,
                    ino_out: Ino(nodeid_out),
                    fh_out,
                    offset_out: off_out,
                    len: if wide { len } else { len.min(NARROW_COPY_MAX) },
                    flags,
                    wide,
                })
            }
        })
    }
}
