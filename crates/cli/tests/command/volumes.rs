//! Mounts that last: image files made, mounted again, left behind by a crash, in use by others.

use crate::fixture::{Place, Store, holdfast, is_gone, named, wait_until};
use holdfast_testkit::skip::skipped_by_kernel;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

/// Mounts an image at `mnt` with more arguments.
#[track_caller]
fn mount(place: &Place, more: &[&str]) {
    let image = place.path("data.hf");
    let image = image.to_str().expect("a plain path");
    let mnt = place.mnt();
    holdfast([&["mount", image, &mnt], more].concat()).ok();
    assert!(place.is_mounted(), "returned before the mount is live");
}

const CREATE: [&str; 3] = ["--create", "--size", "64m"];

#[test]
fn an_image_that_is_not_there_is_made_only_if_asked_for() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    let image = place.path("data.hf");
    let error = holdfast(["mount", image.to_str().unwrap(), &place.mnt()]).fails(1);
    assert!(error.contains("--create"), "{error}");
    assert!(!image.exists() && !place.path("mnt").exists());
    mount(&place, &CREATE);
    assert_eq!(fs::metadata(&image).unwrap().len(), 64 << 20);
    place.umount();
}

#[test]
fn what_was_written_is_there_when_the_image_is_mounted_again() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    mount(&place, &CREATE);
    fs::create_dir(place.path("mnt/dir")).unwrap();
    fs::write(place.path("mnt/dir/small"), "few").unwrap();
    fs::write(place.path("mnt/dir/large"), vec![7; 100_000]).unwrap();
    place.umount();
    // `--create` of one that is there opens it.
    mount(&place, &CREATE);
    assert_eq!(fs::read(place.path("mnt/dir/small")).unwrap(), b"few");
    assert_eq!(fs::read(place.path("mnt/dir/large")).unwrap(), [7; 100_000]);
    let info = place.info();
    assert_eq!(info["source"], place.path("data.hf").to_str().unwrap());
    assert!(info["space_bytes"].as_u64().unwrap() < 64 << 20, "{info}");
    place.umount();
}

#[test]
fn what_the_kernel_holds_is_asked_back_when_memory_has_a_limit() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    mount(&place, &[&CREATE[..], &["-o", "memory=2m"]].concat());
    let info = place.info();
    let speaks = info["abi"]["kernel_version"].as_str().unwrap();
    let minor: u32 = speaks.strip_prefix("7.").unwrap().parse().unwrap();
    if minor < 45 {
        skipped_by_kernel(&format!(
            "it speaks FUSE {speaks}, and is not asked to forget before 7.45"
        ));
        return place.umount();
    }
    const FILES: u64 = 20_000;
    for number in 0..FILES {
        let dir = place.path(&format!("mnt/{}", number / 500));
        if number % 500 == 0 {
            fs::create_dir(&dir).unwrap();
        }
        File::create(dir.join(number.to_string())).unwrap();
    }
    let held = || place.info()["inodes"].as_u64().unwrap();
    // Half a megabyte is 2,260 inodes with a name each; what was asked for last is on its way.
    wait_until("the kernel forgets", || held() < FILES / 2);
    for number in (0..FILES).step_by(97) {
        let file = place.path(&format!("mnt/{}/{number}", number / 500));
        assert_eq!(fs::metadata(file).unwrap().len(), 0);
    }
    place.umount();
}

#[test]
fn what_was_synced_survives_the_end_of_the_daemon() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    mount(&place, &CREATE);
    fs::write(place.path("mnt/before"), "before").unwrap();
    let mut file = File::create(place.path("mnt/synced")).unwrap();
    file.write_all(&[9; 10_000]).unwrap();
    file.sync_all().unwrap();
    drop(file);
    let daemon = Pid::from_raw(place.daemon()).unwrap();
    kill_process(daemon, Signal::KILL).unwrap();
    place.umount();
    mount(&place, &[]);
    assert_eq!(fs::read(place.path("mnt/synced")).unwrap(), [9; 10_000]);
    assert_eq!(
        fs::read(place.path("mnt/before")).unwrap(),
        b"before",
        "what came before it is there too"
    );
    place.umount();
}

