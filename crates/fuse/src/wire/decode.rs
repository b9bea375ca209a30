//! From bytes to [`Request`]: total, bounds-checked, without allocation.

use super::{
    Header, InitFlags, Malformed, Opcode, Request,
    cursor::{Body, Cursor},
    flags::bit,
    layout,
    request::{
        CopyRequest, CreateRequest, Forgets, InitRequest, LockRequest, LockType, OpenRequest,
        ReadRequest, ReleaseRequest, SetAttrRequest, SetXattrRequest, WriteRequest,
    },
};
use holdfast_types::{Ino, SetAttr, SetTime, Time};
use zerocopy::FromBytes;

/// COPY_FILE_RANGE answers in 32 bits: the most that it can report, in whole pages.
const NARROW_COPY_MAX: u64 = 0xffff_f000;

/// What was negotiated at INIT and changes the form of requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dialect {
    /// SETXATTR comes in its longer form.
    pub setxattr_ext: bool,
}

impl Header {
    /// Decodes the header in front of a request.
    ///
    /// # Errors
    /// [`Malformed`] when there are fewer than 40 bytes, or the lengths in it contradict.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let (raw, _) = layout::InHeader::read_from_prefix(bytes)
            .map_err(|_| Malformed::new("header is cut off"))?;
        let extension_len = u32::from(raw.total_extlen) * 8;
        let rest = (raw.len as usize)
            .checked_sub(size_of::<layout::InHeader>())
            .ok_or(Malformed::new("length is below the header's"))?;
        if extension_len as usize > rest {
            return Err(Malformed::new("extensions are longer than the request"));
        }
        Ok(Self {
            opcode: raw.opcode,
            unique: raw.unique,
            ino: Ino(raw.nodeid),
            uid: raw.uid,
            gid: raw.gid,
            pid: raw.pid,
            len: raw.len,
            extension_len,
        })
    }
}

type Decoded<'a> = Result<Request<'a>, Malformed>;

impl<'a> Request<'a> {
    /// Decodes what stands behind `header`.
    ///
    /// An unknown opcode is no error, but [`Request::Unknown`].
    ///
    /// # Errors
    /// [`Malformed`] when a structure, name, list or extension does not fit its bytes.
    pub fn decode(header: &Header, body: Body<'a>, dialect: Dialect) -> Result<Self, Malformed> {
        let Some(opcode) = Opcode::from_raw(header.opcode) else {
            return Ok(Self::Unknown);
        };
        let mut at = Cursor::new(header, body)?;
        Ok(match opcode {
            Opcode::Lookup => Self::Lookup { name: at.name()? },
            Opcode::Unlink => Self::Unlink { name: at.name()? },
            Opcode::Rmdir => Self::Rmdir { name: at.name()? },
            Opcode::ReadLink => Self::ReadLink,
            Opcode::StatFs => Self::StatFs,
            Opcode::Destroy => Self::Destroy,
            Opcode::NotifyReply => Self::NotifyReply,
            Opcode::SyncFs => at.fixed::<layout::SyncFsIn>().map(|_| Self::SyncFs)?,
            Opcode::Forget => Self::Forget {
                count: at.fixed::<layout::ForgetIn>()?.nlookup,
            },
            Opcode::BatchForget => at.batch_forget()?,
            Opcode::Interrupt => Self::Interrupt {
                unique: at.fixed::<layout::InterruptIn>()?.unique,
            },
            Opcode::Init => at.init()?,
            Opcode::GetAttr => at.fixed::<layout::GetAttrIn>().map(|_| Self::GetAttr)?,
            Opcode::StatX => at.fixed::<layout::StatxIn>().map(|_| Self::StatX)?,
            Opcode::SetAttr => Self::SetAttr(setattr(&at.fixed()?)?),
            Opcode::Access => Self::Access {
                mask: at.fixed::<layout::AccessIn>()?.mask,
            },
            Opcode::Symlink | Opcode::Mknod | Opcode::Mkdir => at.make(opcode)?,
            Opcode::Rename | Opcode::Rename2 | Opcode::Link => at.rename_or_link(opcode)?,
            Opcode::Open | Opcode::OpenDir | Opcode::Create | Opcode::TmpFile => at.open(opcode)?,
            Opcode::Read | Opcode::ReadDir | Opcode::ReadDirPlus => at.read(opcode)?,
            Opcode::Write => at.write()?,
            Opcode::Release | Opcode::ReleaseDir => at.release()?,
            Opcode::Fsync | Opcode::FsyncDir => at.fsync()?,
            Opcode::Flush => at.flush()?,
            Opcode::SetXattr | Opcode::GetXattr | Opcode::ListXattr | Opcode::RemoveXattr => {
                at.xattr(opcode, dialect)?
            }
            Opcode::GetLk | Opcode::SetLk | Opcode::SetLkW => at.lock(opcode)?,
            Opcode::Ioctl => at.ioctl()?,
            Opcode::Bmap | Opcode::Poll => Self::Unknown,
            Opcode::Fallocate | Opcode::Lseek | Opcode::CopyFileRange | Opcode::CopyFileRange64 => {
                at.range(opcode)?
            }
        })
    }
}

