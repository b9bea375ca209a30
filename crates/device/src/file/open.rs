//! Opens files: finds their kind, locks them, and chooses the method of transfers.

use super::transfer::retry;
use super::{Access, FileDevice, Kind, cache, holder, sys};
use crate::{Cause, DeviceError, Operation, Result, SECTOR};
use holdfast_types::Errno;
use rustix::fs::{FileType, FlockOperation, Mode, OFlags};
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// The largest supported sector of a block device.
const SECTOR_MAX: u64 = 64 << 10;
/// Numbers of file systems in statfs(2).
const TMPFS: u64 = 0x0102_1994;
const RAMFS: u64 = 0x8584_58f6;
/// How long another process may hold an image. A child that another thread starts has all files of
/// this process until its exec, including those that were just closed.
const IMAGE_TIMEOUT: Duration = Duration::from_millis(100);
/// The same for a block device: udev locks devices to examine them.
const BLOCK_TIMEOUT: Duration = Duration::from_millis(500);

pub(super) fn create(path: &Path, size: u64) -> Result<FileDevice> {
    let name = format!("image file {}", path.display());
    let failed = |cause| DeviceError::new(name.clone(), Operation::Create, 0, size, cause);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
    let file = open_file(path, flags).map_err(failed)?;
    let device = lock(&file, Kind::Image, Access::ReadWrite)
        .and_then(|()| retry(|| rustix::fs::ftruncate(&file, size)).map_err(Cause::from))
        .and_then(|()| retry(|| rustix::fs::fsync(&file)).map_err(Cause::from))
        .and_then(|()| assemble(file, name.clone(), Kind::Image, Access::ReadWrite))
        .and_then(|device| match size % SECTOR {
            0 => Ok(device),
            _ => Err(Cause::Misaligned { alignment: SECTOR }),
        })
        .and_then(|device| sync_parent(path).map(|()| device));
    device.map_err(|cause| {
        // The first error is reported; a file that remains is empty.
        let _ = std::fs::remove_file(path);
        failed(cause)
    })
}

/// Makes the file's name durable.
fn sync_parent(path: &Path) -> Result<(), Cause> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = retry(|| rustix::fs::open(parent, flags, Mode::empty()))?;
    match retry(|| rustix::fs::fsync(&parent)) {
        // Some file systems have no durable names, or nothing to do.
        Err(rustix::io::Errno::INVAL) | Ok(()) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

pub(super) fn open(path: &Path, access: Access) -> Result<FileDevice> {
    let mut name = path.display().to_string();
    open_named(path, access, &mut name)
        .map_err(|cause| DeviceError::new(name, Operation::Open, 0, 0, cause))
}

fn open_named(path: &Path, access: Access, name: &mut String) -> Result<FileDevice, Cause> {
    // Before opening: an open rewinds a tape, and waits for a pipe.
    let kind = kind_of(retry(|| rustix::fs::stat(path))?.st_mode)?;
    *name = match kind {
        Kind::Image => format!("image file {name}"),
        Kind::Block => format!("block device {name}"),
    };
    let flags = match (access, kind) {
        (Access::ReadOnly, _) => OFlags::RDONLY,
        (Access::ReadWrite, Kind::Image) | (Access::Shared, _) => OFlags::RDWR,
        (Access::ReadWrite, Kind::Block) => OFlags::RDWR | OFlags::EXCL,
    };
    let file = open_locked(path, flags, kind)?;
    if kind_of(retry(|| rustix::fs::fstat(&file))?.st_mode)? != kind {
        return Err(Cause::Os(Errno::ESTALE));
    }
    lock(&file, kind, access)?;
    let writes = access != Access::ReadOnly && kind == Kind::Block;
    if writes && sys::block_device_is_read_only(&file)? {
        return Err(Cause::Os(Errno::EROFS));
    }
    assemble(file, name.clone(), kind, access)
}

fn kind_of(mode: u32) -> Result<Kind, Cause> {
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile => Ok(Kind::Image),
        FileType::BlockDevice => Ok(Kind::Block),
        FileType::Directory => Err(Cause::Os(Errno::EISDIR)),
        _ => Err(Cause::NotADevice),
    }
}

