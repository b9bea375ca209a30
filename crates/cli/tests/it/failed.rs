//! Volumes that fail while they are mounted: messages and states.

use crate::{
    fixture::{HOLDFAST, Place, call, holdfast, is_gone, named, wait_until},
    volumes::checked,
};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::Command;

/// A file system of the host of a given size, at `host` in the place.
pub(crate) struct Host(PathBuf);

impl Host {
    pub(crate) fn mounted(place: &Place) -> Self {
        Self::of(place, c"size=32m")
    }

    /// `size`: as the mount option.
    fn of(place: &Place, size: &CStr) -> Self {
        let dir = place.path("host");
        fs::create_dir(&dir).unwrap();
        let flags = rustix::mount::MountFlags::empty();
        rustix::mount::mount("tmpfs", &dir, "tmpfs", flags, size).unwrap();
        Self(dir)
    }

    /// Allocates all free space.
    fn fill(&self) {
        let mut file = File::create(self.0.join("filler")).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
    }

    fn make_room(&self) {
        fs::remove_file(self.0.join("filler")).unwrap();
    }

    /// Writes a file to a volume here, and allocates all space of the host before the volume writes
    /// it. Returns the file; its fsync has failed.
    pub(crate) fn lose(&self, place: &Place) -> File {
        for number in 0..200 {
            let mut file = File::create(place.path(&format!("mnt/lost {number}"))).unwrap();
            file.write_all(&[1; 1 << 16]).unwrap();
            self.fill();
            if file.sync_all().is_err() {
                return file;
            }
            self.make_room();
        }
        panic!("the volume is always faster");
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Also after a test that failed and left the image mounted.
        let flags = rustix::mount::UnmountFlags::DETACH;
        rustix::mount::unmount(&self.0, flags).unwrap();
    }
}

#[test]
fn a_host_that_is_full_is_told_of_by_whatever_unmounts_and_by_the_mount() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    let ways = [
        ("holdfast", &["umount"][..], 1),
        ("holdfast", &["umount", "--force"], 1),
        ("umount.fuse.holdfast", &[], 32),
    ];
    let host = Host::mounted(&place);
    let image = place
        .path("host/data.hf")
        .into_os_string()
        .into_string()
        .unwrap();
    for (number, (name, arguments, code)) in ways.into_iter().enumerate() {
        let _ = fs::remove_file(&image);
        holdfast(["mkfs", "--quiet", "--size", "64m", &image]).ok();
        holdfast(["mount", &image, &place.mnt()]).ok();
        fs::write(place.path("mnt/before"), "before").unwrap();
        rustix::fs::fsync(File::open(place.path("mnt")).unwrap()).unwrap();
        // Once after the volume has failed, and once before.
        if number > 0 {
            fs::write(place.path("mnt/lost"), vec![1; 1 << 16]).unwrap();
            host.fill();
        } else {
            host.lose(&place);
            let info = place.info();
            assert_eq!(info["state"], "failed", "{info}");
            assert!(
                info["failure"].as_str().unwrap().contains("No space left"),
                "{info}"
            );
            let table = holdfast(["info", &place.mnt()]).ok();
            assert!(
                table.contains("state        failed: ") && table.contains("No space left"),
                "{table}"
            );
            wait_until("the mount says that it is read-only", || {
                let flags = rustix::fs::statvfs(place.path("mnt")).unwrap().f_flag;
                flags.contains(rustix::fs::StatVfsMountFlags::RDONLY)
            });
            let error = holdfast(["mount", &image, &place.mnt(), "-o", "remount,rw"]).fails(1);
            assert!(
                error.contains("No space left") && error.contains("mount it again"),
                "{error}"
            );
        }
        let mnt = place.mnt();
        let error = named(name, [arguments, &[&mnt[..]]].concat()).fails(code);
        assert!(
            error.contains(&image) && error.contains("No space left"),
            "{error}"
        );
        assert!(error.contains("free space where the image lies"), "{error}");
        assert!(!place.is_mounted());
        // It is as after a crash, and works once there is space.
        host.make_room();
        let report = checked(&image);
        assert_eq!(report["clean"], true, "{report}");
        let shown = holdfast(["fsck", &image]).ok();
        assert!(
            shown.contains("was left unclosed") && shown.contains("failed while it was in use"),
            "{shown}"
        );
        holdfast(["mount", &image, &place.mnt()]).ok();
        assert_eq!(fs::read(place.path("mnt/before")).unwrap(), b"before");
        fs::write(place.path("mnt/after"), vec![2; 1 << 20]).unwrap();
        place.umount();
        assert_eq!(checked(&image)["clean"], true);
        let shown = holdfast(["fsck", &image]).ok();
        assert!(!shown.contains("unclosed"), "{shown}");
    }
}

