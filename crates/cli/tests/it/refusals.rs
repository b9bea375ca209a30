//! What cannot be done is said with its reason and a remedy, and leaves nothing behind.

use crate::fixture::{Place, holdfast, named};
use std::{fs, os::unix::fs::symlink};

#[test]
fn a_source_that_does_not_exist_is_refused_with_those_that_do() {
    let place = Place::new();
    let error = holdfast(["mount", "redis:there", &place.mnt()]).fails(1);
    assert!(error.starts_with("holdfast: redis:there: "), "{error}");
    assert!(error.contains("`mem:`"), "{error}");
    assert!(!place.path("mnt").exists(), "a folder was made for nothing");
}

#[test]
fn an_unknown_option_is_named_with_the_nearest_one() {
    let place = Place::new();
    let error = holdfast(["mount", "mem:", &place.mnt(), "-o", "rw,notime"]).fails(1);
    assert!(error.starts_with("holdfast: option notime: "), "{error}");
    assert!(error.contains("did you mean noatime?"), "{error}");
    let error = holdfast(["mount", "mem:", &place.mnt(), "-o", "size=lots"]).fails(1);
    assert!(
        error.contains("option size") && error.contains("lots"),
        "{error}"
    );
    assert!(!place.path("mnt").exists());
}

#[test]
fn a_command_that_is_misspelled_is_no_call_of_mount_fuse() {
    for name in ["moutn", "mounts"] {
        let error = holdfast([name, "mem:", "/mnt", "-o", "ro"]).fails(2);
        assert!(error.contains("unrecognized subcommand"), "{error}");
    }
}

#[test]
fn a_mount_point_without_a_parent_is_refused() {
    let place = Place::new();
    let dir = place.path("none/mnt");
    let error = holdfast(["mount", "mem:", dir.to_str().unwrap()]).fails(1);
    assert!(
        error.contains(&format!("hint: mkdir -p {}", dir.display())),
        "{error}"
    );
}

#[test]
fn a_file_is_no_mount_point() {
    let place = Place::new();
    fs::write(place.path("mnt"), "precious").unwrap();
    let error = holdfast(["mount", "mem:", &place.mnt()]).fails(1);
    assert!(error.contains("is not a directory"), "{error}");
    assert_eq!(fs::read_to_string(place.path("mnt")).unwrap(), "precious");
    symlink("nowhere", place.path("link")).unwrap();
    holdfast(["mount", "mem:", place.path("link").to_str().unwrap()]).fails(1);
}

#[test]
fn what_is_not_mounted_cannot_be_unmounted_or_asked() {
    let place = Place::new();
    let error = holdfast(["umount", &place.mnt()]).fails(1);
    assert!(error.contains("nothing is mounted there"), "{error}");
    let error = holdfast(["umount", "/proc"]).fails(1);
    assert!(
        error.contains("is a mount of type proc") && error.contains("hint:"),
        "{error}"
    );
    let error = holdfast(["info", "/proc/self"]).fails(1);
    assert!(
        error.contains("not in a file system mounted by holdfast"),
        "{error}"
    );
    assert!(error.contains("type proc"), "{error}");
    let error = holdfast(["mount", "mem:", &place.mnt(), "-o", "remount,ro"]).fails(1);
    assert!(error.contains("nothing is mounted there"), "{error}");
}

#[test]
fn helpers_fail_with_the_exit_codes_of_mount() {
    let place = Place::new();
    let mnt = place.mnt();
    named("mount.holdfast", ["mem:", &mnt, "-o", "frobnicate"]).fails(32);
    named("umount.holdfast", [&mnt]).fails(32);
    named("mount.holdfast", ["--frobnicate"]).fails(1);
    named(
        "mount.holdfast",
        ["mem:", &mnt, "-s", "-f", "-o", "frobnicate"],
    )
    .ok();
    assert!(!place.path("mnt").exists(), "-f mounts nothing");
}

#[test]
fn a_mount_that_fails_says_why_once() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    let image = place.path("empty.img");
    fs::write(&image, vec![0; 4 << 20]).unwrap();
    let image = image.to_str().unwrap();
    let mnt = place.mnt();
    let mount = ["mount", image, &mnt];
    let error = holdfast(mount).fails(1);
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), 2, "{error}");
    for once in [image, "holds no Holdfast volume", "hint: holdfast fsck"] {
        assert_eq!(error.matches(once).count(), 1, "{once}: {error}");
    }
    // A log that was asked for has it as well.
    let log = place.path("log");
    let told = holdfast([&mount[..], &["--log", log.to_str().unwrap()]].concat()).fails(1);
    assert_eq!(told, error);
    let log = fs::read_to_string(log).unwrap();
    assert_eq!(log.matches("holds no Holdfast volume").count(), 1, "{log}");
    assert!(!place.path("mnt").exists());
}
