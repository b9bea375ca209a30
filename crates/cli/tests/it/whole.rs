//! A volume that is mounted as `fuseblk`: sync(1) makes it durable, umount(2) returns when it is
//! closed.

use crate::fixture::{Place, Store, holdfast, is_gone, wait_until};
use holdfast::engine::{FileSystem, Options, types::Caller};
use holdfast_device::{Access, BlockDevice, FileDevice, MemoryDevice};
use holdfast_fuse::mount::{backing_of, mounted_at};
use holdfast_testkit::skip::skipped_by_kernel;
use holdfast_volume::{OpenOptions, VolumeStore};
use rustix::{
    mount::UnmountFlags,
    process::{Pid, Signal, kill_process},
};
use std::{fs, path::Path, sync::Arc};

/// The type that the mount has, and its first column.
fn mounted(place: &Place) -> (String, String) {
    let mounted = mounted_at(&place.path("mnt")).unwrap().unwrap();
    (mounted.fs_type, mounted.source)
}

/// Are loop devices available?
fn can(place: &Place) -> bool {
    let is_block = mounted(place).0 == "fuseblk.holdfast";
    if !is_block {
        skipped_by_kernel("no loop device is to be had");
    }
    is_block
}

fn has(device: Arc<dyn BlockDevice>, name: &[u8]) -> bool {
    let store = VolumeStore::open(device, &OpenOptions::DEFAULT).unwrap();
    let fs = FileSystem::new(Arc::new(store), Options::default()).unwrap();
    fs.lookup(&Caller::root(), &fs.root(), name).is_ok()
}

/// Is the name there after a power cut now?
fn outlives_a_power_cut(image: &Path, name: &[u8]) -> bool {
    let image = fs::read(image).unwrap();
    // The copy has never been in this host's cache.
    let device = MemoryDevice::new(image.len() as u64).with_cache_identity(Some(1));
    device.write(0, &image).unwrap();
    has(Arc::new(device), name)
}

#[test]
fn what_was_synced_outlives_a_power_cut_and_what_was_unmounted_can_be_opened_at_once() {
    for transport in ["auto", "dev"] {
        let Some(place) = Place::over(Store::Volume) else {
            return;
        };
        place.mount(&["-o", "commit=3600", "--transport", transport]);
        if !can(&place) {
            return;
        }
        let image = Path::new(&place.source()).to_owned();
        let (_, source) = mounted(&place);
        assert_eq!(backing_of(Path::new(&source)), Some(image.clone()));
        fs::write(place.path("mnt/one"), "1").unwrap();
        let root = fs::File::open(place.path("mnt")).unwrap();
        rustix::fs::syncfs(&root).unwrap();
        drop(root);
        assert!(outlives_a_power_cut(&image, b"one"));

        fs::write(place.path("mnt/two"), "2").unwrap();
        // Not by the command, which would wait for the daemon. A process that a test beside this
        // begins may hold the file open for a moment.
        wait_until("nothing is open", || {
            rustix::mount::unmount(place.path("mnt"), UnmountFlags::empty()).is_ok()
        });
        let device = FileDevice::open(&image, Access::ReadWrite).unwrap();
        assert!(has(Arc::new(device), b"two"));
        assert_eq!(
            backing_of(Path::new(&source)),
            None,
            "the loop device is gone"
        );
    }
}

#[test]
fn a_volume_is_mounted_as_its_options_say_and_told_by_its_image() {
    let Some(place) = Place::over(Store::Volume) else {
        return;
    };
    place.mount(&["-o", "fuseblk=off"]);
    assert_eq!(mounted(&place), ("fuse.holdfast".into(), place.source()));
    place.umount();
    place.mount(&["-o", "fsname=named"]);
    assert_eq!(mounted(&place), ("fuse.holdfast".into(), "named".into()));
    place.umount();
    place.mount(&[]);
    if can(&place) {
        let info = holdfast(["info", &place.source()]).ok();
        assert!(info.contains(&place.mnt()), "{info}");
    }
    place.umount();
}

/// A stopped daemon; continued on drop.
struct Stopped(Pid);

impl Stopped {
    fn daemon_of(place: &Place) -> Self {
        let pid = Pid::from_raw(place.daemon()).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        Self(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // It may have been killed.
        let _ = kill_process(self.0, Signal::CONT);
    }
}

#[test]
fn a_daemon_that_hangs_is_named_to_those_who_unmount() {
    let Some(place) = Place::over(Store::Volume) else {
        return;
    };
    place.mount(&["--transport", "dev"]);
    if !can(&place) {
        return;
    }
    let stopped = Stopped::daemon_of(&place);
    let daemon = stopped.0.as_raw_pid();
    let told = holdfast(["umount", &place.mnt()]).fails(1);
    let silent = format!("its daemon (pid {daemon}) does not answer");
    assert!(told.contains(&silent) && told.contains("--force"), "{told}");
    assert!(place.is_mounted());

    // As another program, which may block.
    rustix::mount::unmount(place.path("mnt"), UnmountFlags::DETACH).unwrap();
    let told = holdfast(["umount", "--force", &place.mnt()]).fails(1);
    assert!(told.contains("nothing is mounted there"), "{told}");
    let remedy = format!("kill -9 {daemon}");
    assert!(told.contains(&remedy), "{told}");
    kill_process(stopped.0, Signal::KILL).unwrap();
    wait_until("the daemon is gone", || is_gone(daemon));
    place.check();
}

#[test]
fn the_mount_of_a_daemon_that_hangs_is_detached_without_waiting_for_it() {
    let Some(place) = Place::over(Store::Volume) else {
        return;
    };
    place.mount(&["--transport", "dev"]);
    if !can(&place) {
        return;
    }
    let stopped = Stopped::daemon_of(&place);
    let daemon = stopped.0.as_raw_pid();
    let told = holdfast(["umount", "--lazy", &place.mnt()]).ok();
    assert!(told.contains("does not answer"), "{told}");
    assert!(told.contains(&format!("kill -9 {daemon}")), "{told}");
    assert!(!place.is_mounted());
    assert!(!is_gone(daemon));
    drop(stopped);
    wait_until("the daemon ends", || is_gone(daemon));
    place.check();
}
