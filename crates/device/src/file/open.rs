//! Opening: what it is, whose it is, and how it wants to be read.

use super::ring::Rings;
use super::transfer::{DROP_BEHIND, Transfers, again};
use super::{Access, Caching, FileDevice, FileOptions, Kind, cache, holder, sys};
use crate::{Cause, DeviceError, Operation, Result, SECTOR};
use holdfast_types::Errno;
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, StatxFlags};
use std::fs::File;
use std::io::IoSliceMut;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

/// `STATX_DIOALIGN` (Linux 6.1), of which rustix knows the fields but not the flag.
const DIRECT_ALIGNMENT: u32 = 0x2000;
/// The largest alignment of direct transfers that we go along with.
const ALIGNMENT_MAX: u32 = 64 << 10;
/// Numbers of file systems in statfs(2).
const TMPFS: u64 = 0x0102_1994;
const RAMFS: u64 = 0x8584_58f6;
/// How long an image may be held by somebody else: a child that another thread is starting has
/// all files of this process until it runs its program, those included that were just closed.
const IMAGE_PATIENCE: Duration = Duration::from_millis(100);
/// The same for a block device: udev locks what it looks at.
const BLOCK_PATIENCE: Duration = Duration::from_millis(500);

pub(super) fn create(path: &Path, size: u64, options: FileOptions) -> Result<FileDevice> {
    let name = format!("image file {}", path.display());
    let failed = |cause| DeviceError::new(name.clone(), Operation::Create, 0, size, cause);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
    let file = open_file(path, flags).map_err(failed)?;
    let device = lock(&file, Kind::Image, options.access)
        .and_then(|()| again(|| rustix::fs::ftruncate(&file, size)).map_err(Cause::from))
        .and_then(|()| again(|| rustix::fs::fsync(&file)).map_err(Cause::from))
        .and_then(|()| assemble(file, name.clone(), Kind::Image, options))
        .and_then(|device| match size % device.transfers.alignment() {
            0 => Ok(device),
            _ => Err(Cause::Misaligned {
                alignment: device.transfers.alignment(),
            }),
        })
        .and_then(|device| sync_parent(path).map(|()| device));
    device.map_err(|cause| {
        // The error that matters is the first; a file that stays is empty.
        let _ = std::fs::remove_file(path);
        failed(cause)
    })
}

/// Makes the name durable that leads to the file.
fn sync_parent(path: &Path) -> Result<(), Cause> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = again(|| rustix::fs::open(parent, flags, Mode::empty()))?;
    match again(|| rustix::fs::fsync(&parent)) {
        // Some file systems have no durable names, or nothing to do for them.
        Err(rustix::io::Errno::INVAL) | Ok(()) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

pub(super) fn open(path: &Path, options: FileOptions) -> Result<FileDevice> {
    let mut name = path.display().to_string();
    open_named(path, options, &mut name)
        .map_err(|cause| DeviceError::new(name, Operation::Open, 0, 0, cause))
}

fn open_named(path: &Path, options: FileOptions, name: &mut String) -> Result<FileDevice, Cause> {
    // Looked at first, because opening a tape rewinds it and a pipe waits.
    let kind = kind_of(again(|| rustix::fs::stat(path))?.st_mode)?;
    *name = match kind {
        Kind::Image => format!("image file {name}"),
        Kind::Block => format!("block device {name}"),
    };
    let flags = match (options.access, kind) {
        (Access::ReadOnly, _) => OFlags::RDONLY,
        (Access::ReadWrite, Kind::Image) => OFlags::RDWR,
        (Access::ReadWrite, Kind::Block) => OFlags::RDWR | OFlags::EXCL,
    };
    let file = claim(path, flags, kind)?;
    if kind_of(again(|| rustix::fs::fstat(&file))?.st_mode)? != kind {
        return Err(Cause::Os(Errno::ESTALE));
    }
    lock(&file, kind, options.access)?;
    let writes = (options.access, kind) == (Access::ReadWrite, Kind::Block);
    if writes && sys::block_device_is_read_only(&file)? {
        return Err(Cause::Os(Errno::EROFS));
    }
    assemble(file, name.clone(), kind, options)
}

fn kind_of(mode: u32) -> Result<Kind, Cause> {
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile => Ok(Kind::Image),
        FileType::BlockDevice => Ok(Kind::Block),
        FileType::Directory => Err(Cause::Os(Errno::EISDIR)),
        _ => Err(Cause::NotADevice),
    }
}

/// Opens, and waits a little where udev may be at work.
fn claim(path: &Path, flags: OFlags, kind: Kind) -> Result<File, Cause> {
    patiently(kind, || match open_file(path, flags) {
        Err(Cause::Os(Errno::EBUSY)) => None,
        other => Some(other),
    })
    .unwrap_or_else(|| Err(Cause::Held(holder::of_block_device(path))))
}

