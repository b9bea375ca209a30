//! Opening, locking and failing of image files.

use holdfast_device::{Access, BlockDevice, Cause, FileDevice, Holder, Operation, SECTOR};
use holdfast_types::Errno;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn folder() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.hf");
    (dir, path)
}

fn create(path: &Path) -> FileDevice {
    FileDevice::create(path, 1 << 20).unwrap()
}

#[test]
fn a_new_image_is_sparse_and_its_owners_alone() {
    use std::os::unix::fs::MetadataExt;
    let (_dir, path) = folder();
    FileDevice::create(&path, 1 << 40).unwrap();
    let about = std::fs::metadata(&path).unwrap();
    assert_eq!(about.len(), 1 << 40);
    assert!(about.blocks() < 64);
    assert_eq!(about.mode() & 0o077, 0);
}

#[test]
fn creation_neither_replaces_a_file_nor_leaves_half_of_one() {
    let (_dir, path) = folder();
    std::fs::write(&path, "mine").unwrap();
    let error = FileDevice::create(&path, 4096).unwrap_err();
    assert_eq!(
        (error.operation, error.errno()),
        (Operation::Create, Errno::EEXIST)
    );
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    std::fs::remove_file(&path).unwrap();
    for size in [1000, u64::MAX, 1 << 63] {
        FileDevice::create(&path, size).unwrap_err();
        assert!(!path.exists(), "{size}");
    }
}

#[test]
fn a_second_open_in_this_process_is_refused_and_told_so() {
    let (_dir, path) = folder();
    let device = create(&path);
    for access in [Access::ReadWrite, Access::ReadOnly] {
        let error = FileDevice::open(&path, access).unwrap_err();
        assert_eq!(error.cause, Cause::Held(Holder::ThisProcess));
        assert_eq!(error.errno(), Errno::EBUSY);
        let message = error.to_string();
        assert!(
            message.contains("data.hf") && message.contains("close it there"),
            "{message}"
        );
    }
    drop(device);
    FileDevice::open(&path, Access::ReadWrite).unwrap();
}

#[test]
fn readers_share_and_keep_writers_out() {
    let (_dir, path) = folder();
    drop(create(&path));
    let one = FileDevice::open(&path, Access::ReadOnly).unwrap();
    let two = FileDevice::open(&path, Access::ReadOnly).unwrap();
    assert!(matches!(
        FileDevice::open(&path, Access::ReadWrite)
            .unwrap_err()
            .cause,
        Cause::Held(_)
    ));
    for device in [&one, &two] {
        device.read(0, &mut [0; 512]).unwrap();
        device.flush().unwrap();
        let refused = [
            device.write(0, &[0; 512]).unwrap_err(),
            device.discard(0, 512).unwrap_err(),
            device.resize(1 << 21).unwrap_err(),
        ];
        assert!(refused.iter().all(|it| it.cause == Cause::ReadOnly));
    }
}

/// A process that is ended when the test is over, however it goes.
struct Guarded(Child);