#[test]
fn an_image_belongs_to_one_mount_and_others_are_told_whose() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    mount(&place, &CREATE);
    let daemon = place.daemon();
    let image = place.path("data.hf");
    let other = place.path("other");
    let error = holdfast(["mount", image.to_str().unwrap(), other.to_str().unwrap()]).fails(1);
    assert!(error.contains(&format!("process {daemon}")), "{error}");
    assert!(!other.exists());
    place.umount();
}

#[test]
fn a_volume_keeps_no_more_in_memory_than_it_may() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    mount(&place, &[&CREATE[..], &["-o", "memory=4m"]].concat());
    let data: Vec<u8> = (0..20 << 20).map(|at| (at / 4099) as u8).collect();
    let path = place.path("mnt/large");
    fs::write(&path, &data).unwrap();
    let kept = |place: &Place| {
        let info = place.info();
        assert_eq!(info["memory"]["budget_bytes"], 4 << 20);
        info["bytes"].as_u64().unwrap()
    };
    assert!(kept(&place) <= 3 << 20);
    // Not what the kernel has kept.
    File::open(&path).unwrap().sync_all().unwrap();
    let advice = rustix::fs::Advice::DontNeed;
    rustix::fs::fadvise(File::open(&path).unwrap(), 0, None, advice).unwrap();
    assert!(fs::read(&path).unwrap() == data);
    assert!(kept(&place) <= 3 << 20);
    place.umount();
    let error = holdfast(["mount", "mem:", &place.mnt(), "-o", "memory=2m"]).fails(1);
    assert!(error.contains("option memory=2m"), "{error}");
}

#[test]
fn limits_of_memory_are_refused() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    let image = place.path("data.hf");
    let arguments = [
        "mount",
        image.to_str().unwrap(),
        &place.mnt(),
        "-o",
        "size=1g",
    ];
    let error = holdfast(arguments).fails(1);
    assert!(error.contains("option size=1g"), "{error}");
    assert!(!image.exists());
}

#[test]
fn a_volume_is_clean_after_use_and_after_the_end_of_its_daemon() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    let image = place.path("data.hf");
    let image = image.to_str().unwrap();
    mount(&place, &CREATE);
    fs::write(place.path("mnt/file"), vec![1; 50_000]).unwrap();
    fs::create_dir(place.path("mnt/dir")).unwrap();
    let error = holdfast(["fsck", image]).fails(8);
    assert!(error.contains("in use by process"), "{error}");
    place.umount();
    let out = holdfast(["fsck", image]).ok();
    assert!(out.contains("clean: 3 inodes"), "{out}");

    mount(&place, &[]);
    let file = File::create(place.path("mnt/synced")).unwrap();
    file.sync_all().unwrap();
    drop(file);
    let daemon = Pid::from_raw(place.daemon()).unwrap();
    kill_process(daemon, Signal::KILL).unwrap();
    place.umount();
    let out = holdfast(["fsck", "--json", image]).ok();
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["clean"], true, "{report}");
    assert_eq!(report["replayed"], true, "{report}");
    assert_eq!(report["inodes"], 4, "{report}");
}

#[test]
fn damage_is_found_and_told_by_the_exit_code() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    let image = place.path("data.hf");
    mount(&place, &CREATE);
    fs::write(place.path("mnt/file"), "x").unwrap();
    place.umount();
    let mut bytes = fs::read(&image).unwrap();
    // A superblock: its copy is whole.
    bytes[200] ^= 1;
    fs::write(&image, &bytes).unwrap();
    let run = holdfast(["fsck", image.to_str().unwrap()]);
    assert_eq!(run.code, Some(4), "{}{}", run.out, run.error);
    assert!(run.out.contains("DAMAGED"), "{}", run.out);
    let none = place.path("none");
    let error = holdfast(["fsck", none.to_str().unwrap()]).fails(8);
    assert!(error.contains("none"), "{error}");
}