impl<'a> Cursor<'a> {
    fn batch_forget(&mut self) -> Decoded<'a> {
        let count = self.fixed::<layout::BatchForgetIn>()?.count;
        let bytes = count
            .checked_mul(size_of::<layout::ForgetOne>() as u32)
            .ok_or(Malformed::new("forget count is absurd"))?;
        Ok(Request::BatchForget(Forgets {
            records: self.data(bytes)?,
        }))
    }

    fn init(&mut self) -> Decoded<'a> {
        let raw = self.fixed::<layout::InitIn>()?;
        let mut flags = u64::from(raw.flags);
        if InitFlags::from_bits_retain(flags).contains(InitFlags::INIT_EXT)
            && let Ok((more, _)) = layout::InitInExt::read_from_prefix(self.rest)
        {
            flags |= u64::from(more.flags2) << 32;
        }
        Ok(Request::Init(InitRequest {
            major: raw.major,
            minor: raw.minor,
            max_readahead: raw.max_readahead,
            flags: InitFlags::from_bits_retain(flags),
        }))
    }

    fn make(&mut self, opcode: Opcode) -> Decoded<'a> {
        let extensions = self.extensions()?;
        Ok(match opcode {
            Opcode::Symlink => Request::Symlink {
                name: self.name()?,
                target: self.name()?,
                extensions,
            },
            Opcode::Mknod => {
                let raw = self.fixed::<layout::MknodIn>()?;
                Request::Mknod {
                    name: self.name()?,
                    mode: raw.mode,
                    rdev: super::device::unpack(raw.rdev),
                    umask: raw.umask,
                    extensions,
                }
            }
            _ => {
                let raw = self.fixed::<layout::MkdirIn>()?;
                Request::Mkdir {
                    name: self.name()?,
                    mode: raw.mode,
                    umask: raw.umask,
                    extensions,
                }
            }
        })
    }

    fn rename_or_link(&mut self, opcode: Opcode) -> Decoded<'a> {
        let (new_parent, flags) = match opcode {
            Opcode::Link => {
                let ino = Ino(self.fixed::<layout::LinkIn>()?.oldnodeid);
                return Ok(Request::Link {
                    ino,
                    name: self.name()?,
                });
            }
            Opcode::Rename => (self.fixed::<layout::RenameIn>()?.newdir, 0),
            _ => {
                let raw = self.fixed::<layout::Rename2In>()?;
                (raw.newdir, raw.flags)
            }
        };
        Ok(Request::Rename {
            name: self.name()?,
            new_parent: Ino(new_parent),
            new_name: self.name()?,
            flags,
        })
    }

    fn open(&mut self, opcode: Opcode) -> Decoded<'a> {
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

    fn read(&mut self, opcode: Opcode) -> Decoded<'a> {
        let raw = self.fixed::<layout::ReadIn>()?;
        let read = ReadRequest {
            fh: raw.fh,
            offset: raw.offset,
            size: raw.size,
            flags: raw.flags.cast_signed(),
        };
        let plus = opcode == Opcode::ReadDirPlus;
        Ok(match opcode {
            Opcode::Read => Request::Read(read),
            _ => Request::ReadDir { read, plus },
        })
    }

    fn write(&mut self) -> Decoded<'a> {
        let raw = self.fixed::<layout::WriteIn>()?;
        Ok(Request::Write(WriteRequest {
            fh: raw.fh,
            offset: raw.offset,
            data: self.data(raw.size)?,
            flags: raw.flags.cast_signed(),
            from_cache: raw.write_flags & bit::WRITE_CACHE != 0,
            kill_suidgid: raw.write_flags & bit::WRITE_KILL_SUIDGID != 0,
        }))
    }

    fn release(&mut self) -> Decoded<'a> {
        let raw = self.fixed::<layout::ReleaseIn>()?;
        Ok(Request::Release(ReleaseRequest {
            fh: raw.fh,
            flock_unlock: raw.release_flags & bit::RELEASE_FLOCK_UNLOCK != 0,
            lock_owner: raw.lock_owner,
        }))
    }

    fn flush(&mut self) -> Decoded<'a> {
        let raw = self.fixed::<layout::FlushIn>()?;
        Ok(Request::Flush {
            fh: raw.fh,
            lock_owner: raw.lock_owner,
        })
    }

    fn fsync(&mut self) -> Decoded<'a> {
        let raw = self.fixed::<layout::FsyncIn>()?;
        Ok(Request::Fsync {
            fh: raw.fh,
            data_only: raw.fsync_flags & bit::FSYNC_FDATASYNC != 0,
        })
    }

    fn xattr(&mut self, opcode: Opcode, dialect: Dialect) -> Decoded<'a> {
        Ok(match opcode {
            Opcode::SetXattr => {
                // Both forms start alike; with io_uring they share one area.
                let (short, more) = if dialect.setxattr_ext {
                    let long = self.fixed::<layout::SetXattrIn>()?;
                    (long.short, long.setxattr_flags)
                } else {
                    (self.fixed::<layout::SetXattrShort>()?, 0)
                };
                Request::SetXattr(SetXattrRequest {
                    name: self.name()?,
                    value: self.data(short.size)?,
                    flags: short.flags,
                    kill_sgid: more & bit::SETXATTR_ACL_KILL_SGID != 0,
                })
            }
            Opcode::GetXattr => {
                let size = self.fixed::<layout::GetXattrIn>()?.size;
                Request::GetXattr {
                    name: self.name()?,
                    size,
                }
            }
            Opcode::ListXattr => Request::ListXattr {
                size: self.fixed::<layout::GetXattrIn>()?.size,
            },
            _ => Request::RemoveXattr { name: self.name()? },
        })
    }

    fn lock(&mut self, opcode: Opcode) -> Decoded<'a> {
        let raw = self.fixed::<layout::LkIn>()?;
        let kind = match raw.kind.cast_signed() {
            libc::F_RDLCK => LockType::Read,
            libc::F_WRLCK => LockType::Write,
            libc::F_UNLCK => LockType::Unlock,
            _ => return Err(Malformed::new("lock type is unknown")),
        };
        if raw.end < raw.start {
            return Err(Malformed::new("lock ends before it starts"));
        }
        let lock = LockRequest {
            fh: raw.fh,
            owner: raw.owner,
            start: raw.start,
            end: raw.end,
            kind,
            pid: raw.pid,
            flock: raw.lk_flags & bit::LK_FLOCK != 0,
        };
        Ok(match opcode {
            Opcode::GetLk => Request::GetLk(lock),
            Opcode::SetLk => Request::SetLk(lock),
            _ => Request::SetLkW(lock),
        })
    }

    fn ioctl(&mut self) -> Decoded<'a> {
        let raw = self.fixed::<layout::IoctlIn>()?;
        Ok(Request::Ioctl {
            fh: raw.fh,
            command: raw.cmd,
            input: self.data(raw.in_size)?,
            out_size: raw.out_size,
        })
    }

    fn range(&mut self, opcode: Opcode) -> Decoded<'a> {
        Ok(match opcode {
            Opcode::Fallocate => {
                let raw = self.fixed::<layout::FallocateIn>()?;
                Request::Fallocate {
                    fh: raw.fh,
                    offset: raw.offset,
                    length: raw.length,
                    mode: raw.mode,
                }
            }
            Opcode::Lseek => {
                let raw = self.fixed::<layout::LseekIn>()?;
                Request::Lseek {
                    fh: raw.fh,
                    offset: raw.offset,
                    whence: raw.whence,
                }
            }
            _ => {
                let raw = self.fixed::<layout::CopyFileRangeIn>()?;
                let wide = opcode == Opcode::CopyFileRange64;
                Request::CopyFileRange(CopyRequest {
                    fh_in: raw.fh_in,
                    offset_in: raw.off_in,
                    ino_out: Ino(raw.nodeid_out),
                    fh_out: raw.fh_out,
                    offset_out: raw.off_out,
                    len: if wide {
                        raw.len
                    } else {
                        raw.len.min(NARROW_COPY_MAX)
                    },
                    flags: raw.flags,
                    wide,
                })
            }
        })
    }
}