#[test]
fn the_failure_of_a_volume_is_logged_whatever_the_filter() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    let host = Host::mounted(&place);
    let (image, log) = (place.path("host/data.hf"), place.path("log"));
    call(&[&"mkfs", &"--quiet", &"--size", &"64m", &image]).ok();
    let mounted = Command::new(HOLDFAST)
        .args(["mount", "--log"])
        .args([&log, &image, &place.path("mnt")])
        .env("HOLDFAST_LOG", "off")
        .status();
    assert!(mounted.unwrap().success());
    drop(host.lose(&place));
    wait_until("the log has the failure", || {
        let text = fs::read_to_string(&log).unwrap();
        text.contains("ERROR") && text.contains("the volume failed") && text.contains("No space")
    });
    crate::fixture::umount(&place.mnt()).fails(1);
}

/// The process that marks this mount read-only.
fn marker_of(dir: &str) -> Option<i32> {
    let processes = fs::read_dir("/proc").unwrap();
    let numbers = processes.filter_map(|it| it.unwrap().file_name().to_str()?.parse().ok());
    let is_it = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        words.contains(&&b"mark-failed-mount"[..]) && words.contains(&dir.as_bytes())
    };
    numbers.into_iter().find(is_it)
}

#[test]
fn a_process_beside_the_daemon_marks_the_mount_of_a_failed_volume_and_ends_with_the_daemon() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    let host = Host::mounted(&place);
    let image = place.path("host/data.hf");
    let image = image.to_str().unwrap();
    holdfast(["mkfs", "--quiet", "--size", "64m", image]).ok();
    holdfast(["mount", image, &place.mnt()]).ok();
    let daemon = place.daemon();
    let held = host.lose(&place);
    let mut marker = None;
    wait_until("a process tries to mark the mount", || {
        marker = marker_of(&place.mnt());
        marker.is_some()
    });
    let marker = marker.unwrap();
    let is_read_only = || {
        let flags = rustix::fs::statvfs(place.path("mnt")).unwrap().f_flag;
        flags.contains(rustix::fs::StatVfsMountFlags::RDONLY)
    };
    assert!(!is_read_only(), "a file is open for writing");
    kill_process(Pid::from_raw(daemon).unwrap(), Signal::KILL).unwrap();
    wait_until("the daemon is gone", || is_gone(daemon));
    wait_until("the process beside it is gone", || is_gone(marker));
    drop(held);
    crate::fixture::umount(&place.mnt()).ok();
    host.make_room();
    assert_eq!(checked(image)["clean"], true);
}

/// Writes files of a mebibyte until there is no room; how many.
fn fill_up(place: &Place, prefix: &str) -> usize {
    for number in 0.. {
        let path = place.path(&format!("mnt/{prefix}{number}"));
        if let Err(error) = fs::write(&path, vec![7; 1 << 20]) {
            assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
            // If it could be made, a part of it exists.
            let _ = fs::remove_file(&path);
            return number;
        }
    }
    unreachable!()
}

#[test]
fn a_volume_on_a_host_with_less_room_than_it_promises_is_full_with_it_and_goes_on() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    let host = Host::of(&place, c"size=96m");
    let image = place.path("host/data.hf");
    let image = image.to_str().unwrap();
    holdfast(["mkfs", "--quiet", "--size", "256m", image]).ok();
    holdfast(["mount", image, &place.mnt()]).ok();
    let free = || {
        let space = rustix::fs::statvfs(place.path("mnt")).unwrap();
        space.f_bavail * space.f_frsize
    };
    assert!(free() < 96 << 20, "{}", free());
    let written = fill_up(&place, "a");
    assert!(written > 8, "{written}");
    rustix::fs::syncfs(File::open(place.path("mnt")).unwrap()).unwrap();
    assert_eq!(place.info()["state"], "read_write");
    // Removing files frees space, as soon as the kernel forgets them.
    for number in 0..8 {
        fs::remove_file(place.path(&format!("mnt/a{number}"))).unwrap();
    }
    wait_until("the removed files are forgotten", || free() >= 7 << 20);
    let again = fill_up(&place, "b");
    assert!(again >= 7, "{again} of 8");
    // The host has space as well.
    let none = rustix::mount::MountFlags::empty();
    rustix::mount::mount_remount(&host.0, none, c"size=128m").unwrap();
    let more = fill_up(&place, "c");
    assert!(more >= 28, "{more} of 32");
    place.umount();
    assert_eq!(checked(image)["clean"], true);
    drop(host);
}
