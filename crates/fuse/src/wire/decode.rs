//! From bytes to [`Request`]: total, bounds-checked, without allocation.

use super::{
    Header, InitFlags, Malformed, Opcode, Request,
    cursor::{Body, Cursor, Decoded},
    flags::bit,
    layout,
    request::{Forgets, InitRequest, SetAttrRequest, SetXattrRequest},
};
use holdfast_types::{Ino, SetAttr, SetTime, Time};
use zerocopy::FromBytes;

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

impl<'a> Request<'a> {
    /// Decodes what stands behind `header`.
    ///
    /// An unknown opcode is no error, but [`Request::Unknown`].
    ///
    /// # Errors
    /// [`Malformed`] when a structure, name, list or extension does not fit its bytes.
    pub fn decode(header: &Header, body: Body<'a>, dialect: Dialect) -> Result<Self, Malformed> {
        hop!();
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

    fn ioctl(&mut self) -> Decoded<'a> {
        let layout::IoctlIn {
            fh,
            cmd,
            in_size,
            out_size,
            ..
        } = self.fixed()?;
        Ok(Request::Ioctl {
            fh,
            command: cmd,
            input: self.data(in_size)?,
            out_size,
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