fn open_file(path: &Path, flags: OFlags) -> Result<File, Cause> {
    // Without waiting, in case it has become a pipe.
    let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let mode = Mode::RUSR | Mode::WUSR;
    let file = File::from(again(|| rustix::fs::open(path, flags, mode))?);
    // io_uring would take the flag for a wish to fail rather than wait.
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
    Ok(file)
}

fn lock(file: &File, kind: Kind, access: Access) -> Result<(), Cause> {
    let operation = match access {
        Access::ReadWrite => FlockOperation::NonBlockingLockExclusive,
        Access::ReadOnly => FlockOperation::NonBlockingLockShared,
    };
    patiently(kind, || {
        match again(|| rustix::fs::flock(file, operation)) {
            Err(rustix::io::Errno::WOULDBLOCK) => None,
            other => Some(other.map_err(Cause::from)),
        }
    })
    .unwrap_or_else(|| Err(Cause::Held(holder::of_lock(file))))
}

/// Tries until there is an answer, for as long as it may take.
fn patiently<T>(kind: Kind, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    let until = Instant::now()
        + match kind {
            Kind::Image => IMAGE_PATIENCE,
            Kind::Block => BLOCK_PATIENCE,
        };
    loop {
        let answer = attempt();
        if answer.is_some() || Instant::now() >= until {
            return answer;
        }
        std::thread::sleep(IMAGE_PATIENCE / 10);
    }
}

fn assemble(
    file: File,
    name: String,
    kind: Kind,
    options: FileOptions,
) -> Result<FileDevice, Cause> {
    let direct = match options.caching {
        Caching::Direct => direct(&file, kind)?,
        Caching::Buffered | Caching::DropBehind => None,
    };
    let drops = direct.is_none() && drops_behind(&file);
    let caching = match direct {
        Some(_) => Caching::Direct,
        None if drops => options.caching,
        None => Caching::Buffered,
    };
    let transfers = match (direct, kind) {
        (Some(direct), _) => direct,
        (None, Kind::Image) => Transfers::buffered(SECTOR, drops),
        // Less than a sector the device would have to read, change and write.
        (None, Kind::Block) => {
            let sector = rustix::fs::ioctl_blksszget(&file)?;
            let sector = u64::from(sector).clamp(SECTOR, u64::from(ALIGNMENT_MAX));
            Transfers::buffered(sector, drops)
        }
    };
    let size = match kind {
        Kind::Image => again(|| rustix::fs::fstat(&file))?.st_size.cast_unsigned(),
        Kind::Block => sys::block_device_size(&file)?,
    };
    Ok(FileDevice {
        kind,
        name,
        access: options.access,
        caching,
        size: AtomicU64::new(size - size % transfers.alignment()),
        rings: Rings::new(transfers.memory_alignment()),
        batches: options.batches,
        in_memory: kind == Kind::Image && in_memory(&file),
        transfers,
        flushed: Mutex::new(None),
        cache: cache::identity(&file),
        file,
    })
}

/// Turns the host's cache off. `None` where that cannot be done.
fn direct(file: &File, kind: Kind) -> Result<Option<Transfers>, Cause> {
    let wanted = StatxFlags::from_bits_retain(DIRECT_ALIGNMENT);
    let about = again(|| rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, wanted))?;
    let (offset, memory) = if about.stx_mask & DIRECT_ALIGNMENT != 0 {
        (about.stx_dio_offset_align, about.stx_dio_mem_align)
    } else {
        // An older kernel does not say; a page and, for files, a block of 4096 bytes suit all.
        match kind {
            Kind::Image => (4096, 4096),
            Kind::Block => (rustix::fs::ioctl_blksszget(file)?, 4096),
        }
    };
    let usable = |it: u32| it.is_power_of_two() && it <= ALIGNMENT_MAX;
    if !usable(offset) || !usable(memory) {
        return Ok(None);
    }
    let flags = rustix::fs::fcntl_getfl(file)?;
    match rustix::fs::fcntl_setfl(file, flags | OFlags::DIRECT) {
        Ok(()) => Ok(Some(Transfers::direct(
            u64::from(offset).max(SECTOR),
            memory as usize,
        ))),
        Err(rustix::io::Errno::INVAL) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Whether the file system takes the wish to drop what it has written.
fn drops_behind(file: &File) -> bool {
    let mut some = [0; SECTOR as usize];
    let into = &mut [IoSliceMut::new(&mut some)];
    again(|| rustix::io::preadv2(file, into, 0, DROP_BEHIND)).is_ok()
}

/// Whether the file lies in memory as a whole.
fn in_memory(file: &File) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|it| [TMPFS, RAMFS].contains(&(it.f_type as u64)))
}