/// Opens, and retries for a while, since udev may hold it.
fn open_locked(path: &Path, flags: OFlags, kind: Kind) -> Result<File, Cause> {
    retry_until(kind, || match open_file(path, flags) {
        Err(Cause::Os(Errno::EBUSY)) => None,
        other => Some(other),
    })
    .unwrap_or_else(|| Err(Cause::Held(holder::of_block_device(path))))
}

fn open_file(path: &Path, flags: OFlags) -> Result<File, Cause> {
    // Nonblocking, in case it has become a pipe.
    let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let mode = Mode::RUSR | Mode::WUSR;
    Ok(File::from(retry(|| rustix::fs::open(path, flags, mode))?))
}

fn lock(file: &File, kind: Kind, access: Access) -> Result<(), Cause> {
    let operation = match access {
        Access::ReadWrite => FlockOperation::NonBlockingLockExclusive,
        Access::ReadOnly | Access::Shared => FlockOperation::NonBlockingLockShared,
    };
    retry_until(kind, || {
        match retry(|| rustix::fs::flock(file, operation)) {
            Err(rustix::io::Errno::WOULDBLOCK) => None,
            other => Some(other.map_err(Cause::from)),
        }
    })
    .unwrap_or_else(|| Err(Cause::Held(holder::of_lock(file, false))))
}

/// Turns a shared lock into an exclusive one, and claims a block device.
pub(super) fn exclude(device: &FileDevice) -> Result<(), Cause> {
    let file = &device.file;
    let shared = FlockOperation::NonBlockingLockShared;
    let locked = retry_until(device.kind, || {
        match retry(|| rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive)) {
            // The attempt has given up the shared lock.
            Err(rustix::io::Errno::WOULDBLOCK) => match retry(|| rustix::fs::flock(file, shared)) {
                Ok(()) => None,
                Err(errno) => Some(Err(Cause::from(errno))),
            },
            other => Some(other.map_err(Cause::from)),
        }
    });
    locked.unwrap_or_else(|| Err(Cause::Held(holder::of_lock(file, true))))?;
    if device.kind == Kind::Block && device.exclusive.get().is_none() {
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let flags = OFlags::RDWR | OFlags::EXCL;
        match open_locked(Path::new(&path), flags, device.kind) {
            // Set by the holder of the exclusive lock alone.
            Ok(file) => drop(device.exclusive.set(file)),
            Err(cause) => {
                retry(|| rustix::fs::flock(file, shared))?;
                return Err(cause);
            }
        }
    }
    Ok(())
}

/// Retries until there is an answer or the time is up.
fn retry_until<T>(kind: Kind, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    let until = Instant::now()
        + match kind {
            Kind::Image => IMAGE_TIMEOUT,
            Kind::Block => BLOCK_TIMEOUT,
        };
    loop {
        let answer = attempt();
        if answer.is_some() || Instant::now() >= until {
            return answer;
        }
        std::thread::sleep(IMAGE_TIMEOUT / 10);
    }
}

fn assemble(file: File, name: String, kind: Kind, access: Access) -> Result<FileDevice, Cause> {
    let (size, alignment) = match kind {
        Kind::Image => (
            retry(|| rustix::fs::fstat(&file))?.st_size.cast_unsigned(),
            SECTOR,
        ),
        // The device would have to read, change and write less than a sector.
        Kind::Block => (
            sys::block_device_size(&file)?,
            u64::from(rustix::fs::ioctl_blksszget(&file)?).clamp(SECTOR, SECTOR_MAX),
        ),
    };
    Ok(FileDevice {
        kind,
        name,
        access,
        alignment,
        size: AtomicU64::new(size - size % alignment),
        in_memory: kind == Kind::Image && in_memory(&file),
        flushed: Mutex::new(None),
        cache: cache::identity(&file),
        exclusive: OnceLock::new(),
        file,
    })
}

/// Does the whole file reside in memory?
fn in_memory(file: &File) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|it| [TMPFS, RAMFS].contains(&(it.f_type as u64)))
}
