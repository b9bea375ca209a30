//! Volumes: image files made, mounted again, left by a crash, in use by others.

use crate::fixture::{Place, Store, holdfast, is_gone, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::Write;

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
fn what_was_written_is_there_when_the_image_is_mounted_again() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    mount(&place, &CREATE);
    assert_eq!(fs::metadata(place.path("data.hf")).unwrap().len(), 64 << 20);
    fs::create_dir(place.path("mnt/dir")).unwrap();
    fs::write(place.path("mnt/dir/small"), "few").unwrap();
    fs::write(place.path("mnt/dir/large"), vec![7; 100_000]).unwrap();
    place.umount();
    // `--create` of an existing image opens it.
    mount(&place, &CREATE);
    assert_eq!(fs::read(place.path("mnt/dir/small")).unwrap(), b"few");
    assert_eq!(fs::read(place.path("mnt/dir/large")).unwrap(), [7; 100_000]);
    let info = place.info();
    assert_eq!(info["source"], place.path("data.hf").to_str().unwrap());
    assert!(info["space_bytes"].as_u64().unwrap() < 64 << 20, "{info}");
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
    // Past the kernel's cache.
    File::open(&path).unwrap().sync_all().unwrap();
    let advice = rustix::fs::Advice::DontNeed;
    rustix::fs::fadvise(File::open(&path).unwrap(), 0, None, advice).unwrap();
    assert!(fs::read(&path).unwrap() == data);
    assert!(kept(&place) <= 3 << 20);
    place.umount();
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
fn a_damaged_image_is_found_and_repaired() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    mount(&place, &CREATE);
    fs::write(place.path("mnt/file"), "kept").unwrap();
    place.umount();
    let image = place.path("data.hf");
    let path = image.to_str().unwrap();
    holdfast(["fsck", path]).ok();
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
pub(crate) fn checked(image: &str) -> serde_json::Value {
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

#[test]
fn a_probe_names_the_label_and_the_uuid_even_of_a_volume_in_use() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    let image = place.path("data.hf");
    let image = image.to_str().expect("a plain path");
    holdfast(["mkfs", image, "--size", "64m", "--label", "some mail"]).ok();
    let uuid = holdfast(["info", "--json", image]).ok();
    let uuid: serde_json::Value = serde_json::from_str(&uuid).expect("JSON");
    let uuid = uuid["uuid"].as_str().expect("a UUID");
    mount(&place, &[]);
    let said = holdfast(["probe", image]).ok();
    for line in [
        "ID_FS_TYPE=holdfast",
        &format!("ID_FS_UUID={uuid}"),
        "ID_FS_LABEL=some_mail",
        "ID_FS_LABEL_ENC=some\\x20mail",
        "ID_FS_SIZE=67108864",
    ] {
        assert!(said.lines().any(|found| found == line), "{line}: {said}");
    }
    place.umount();
    let other = place.path("other");
    fs::write(&other, "no volume").unwrap();
    let other = other.to_str().expect("a plain path");
    assert_eq!(holdfast(["probe", other]).ok(), "");
}
