//! From bytes to [`Request`]: total, bounds-checked, without allocation.

use super::{
    Extensions, Header, InitFlags, Malformed, Opcode, Request,
    flags::bit,
    layout,
    request::{
        CopyRequest, CreateRequest, Forgets, InitRequest, LockRequest, LockType, OpenRequest,
        ReadRequest, ReleaseRequest, SetAttrRequest, SetXattrRequest, WriteRequest,
    },
};
use holdfast_types::{Ino, SetAttr, SetTime, Time};
use zerocopy::{FromBytes, Immutable, KnownLayout};

/// COPY_FILE_RANGE answers in 32 bits: the most that it can report, in whole pages.
const NARROW_COPY_MAX: u64 = 0xffff_f000;

/// The bytes behind a request's header, as the transport has them.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    /// One run, as read from `/dev/fuse`.
    Flat(&'a [u8]),
    /// The fixed structure apart from the rest, as io_uring delivers.
    Split {
        /// Area of the operation's structure; may be longer than it.
        fixed: &'a [u8],
        /// Names and data.
        payload: &'a [u8],
    },
}

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

/// Reads structures, names and data from the front of a body.
struct Cursor<'a> {
    rest: &'a [u8],
    /// With io_uring: the separate fixed structure, until it is read.
    fixed: Option<&'a [u8]>,
    extensions: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn new(header: &Header, body: Body<'a>) -> Result<Self, Malformed> {
        let (fixed, all) = match body {
            Body::Flat(bytes) => (None, bytes),
            Body::Split { fixed, payload } => (Some(fixed), payload),
        };
        let split = all
            .len()
            .checked_sub(header.extension_len as usize)
            .ok_or(Malformed::new("extensions are longer than the body"))?;
        let (rest, extensions) = all.split_at(split);
        Ok(Self {
            rest,
            fixed,
            extensions,
        })
    }

    /// The operation's structure.
    fn fixed<T: FromBytes + KnownLayout + Immutable>(&mut self) -> Result<T, Malformed> {
        let cut_off = Malformed::new("structure is cut off");
        if let Some(fixed) = self.fixed.take() {
            return T::read_from_prefix(fixed)
                .map(|(value, _)| value)
                .map_err(|_| cut_off);
        }
        let (value, rest) = T::read_from_prefix(self.rest).map_err(|_| cut_off)?;
        self.rest = rest;
        Ok(value)
    }

    /// A string up to its NUL.
    fn name(&mut self) -> Result<&'a [u8], Malformed> {
        let end = self
            .rest
            .iter()
            .position(|&byte| byte == 0)
            .ok_or(Malformed::new("name has no end"))?;
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest.get(1..).unwrap_or(&[]);
        Ok(name)
    }

    fn data(&mut self, len: u32) -> Result<&'a [u8], Malformed> {
        let (data, rest) = self
            .rest
            .split_at_checked(len as usize)
            .ok_or(Malformed::new("data is cut off"))?;
        self.rest = rest;
        Ok(data)
    }

    fn extensions(&self) -> Result<Extensions<'a>, Malformed> {
        Extensions::parse(self.extensions)
    }
}

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
        let mut cursor = Cursor::new(header, body)?;
        let at = &mut cursor;
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
            Opcode::BatchForget => batch_forget(at)?,
            Opcode::Interrupt => Self::Interrupt {
                unique: at.fixed::<layout::InterruptIn>()?.unique,
            },
            Opcode::Init => init(at)?,
            Opcode::GetAttr => at.fixed::<layout::GetAttrIn>().map(|_| Self::GetAttr)?,
            Opcode::StatX => at.fixed::<layout::StatxIn>().map(|_| Self::StatX)?,
            Opcode::SetAttr => Self::SetAttr(setattr(&at.fixed()?)?),
            Opcode::Access => Self::Access {
                mask: at.fixed::<layout::AccessIn>()?.mask,
            },
            Opcode::Symlink | Opcode::Mknod | Opcode::Mkdir => make(opcode, at)?,
            Opcode::Rename | Opcode::Rename2 | Opcode::Link => rename_or_link(opcode, at)?,
            Opcode::Open | Opcode::OpenDir | Opcode::Create | Opcode::TmpFile => open(opcode, at)?,
            Opcode::Read | Opcode::ReadDir | Opcode::ReadDirPlus => read(opcode, at)?,
            Opcode::Write => write(at)?,
            Opcode::Release | Opcode::ReleaseDir => release(at)?,
            Opcode::Fsync | Opcode::FsyncDir => fsync(at)?,
            Opcode::Flush => flush(at)?,
            Opcode::SetXattr | Opcode::GetXattr | Opcode::ListXattr | Opcode::RemoveXattr => {
                xattr(opcode, at, dialect)?
            }
            Opcode::GetLk | Opcode::SetLk | Opcode::SetLkW => lock(opcode, at)?,
            Opcode::Ioctl => ioctl(at)?,
            Opcode::Bmap | Opcode::Poll => Self::Unknown,
            Opcode::Fallocate | Opcode::Lseek | Opcode::CopyFileRange | Opcode::CopyFileRange64 => {
                range(opcode, at)?
            }
        })
    }
}

