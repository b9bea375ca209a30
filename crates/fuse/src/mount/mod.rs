//! Mounting and unmounting: mount(2) for root, `fusermount3` for others.

mod control;
mod error;
mod helper;
mod holders;
mod loop_device;
mod options;
mod revoke;
mod sys;
mod table;
mod unmount;

pub use control::Controlled;
pub use error::{MountError, UmountError};
pub use holders::{Holder, Holders, holders};
pub use loop_device::backing_of;
pub use options::{AtimeOption, BlockMount, MountOptions, OptionError};
pub use revoke::revoke;
pub use table::{Mounted, mounted_at, mounts, mounts_of};
pub use unmount::{UmountFlags, clear_stale, is_stale, umount};

use loop_device::LoopDevice;
use rustix::{
    fs::{Mode, OFlags},
    io::Errno as Code,
};
use std::{
    ffi::CString,
    fs, io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::MetadataExt,
    },
    path::{Path, PathBuf},
};

/// A new mount with a connection that is not served yet.
pub(crate) struct Attached {
    pub(crate) device: OwnedFd,
    pub(crate) dir: PathBuf,
    /// Why it is not of the type `fuseblk`, if that was requested.
    pub(crate) no_block: Option<String>,
}

/// Mounts at `dir`; returns the connection.
pub(crate) fn attach(dir: &Path, options: &MountOptions) -> Result<Attached, MountError> {
    let (dir, mode) = check(dir, options)?;
    if !rustix::process::geteuid().is_root() {
        let no_block = match &options.block {
            BlockMount::No => None,
            BlockMount::IfPossible(_) => Some("only root mounts so".to_owned()),
            BlockMount::Required(_) => return Err(MountError::NotPermitted { dir }),
        };
        let device = helper::mount(&dir, options)?;
        return Ok(Attached {
            device,
            dir,
            no_block,
        });
    }
    let device = open_device()?;
    let no_block = match mount_over_block_device(&device, &dir, mode, options) {
        Ok(true) => {
            return Ok(Attached {
                device,
                dir,
                no_block: None,
            });
        }
        Ok(false) => None,
        Err(reason) if matches!(options.block, BlockMount::Required(_)) => {
            return Err(MountError::NoBlockDevice { dir, reason });
        }
        Err(reason) => Some(reason),
    };
    match mount_directly(&device, &dir, mode, options, None) {
        Ok(()) => Ok(Attached {
            device,
            dir,
            no_block,
        }),
        Err(Code::PERM | Code::ACCESS) => Err(MountError::NotPermitted { dir }),
        Err(code) => Err(MountError::Refused {
            dir,
            source: code.into(),
        }),
    }
}

/// Mounts over a loop device if that is requested; `Err`: why that failed.
fn mount_over_block_device(
    device: &OwnedFd,
    dir: &Path,
    mode: u32,
    options: &MountOptions,
) -> Result<bool, String> {
    let path = match &options.block {
        BlockMount::No => return Ok(false),
        BlockMount::IfPossible(path) | BlockMount::Required(path) => path,
    };
    let over = LoopDevice::over(path, options.read_only)
        .map_err(|error| format!("there is no loop device to be had: {error}"))?;
    mount_directly(device, dir, mode, options, Some(&over.path)).map_err(|code| {
        format!(
            "the kernel does not mount it over {}: {code}",
            over.path.display()
        )
    })?;
    Ok(true)
}

/// Checks the mount point; returns its canonical path and mode.
fn check(dir: &Path, options: &MountOptions) -> Result<(PathBuf, u32), MountError> {
    let unusable = |source| MountError::Unusable {
        dir: dir.to_owned(),
        source,
    };
    let meta = match fs::metadata(dir) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(MountError::Missing {
                dir: dir.to_owned(),
            });
        }
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            return Err(MountError::NotADirectory {
                dir: dir.to_owned(),
            });
        }
        Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => {
            return Err(MountError::Stale {
                dir: dir.to_owned(),
            });
        }
        Err(error) => return Err(unusable(error)),
    };
    if !meta.is_dir() {
        return Err(MountError::NotADirectory {
            dir: dir.to_owned(),
        });
    }
    let path = fs::canonicalize(dir).map_err(unusable)?;
    if let Some(mounted) = mounted_at(&path).map_err(unusable)?
        && mounted.is_fuse()
    {
        if is_stale(&path) {
            return Err(MountError::Stale { dir: path });
        }
        return Err(MountError::AlreadyMounted {
            dir: path,
            source_name: mounted.source,
            fs_type: mounted.fs_type,
        });
    }
    if !options.nonempty && fs::read_dir(&path).map_err(unusable)?.next().is_some() {
        return Err(MountError::NotEmpty { dir: path });
    }
    Ok((path, meta.mode()))
}

fn open_device() -> Result<OwnedFd, MountError> {
    rustix::fs::open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(|code| {
        match code {
            Code::NOENT => MountError::NoDevice,
            code => MountError::DeviceRefused {
                source: code.into(),
            },
        }
    })
}

fn mount_directly(
    device: &OwnedFd,
    dir: &Path,
    mode: u32,
    options: &MountOptions,
    over: Option<&Path>,
) -> Result<(), Code> {
    let mut data = format!(
        "fd={},rootmode={:o},user_id={},group_id={}",
        device.as_raw_fd(),
        mode & libc::S_IFMT,
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    if options.default_permissions {
        data.push_str(",default_permissions");
    }
    if options.allow_other.unwrap_or(true) {
        data.push_str(",allow_other");
    }
    if options.max_read != 0 {
        data.push_str(&format!(",max_read={}", options.max_read));
    }
    if over.is_some() {
        data.push_str(",blksize=4096");
    }
    let kind = if over.is_some() { "fuseblk" } else { "fuse" };
    let fs_type = format!("{kind}.{}", options.subtype);
    let data = CString::new(data).map_err(|_| Code::INVAL)?;
    let source = over.unwrap_or(Path::new(&options.fsname));
    rustix::mount::mount(source, dir, fs_type, options.flags(), data.as_c_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfit_mount_points_are_refused_with_a_remedy() {
        let temp = tempfile::tempdir().unwrap();
        let options = MountOptions::default();
        let refused = |dir: &Path| check(dir, &options).unwrap_err().to_string();
        assert!(refused(&temp.path().join("none")).contains("mkdir"));
        fs::write(temp.path().join("file"), "x").unwrap();
        assert!(refused(&temp.path().join("file")).contains("not a directory"));
        assert!(refused(&temp.path().join("file/below")).contains("not a directory"));
        assert!(refused(temp.path()).contains("nonempty"));
        let hidden = MountOptions {
            nonempty: true,
            ..options
        };
        assert!(check(temp.path(), &hidden).is_ok());
    }

    #[test]
    fn what_is_no_fuse_mount_is_not_unmounted() {
        let temp = tempfile::tempdir().unwrap();
        let flags = UmountFlags::default();
        assert!(matches!(
            umount(temp.path(), flags),
            Err(UmountError::NotMounted { .. })
        ));
        assert!(matches!(
            umount(Path::new("/proc"), flags),
            Err(UmountError::Foreign { .. })
        ));
        assert!(matches!(
            clear_stale(temp.path()),
            Err(UmountError::NotStale { .. })
        ));
    }
}
