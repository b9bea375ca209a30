//! Block devices, where this process may make a loop device.

use holdfast_device::{Access, BlockDevice, Cause, FileDevice, Holder, ReadRequest};
use holdfast_testkit::skip::skipped_by_kernel;
use std::path::{Path, PathBuf};
use std::process::Command;

const SIZE: u64 = 8 << 20;

/// A loop device over a file, taken down at the end.
struct Loop {
    path: PathBuf,
    backing: tempfile::NamedTempFile,
}

impl Loop {
    fn new() -> Option<Self> {
        Self::over(tempfile::NamedTempFile::new().unwrap())
    }

    fn over(backing: tempfile::NamedTempFile) -> Option<Self> {
        backing.as_file().set_len(SIZE).unwrap();
        let made = losetup(&["--find", "--show"], backing.path())
            .inspect_err(|error| skipped_by_kernel(&format!("no loop device: {error}")))
            .ok()?;
        let path = PathBuf::from(made.trim());
        Some(Self { path, backing })
    }

    fn open(&self, access: Access) -> holdfast_device::Result<FileDevice> {
        FileDevice::open(&self.path, access)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        losetup(&["--detach"], &self.path).unwrap();
    }
}

fn losetup(options: &[&str], path: &Path) -> Result<String, String> {
    run(Command::new("losetup").args(options).arg(path))
}

fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

#[test]
fn a_block_device_is_read_written_and_discarded() {
    let Some(made) = Loop::new() else { return };
    let device = made.open(Access::ReadWrite).unwrap();
    assert!(device.is_block_device());
    assert_eq!(device.size(), SIZE);
    assert!(device.describe().starts_with("block device /dev/"));
    let bytes: Vec<u8> = (0..1 << 20).map(|at| (at / 512) as u8).collect();
    device.write(1 << 20, &bytes).unwrap();
    device.write(3 << 20, &bytes).unwrap();
    device.flush().unwrap();
    let mut bufs = vec![vec![0; 64 << 10]; 32];
    let places = (1 << 20..2 << 20).chain(3 << 20..4 << 20).step_by(64 << 10);
    let requests = bufs.iter_mut().zip(places);
    let mut requests: Vec<_> = requests
        .map(|(buf, at)| ReadRequest::new(at, buf))
        .collect();
    device.read_batch(&mut requests).unwrap();
    assert!(bufs.concat() == [bytes.clone(), bytes].concat());
    assert!(device.discard(1 << 20, 1 << 20).unwrap());
    let error = device.write(SIZE, &[0; 4096]).unwrap_err();
    assert_eq!(error.cause, Cause::OutOfRange { size: SIZE });
}

#[test]
fn a_block_device_grows_with_what_lies_below() {
    let Some(made) = Loop::new() else { return };
    let device = made.open(Access::ReadWrite).unwrap();
    let error = device.resize(2 * SIZE).unwrap_err();
    assert_eq!(error.cause, Cause::Fixed { size: SIZE });
    made.backing.as_file().set_len(2 * SIZE).unwrap();
    losetup(&["--set-capacity"], &made.path).unwrap();
    assert_eq!(device.size(), SIZE);
    device.resize(2 * SIZE).unwrap();
    assert_eq!(device.size(), 2 * SIZE);
    device.write(2 * SIZE - 4096, &[1; 4096]).unwrap();
}

#[test]
fn a_block_device_is_refused_while_somebody_uses_it() {
    let Some(made) = Loop::new() else { return };
    let device = made.open(Access::ReadWrite).unwrap();
    for access in [Access::ReadWrite, Access::ReadOnly] {
        let error = made.open(access).unwrap_err();
        assert_eq!(error.cause, Cause::Held(Holder::ThisProcess), "{error}");
    }
    // The kernel does not mount a claimed device.
    let (dir, none) = (tempfile::tempdir().unwrap(), None::<&std::ffi::CStr>);
    let flags = rustix::mount::MountFlags::empty();
    let mounted = rustix::mount::mount(&made.path, dir.path(), "ext4", flags, none);
    assert_eq!(mounted, Err(rustix::io::Errno::BUSY));
    drop(device);
    let one = made.open(Access::Shared).unwrap();
    let two = made.open(Access::ReadOnly).unwrap();
    assert_eq!((one.size(), two.size()), (SIZE, SIZE));
    let error = one.exclude_others().unwrap_err();
    assert_eq!(error.cause, Cause::Held(Holder::ThisProcess), "{error}");
    // It is shared as before.
    drop(made.open(Access::ReadOnly).unwrap());
    drop(two);
    one.exclude_others().unwrap();
    made.open(Access::ReadOnly).unwrap_err();
    let mounted = rustix::mount::mount(&made.path, dir.path(), "ext4", flags, none);
    assert_eq!(mounted, Err(rustix::io::Errno::BUSY));
    one.write(0, &[7; 4096]).unwrap();
}

#[test]
fn a_mounted_block_device_is_refused_and_its_mount_named() {
    let Some(made) = Loop::new() else { return };
    if let Err(error) = run(Command::new("mkfs.ext4").arg("-q").arg(&made.path)) {
        eprintln!("not tried, no mkfs.ext4: {error}");
        return;
    }
    let (dir, none) = (tempfile::tempdir().unwrap(), None::<&std::ffi::CStr>);
    let flags = rustix::mount::MountFlags::empty();
    if let Err(error) = rustix::mount::mount(&made.path, dir.path(), "ext4", flags, none) {
        eprintln!("not tried, mounting failed: {error}");
        return;
    }
    let error = made.open(Access::ReadWrite).map(drop);
    rustix::mount::unmount(dir.path(), rustix::mount::UnmountFlags::empty()).unwrap();
    let error = error.unwrap_err();
    let target = dir.path().to_string_lossy().into_owned();
    assert_eq!(error.cause, Cause::Held(Holder::Mount { target }));
    assert!(error.to_string().contains("unmount that first"), "{error}");
}

/// A tmpfs of one MiB, unmounted at the end.
struct Small(tempfile::TempDir);

impl Small {
    fn mount() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let flags = rustix::mount::MountFlags::empty();
        rustix::mount::mount("tmpfs", dir.path(), "tmpfs", flags, Some(c"size=1m"))
            .inspect_err(|error| eprintln!("not tried, mounting failed: {error}"))
            .ok()?;
        Some(Self(dir))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        rustix::mount::unmount(self.0.path(), rustix::mount::UnmountFlags::DETACH).unwrap();
    }
}

#[test]
fn no_flush_succeeds_after_one_that_failed() {
    let Some(small) = Small::mount() else { return };
    let backing = tempfile::NamedTempFile::new_in(small.0.path()).unwrap();
    let Some(made) = Loop::over(backing) else {
        return;
    };
    let device = made.open(Access::ReadWrite).unwrap();
    device.write(0, &vec![1; 4 << 20]).unwrap();
    let first = device.flush().unwrap_err();
    assert!(
        matches!(first.cause, Cause::Os(_) | Cause::NoSpace(_)),
        "{first}"
    );
    // The kernel itself would report success by now.
    for _ in 0..2 {
        let again = device.flush().unwrap_err();
        assert_eq!(again.cause, Cause::FlushFailed(first.errno()), "{again}");
    }
}