fn batch_forget<'a>(at: &mut Cursor<'a>) -> Result<Request<'a>, Malformed> {
    let count = at.fixed::<layout::BatchForgetIn>()?.count;
    let bytes = count
        .checked_mul(size_of::<layout::ForgetOne>() as u32)
        .ok_or(Malformed::new("forget count is absurd"))?;
    Ok(Request::BatchForget(Forgets {
        records: at.data(bytes)?,
    }))
}

fn init<'a>(at: &mut Cursor<'a>) -> Result<Request<'a>, Malformed> {
    let raw = at.fixed::<layout::InitIn>()?;
    let mut flags = u64::from(raw.flags);
    if InitFlags::from_bits_retain(flags).contains(InitFlags::INIT_EXT)
        && let Ok((more, _)) = layout::InitInExt::read_from_prefix(at.rest)
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

fn make<'a>(opcode: Opcode, at: &mut Cursor<'a>) -> Result<Request<'a>, Malformed> {
    let extensions = at.extensions()?;
    Ok(match opcode {
        Opcode::Symlink => Request::Symlink {
            name: at.name()?,
            target: at.name()?,
            extensions,
        },
        Opcode::Mknod => {
            let raw = at.fixed::<layout::MknodIn>()?;
            Request::Mknod {
                name: at.name()?,
                mode: raw.mode,
                rdev: super::device::unpack(raw.rdev),
                umask: raw.umask,
                extensions,
            }
        }
        _ => {
            let raw = at.fixed::<layout::MkdirIn>()?;
            Request::Mkdir {
                name: at.name()?,
                mode: raw.mode,
                umask: raw.umask,
                extensions,
            }
        }
    })
}

fn rename_or_link<'a>(opcode: Opcode, at: &mut Cursor<'a>) -> Result<Request<'a>, Malformed> {
    let (new_parent, flags) = match opcode {
        Opcode::Link => {
            let ino = Ino(at.fixed::<layout::LinkIn>()?.oldnodeid);
            return Ok(Request::Link {
                ino,
                name: at.name()?,
            });
        }
        Opcode::Rename => (at.fixed::<layout::RenameIn>()?.newdir, 0),
        _ => {
            let raw = at.fixed::<layout::Rename2In>()?;
            (raw.newdir, raw.flags)
        }
    };
    Ok(Request::Rename {
        name: at.name()?,
        new_parent: Ino(new_parent),
        new_name: at.name()?,
        flags,
    })
}

fn open<'a>(opcode: Opcode, at: &mut Cursor<'a>) -> Result<Request<'a>, Malformed> {
    if matches!(opcode, Opcode::Open | Opcode::OpenDir) {
        let raw = at.fixed::<layout::OpenIn>()?;
        let open = OpenRequest {
            flags: raw.flags.cast_signed(),
            kill_suidgid: raw.open_flags & bit::OPEN_KILL_SUIDGID != 0,
        };
        return Ok(match opcode {
            Opcode::Open => Request::Open(open),
            _ => Request::OpenDir(open),
        });
    }
    let raw = at.fixed::<layout::CreateIn>()?;
    let create = CreateRequest {
        extensions: at.extensions()?,
        // The kernel puts a placeholder here for a file without a name.
        name: if opcode == Opcode::TmpFile {
            &[]
        } else {
            at.name()?
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

fn read<'a>(opcode: Opcode, at: &mut Cursor<'a>) -> Result<Request<'a>, Malformed> {
    let raw = at.fixed::<layout::ReadIn>()?;
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

fn write<'a>(at: &mut Cursor<'a>) -> Result<Request<'a>, Malformed> {
    let raw = at.fixed::<layout::WriteIn>()?;
    Ok(Request::Write(WriteRequest {
        fh: raw.fh,
        offset: raw.offset,
        data: at.data(raw.size)?,
        flags: raw.flags.cast_signed(),
        from_cache: raw.write_flags & bit::WRITE_CACHE != 0,
        kill_suidgid: raw.write_flags & bit::WRITE_KILL_SUIDGID != 0,
    }))
}