impl Drop for Guarded {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Locks a file from a shell, which leaves the lock to a child as a daemon's parent does.
fn lock_elsewhere(path: &Path, script: &str) -> Guarded {
    use std::io::Read;
    let mut child = Command::new("bash")
        .args(["-c", script, "holder-of-the-image"])
        .arg(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut ready)
        .unwrap();
    Guarded(child)
}

#[test]
fn the_holder_in_another_process_is_named() {
    let (_dir, path) = folder();
    drop(create(&path));
    // The command that takes the lock ends at once and leaves it to the shell.
    let holder = lock_elsewhere(&path, "exec 9<\"$1\"; flock -n 9 && echo; read");
    let error = FileDevice::open(&path, Access::ReadWrite).unwrap_err();
    let Cause::Held(Holder::Process { pid, ref command }) = error.cause else {
        panic!("{error}");
    };
    assert_eq!(pid, holder.0.id());
    assert!(command.contains("holder-of-the-image"), "{command}");
    assert!(
        error
            .to_string()
            .contains("unmount it there or end that process"),
        "{error}"
    );
}

#[test]
fn what_is_no_device_is_refused_without_waiting() {
    let (dir, path) = folder();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let open = |path: &Path| FileDevice::open(path, Access::ReadWrite).unwrap_err();
    assert_eq!(open(&path).cause, Cause::NotADevice);
    assert_eq!(open(Path::new("/dev/null")).cause, Cause::NotADevice);
    assert_eq!(open(dir.path()).errno(), Errno::EISDIR);
    assert_eq!(open(&dir.path().join("absent")).errno(), Errno::ENOENT);
}

#[test]
fn bad_ranges_are_refused_and_change_nothing() {
    let (_dir, path) = folder();
    let device = create(&path);
    let size = device.size();
    let misaligned = Cause::Misaligned { alignment: SECTOR };
    assert_eq!(device.write(1, &[1; 512]).unwrap_err().cause, misaligned);
    assert_eq!(device.write(0, &[1; 511]).unwrap_err().cause, misaligned);
    for offset in [size, u64::MAX - 511] {
        let error = device.write(offset, &[1; 512]).unwrap_err();
        assert_eq!((error.offset, error.length), (offset, 512));
        assert_eq!(error.cause, Cause::OutOfRange { size });
        assert_eq!(
            device.discard(offset, 512).unwrap_err().cause,
            Cause::OutOfRange { size }
        );
        device.read(offset, &mut [0; 512]).unwrap_err();
    }
    assert_eq!(
        device.resize(size - 512).unwrap_err().cause,
        Cause::Shrinks { size }
    );
    assert_eq!(std::fs::metadata(&path).unwrap().len(), size);
    let mut all = vec![1; size as usize];
    device.read(0, &mut all).unwrap();
    assert!(all.iter().all(|&byte| byte == 0));
}

#[test]
fn a_file_cut_from_outside_is_an_error_not_zeros() {
    let (_dir, path) = folder();
    let device = create(&path);
    let outside = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    outside.set_len(5000).unwrap();
    let error = device.read(4096, &mut [0; 2048]).unwrap_err();
    assert_eq!(error.cause, Cause::Truncated { end: 5000 });
    assert_eq!(error.errno(), Errno::EIO);
}

#[test]
fn a_punched_image_takes_less_space() {
    use std::os::unix::fs::MetadataExt;
    let (_dir, path) = folder();
    let device = create(&path);
    device.write(0, &vec![1; 1 << 20]).unwrap();
    device.flush().unwrap();
    let full = std::fs::metadata(&path).unwrap().blocks();
    if device.discard(0, 1 << 19).unwrap() {
        assert!(std::fs::metadata(&path).unwrap().blocks() < full);
    }
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 1 << 20);
}

#[test]
fn a_full_host_is_told_from_other_failures() {
    let device = FileDevice::open(Path::new("/dev/full"), Access::ReadWrite);
    assert_eq!(device.unwrap_err().cause, Cause::NotADevice);
    let mounted = small_tmpfs();
    let Some((dir, _mount)) = mounted else { return };
    let path = dir.path().join("data.hf");
    let device = FileDevice::create(&path, 1 << 24).unwrap();
    let error = device.write(0, &vec![1; 1 << 24]).unwrap_err();
    assert!(error.is_no_space(), "{error}");
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    assert!(device.discard(0, 1 << 24).unwrap());
    device.write(1 << 20, &[1; 4096]).unwrap();
}

/// Unmounts at the end.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH).unwrap();
    }
}

/// A tmpfs of one MiB, where this process may mount one.
fn small_tmpfs() -> Option<(tempfile::TempDir, Mounted)> {
    let dir = tempfile::tempdir().unwrap();
    let flags = rustix::mount::MountFlags::empty();
    rustix::mount::mount("tmpfs", dir.path(), "tmpfs", flags, Some(c"size=1m"))
        .inspect_err(|error| eprintln!("not tried, mounting failed: {error}"))
        .ok()?;
    let mounted = Mounted(dir.path().to_path_buf());
    Some((dir, mounted))
}
