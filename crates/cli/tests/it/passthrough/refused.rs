//! Hosts that the kernel refuses for passthrough: their files are served by the daemon.

use super::Mount;
use holdfast_fuse::{Passthrough, TransportChoice};
use holdfast_testkit::skip::{mount_obstacle, skipped, skipped_by_kernel};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::ffi::CString;
use std::fs;
use tempfile::TempDir;

/// A directory on overlayfs; the second owns its layers.
fn stacked() -> Option<(TempDir, TempDir)> {
    if let Some(obstacle) = mount_obstacle() {
        skipped(obstacle);
        return None;
    }
    let (over, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    mount(
        c"parts",
        parts.path(),
        c"tmpfs",
        MountFlags::empty(),
        Some(c"size=64m"),
    )
    .unwrap();
    let part = |name: &str| {
        let path = parts.path().join(name);
        fs::create_dir(&path).unwrap();
        path.display().to_string()
    };
    let (lower, upper, work) = (part("lower"), part("upper"), part("work"));
    fs::write(parts.path().join("lower/below"), b"of the lower layer").unwrap();
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
    let options = CString::new(options).unwrap();
    let stacked = mount(
        c"over",
        over.path(),
        c"overlay",
        MountFlags::empty(),
        Some(options.as_c_str()),
    );
    if stacked.is_err() {
        unmount(parts.path(), UnmountFlags::DETACH).unwrap();
        skipped_by_kernel("it has no overlayfs");
        return None;
    }
    Some((over, parts))
}

#[test]
fn a_host_that_lies_over_another_one_is_served_as_before() {
    let Some((over, parts)) = stacked() else {
        return;
    };
    let path = over.path().to_owned();
    if let Some(mount) = Mount::over(over, TransportChoice::Dev, Passthrough::All) {
        let read = fs::read(mount.at("below")).unwrap();
        assert_eq!(read, b"of the lower layer");
        for name in ["below", "new"] {
            fs::write(mount.at(name), vec![1; 10_000]).unwrap();
            assert_eq!(fs::metadata(mount.at(name)).unwrap().len(), 10_000);
            assert_eq!(fs::read(mount.below(name)).unwrap(), vec![1; 10_000]);
        }
        assert!(mount.transfers() > 0);
        let host = unmounted(mount);
        unmount(&path, UnmountFlags::DETACH).unwrap();
        drop(host);
    } else {
        unmount(&path, UnmountFlags::DETACH).unwrap();
    }
    unmount(parts.path(), UnmountFlags::DETACH).unwrap();
}

/// Unmounts; returns the host's directory, which stays mounted.
fn unmounted(mount: Mount) -> TempDir {
    holdfast_testkit::mount::unmount(&mount.session);
    let Mount { host, .. } = mount;
    host
}