fn setattr(raw: &layout::SetAttrIn) -> Result<SetAttrRequest, Malformed> {
    let time = |flag, now, secs: u64, nanos: u32| {
        if raw.valid & flag == 0 {
            return Ok(None);
        }
        if raw.valid & now != 0 {
            return Ok(Some(SetTime::Now));
        }
        if nanos > 999_999_999 {
            return Err(Malformed::new("nanoseconds are out of range"));
        }
        Ok(Some(SetTime::At(Time::new(secs.cast_signed(), nanos))))
    };
    let set = SetAttr {
        perm: given(raw.valid, bit::FATTR_MODE, (raw.mode & 0o7777) as u16),
        uid: given(raw.valid, bit::FATTR_UID, raw.uid),
        gid: given(raw.valid, bit::FATTR_GID, raw.gid),
        size: given(raw.valid, bit::FATTR_SIZE, raw.size),
        atime: time(
            bit::FATTR_ATIME,
            bit::FATTR_ATIME_NOW,
            raw.atime,
            raw.atime_nsec,
        )?,
        mtime: time(
            bit::FATTR_MTIME,
            bit::FATTR_MTIME_NOW,
            raw.mtime,
            raw.mtime_nsec,
        )?,
        ctime: time(bit::FATTR_CTIME, 0, raw.ctime, raw.ctime_nsec)?,
    };
    Ok(SetAttrRequest {
        set,
        fh: given(raw.valid, bit::FATTR_FH, raw.fh),
        kill_suidgid: raw.valid & bit::FATTR_KILL_SUIDGID != 0,
    })
}

/// `value` if `flag` is among `flags`.
fn given<T>(flags: u32, flag: u32, value: T) -> Option<T> {
    (flags & flag != 0).then_some(value)
}