fn release<'a>(at: &mut Cursor<'a>) -> Result<Request<'a>, Malformed> {
    let raw = at.fixed::<layout::ReleaseIn>()?;
    Ok(Request::Release(ReleaseRequest {
        fh: raw.fh,
        flock_unlock: raw.release_flags & bit::RELEASE_FLOCK_UNLOCK != 0,
        lock_owner: raw.lock_owner,
    }))
}

fn flush<'a>(at: &mut Cursor<'a>) -> Result<Request<'a>, Malformed> {
    let raw = at.fixed::<layout::FlushIn>()?;
    Ok(Request::Flush {
        fh: raw.fh,
        lock_owner: raw.lock_owner,
    })
}

fn fsync<'a>(at: &mut Cursor<'a>) -> Result<Request<'a>, Malformed> {
    let raw = at.fixed::<layout::FsyncIn>()?;
    Ok(Request::Fsync {
        fh: raw.fh,
        data_only: raw.fsync_flags & bit::FSYNC_FDATASYNC != 0,
    })
}

fn xattr<'a>(
    opcode: Opcode,
    at: &mut Cursor<'a>,
    dialect: Dialect,
) -> Result<Request<'a>, Malformed> {
    Ok(match opcode {
        Opcode::SetXattr => {
            // Both forms start alike; with io_uring they share one area.
            let (short, more) = if dialect.setxattr_ext {
                let long = at.fixed::<layout::SetXattrIn>()?;
                (long.short, long.setxattr_flags)
            } else {
                (at.fixed::<layout::SetXattrShort>()?, 0)
            };
            Request::SetXattr(SetXattrRequest {
                name: at.name()?,
                value: at.data(short.size)?,
                flags: short.flags,
                kill_sgid: more & bit::SETXATTR_ACL_KILL_SGID != 0,
            })
        }
        Opcode::GetXattr => {
            let size = at.fixed::<layout::GetXattrIn>()?.size;
            Request::GetXattr {
                name: at.name()?,
                size,
            }
        }
        Opcode::ListXattr => Request::ListXattr {
            size: at.fixed::<layout::GetXattrIn>()?.size,
        },
        _ => Request::RemoveXattr { name: at.name()? },
    })
}

fn lock<'a>(opcode: Opcode, at: &mut Cursor<'a>) -> Result<Request<'a>, Malformed> {
    let raw = at.fixed::<layout::LkIn>()?;
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

fn ioctl<'a>(at: &mut Cursor<'a>) -> Result<Request<'a>, Malformed> {
    let raw = at.fixed::<layout::IoctlIn>()?;
    Ok(Request::Ioctl {
        fh: raw.fh,
        command: raw.cmd,
        input: at.data(raw.in_size)?,
        out_size: raw.out_size,
    })
}

fn range<'a>(opcode: Opcode, at: &mut Cursor<'a>) -> Result<Request<'a>, Malformed> {
    Ok(match opcode {
        Opcode::Fallocate => {
            let raw = at.fixed::<layout::FallocateIn>()?;
            Request::Fallocate {
                fh: raw.fh,
                offset: raw.offset,
                length: raw.length,
                mode: raw.mode,
            }
        }
        Opcode::Lseek => {
            let raw = at.fixed::<layout::LseekIn>()?;
            Request::Lseek {
                fh: raw.fh,
                offset: raw.offset,
                whence: raw.whence,
            }
        }
        _ => {
            let raw = at.fixed::<layout::CopyFileRangeIn>()?;
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

/// `value` if `flag` is among `flags`.
fn given<T>(flags: u32, flag: u32, value: T) -> Option<T> {
    (flags & flag != 0).then_some(value)
}
