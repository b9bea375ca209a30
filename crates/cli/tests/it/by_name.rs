//! The program by the names that mount(8) and umount(8) call.

use crate::fixture::{HOLDFAST, Place, Store, named, on_each_store, wait_until};
use std::{
    fs,
    os::unix::fs::symlink,
    process::{Command, Stdio},
};

#[test]
fn a_link_named_mount_holdfast_serves_mount() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    let (mount, umount) = (
        place.path("mount.holdfast"),
        place.path("umount.fuse.holdfast"),
    );
    symlink(HOLDFAST, &mount).unwrap();
    symlink(HOLDFAST, &umount).unwrap();
    let mnt = place.mnt();
    // As mount(8) calls it for a line of fstab.
    let output = Command::new(&mount)
        .args([
            "mem:",
            &mnt,
            "-v",
            "-o",
            "rw,noatime,size=25%,nofail,x-systemd.automount,user=me",
        ])
        .args(["-t", "holdfast"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("mem: mounted"));
    assert_eq!(place.info()["options"], "rw,noatime,size=25%");
    // As mount(8) calls it for `mount -o remount,ro`, with what stands in the kernel's table.
    let table = "rw,noatime,user_id=0,group_id=0,default_permissions,allow_other";
    let remount = |more: &str| {
        let options = format!("{table},remount,{more}");
        Command::new(&mount)
            .args(["mem:", &mnt, "-o", &options])
            .stderr(Stdio::null())
            .status()
            .unwrap()
    };
    assert!(remount("ro").success());
    assert!(fs::write(place.path("mnt/file"), "x").is_err());
    assert!(remount("rw").success());
    assert_eq!(remount("size=1g").code(), Some(32));
    fs::write(place.path("mnt/file"), "x").unwrap();
    let busy = fs::File::open(place.path("mnt/file")).unwrap();
    assert_eq!(
        Command::new(&umount)
            .arg(&mnt)
            .output()
            .unwrap()
            .status
            .code(),
        Some(32)
    );
    drop(busy);
    // A child that another test starts has a copy of it until its exec.
    wait_until("nobody uses the mount", || {
        let umount = Command::new(&umount).args([&mnt, "-n"]).output();
        umount.unwrap().status.success()
    });
    assert!(!place.is_mounted());
}

on_each_store! {
    fn a_mount_in_use_becomes_read_only_where_umount_asks_for_that(place: &Place) {
        place.mount(&[]);
        let file = place.path("mnt/file");
        fs::write(&file, "content").unwrap();
        let held = fs::File::open(&file).unwrap();
        let mnt = place.mnt();
        let error = named("umount.holdfast", [&mnt]).fails(32);
        assert!(error.contains("is in use"), "{error}");
        fs::write(&file, "still writable").unwrap();
        let run = named("umount.holdfast", ["-r", &mnt]);
        assert_eq!(run.code, Some(0), "{}", run.error);
        assert!(run.error.contains("it is mounted read-only now"), "{}", run.error);
        let refused = fs::write(&file, "").unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
        assert_eq!(place.info()["state"], "read_only");
        drop(held);
        place.umount();
    }
}

#[test]
fn a_helper_mounts_in_another_mount_namespace() {
    for store in [Store::Memory, Store::Volume] {
        let Some(place) = Place::alone_over(store) else {
            return;
        };
        let helper = place.path("mount.holdfast");
        symlink(HOLDFAST, &helper).unwrap();
        let mut other = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sleep", "60"])
            .spawn()
            .unwrap();
        let own = fs::read_link("/proc/self/ns/mnt").unwrap();
        let theirs = format!("/proc/{}/ns/mnt", other.id());
        wait_until("the namespace is made", || {
            fs::read_link(&theirs).is_ok_and(|link| link != own)
        });
        let status = Command::new(&helper)
            .args([&place.source(), &place.mnt(), "-N", &other.id().to_string()])
            .stdin(Stdio::null())
            .status()
            .unwrap();
        let table = fs::read_to_string(format!("/proc/{}/mounts", other.id())).unwrap();
        // The mount ends with its namespace.
        let umount = Command::new("nsenter")
            .args([
                "--mount",
                "--target",
                &other.id().to_string(),
                HOLDFAST,
                "umount",
                &place.mnt(),
            ])
            .status()
            .unwrap();
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(status.success());
        assert!(table.contains(&place.mnt()), "{table}");
        assert!(umount.success() && !place.is_mounted());
    }
}