#[test]
fn a_damaged_image_is_found_repaired_and_shown() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    mount(&place, &CREATE);
    fs::write(place.path("mnt/file"), "kept").unwrap();
    place.umount();
    let image = place.path("data.hf");
    let path = image.to_str().unwrap();
    holdfast(["fsck", path]).ok();
    let shown = holdfast(["dump", path, "superblock", "--json"]).ok();
    assert!(shown.contains("\"closed\":true"), "{shown}");
    let shown = holdfast(["dump", path, "inode", "1"]).ok();
    assert!(shown.contains("name: file"), "{shown}");
    // The second superblock.
    let mut file = File::options().write(true).open(&image).unwrap();
    std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(4096)).unwrap();
    file.write_all(&[7; 4096]).unwrap();
    drop(file);
    holdfast(["fsck", path]).fails(4);
    holdfast(["fsck", "--repair", path]).fails(1);
    holdfast(["fsck", path]).ok();
    mount(&place, &[]);
    assert_eq!(fs::read(place.path("mnt/file")).unwrap(), b"kept");
    place.umount();
}

/// The report of `fsck` on an image that is not in use.
fn checked(image: &str) -> serde_json::Value {
    serde_json::from_str(&holdfast(["fsck", "--json", image]).ok()).expect("JSON")
}

#[test]
fn a_volume_taken_away_from_its_users_is_closed_cleanly_with_all_they_did() {
    let Some(place) = Place::over(Store::Volume) else {
        return;
    };
    place.mount(&[]);
    let daemon = place.daemon();
    let mut held = File::create(place.path("mnt/held")).unwrap();
    held.write_all(&[3; 100_000]).unwrap();
    fs::write(place.path("mnt/file"), "never synced").unwrap();
    let told = holdfast(["umount", "--force", &place.mnt()]).ok();
    assert!(told.contains("open file "), "{told}");
    assert!(held.write_all(b"too late").is_err());
    drop(held);
    wait_until("the daemon ends with the last file", || is_gone(daemon));
    let report = checked(&place.source());
    assert_eq!(
        (&report["clean"], &report["replayed"]),
        (&true.into(), &false.into())
    );
    place.mount(&[]);
    assert_eq!(fs::read(place.path("mnt/held")).unwrap(), [3; 100_000]);
    assert_eq!(fs::read(place.path("mnt/file")).unwrap(), b"never synced");
    place.umount();
}

/// A file system of the host's, of a size of its own, at `host` in the place.
struct Host(PathBuf);

impl Host {
    fn mounted(place: &Place) -> Self {
        let dir = place.path("host");
        fs::create_dir(&dir).unwrap();
        let flags = rustix::mount::MountFlags::empty();
        rustix::mount::mount("tmpfs", &dir, "tmpfs", flags, c"size=32m").unwrap();
        Self(dir)
    }

    /// Takes all the space that is left.
    fn fill(&self) {
        let mut file = File::create(self.0.join("filler")).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
    }

    fn make_room(&self) {
        fs::remove_file(self.0.join("filler")).unwrap();
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
        host.fill();
        fs::write(place.path("mnt/lost"), vec![1; 1 << 20]).unwrap();
        // Once the volume has failed before, and once not.
        if number == 0 {
            let error = File::open(place.path("mnt/lost")).unwrap().sync_all();
            assert!(error.is_err(), "there is no room");
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
        // It is as after a crash, and works on once there is room.
        host.make_room();
        let report = checked(&image);
        assert_eq!(report["clean"], true, "{report}");
        holdfast(["mount", &image, &place.mnt()]).ok();
        assert_eq!(fs::read(place.path("mnt/before")).unwrap(), b"before");
        fs::write(place.path("mnt/after"), vec![2; 1 << 20]).unwrap();
        place.umount();
        assert_eq!(checked(&image)["clean"], true);
    }
}
