//! The environment of a mount: limits of the shell, other mounts of the same file system, read-only
//! devices. Also names that are not UTF-8, closed pipes, and trees deeper than the limit of
//! descriptors.

use crate::fixture::{HOLDFAST, Place, Store, call, holdfast, on_each_store, wait_until};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs a script with the command, and more, as arguments from `$1` on.
fn sh<A: AsRef<OsStr>>(script: &str, arguments: &[A]) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", HOLDFAST]).args(arguments);
    command.stdin(Stdio::null()).output().expect("a shell")
}

#[track_caller]
fn well(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

on_each_store! {
    fn sizes_of_files_are_not_limited_by_the_shell_that_mounts(place: &Place) {
        let mounted = sh(r#"ulimit -Sf 2048; exec "$1" mount "$2" "$3""#, &[place.source(), place.mnt()]);
        well(&mounted);
        fs::write(place.path("mnt/big"), vec![7; 20 << 20]).unwrap();
        fs::File::open(place.path("mnt/big")).unwrap().sync_all().unwrap();
        place.umount();
    }

    fn what_is_mounted_elsewhere_as_well_is_unmounted_at_once_and_that_is_said(place: &Place) {
        place.mount(&[]);
        let other = place.path("other");
        fs::create_dir(&other).unwrap();
        fs::create_dir(place.path("mnt/a")).unwrap();
        fs::write(place.path("mnt/a/file"), "x").unwrap();
        let daemon = place.daemon();
        let (from, to) = (place.path("mnt/a"), other.to_str().unwrap().to_owned());
        well(&Command::new("mount").arg("--bind").arg(&from).arg(&to).output().unwrap());
        let run = crate::fixture::umount(&place.mnt());
        assert_eq!(run.code, Some(0), "{}", run.error);
        assert!(run.error.contains("lives on at") && run.error.contains(&to), "{}", run.error);
        assert_eq!(fs::read(other.join("file")).unwrap(), b"x");
        well(&Command::new("umount").arg(&to).output().unwrap());
        wait_until("the daemon is gone", || crate::fixture::is_gone(daemon));
    }
}

/// Has a daemon that reads only been asked to write?
fn stays_read_only(place: &Place, source: &str) {
    let mnt = place.mnt();
    holdfast(["mount", "-o", "ro", source, &mnt]).ok();
    assert_eq!(fs::read(place.path("mnt/kept")).unwrap(), b"kept");
    let error = holdfast(["mount", "-o", "remount,rw", source, &mnt]).fails(1);
    assert!(error.contains("open for reading only"), "{error}");
    assert!(fs::write(place.path("mnt/new"), "x").is_err());
    place.umount();
    holdfast(["fsck", source]).ok();
    holdfast(["info", source]).ok();
    holdfast(["bulkstat", source]).ok();
    let out = place.path("out");
    holdfast(["cp", "-r", &format!("{source}:/"), out.to_str().unwrap()]).ok();
    assert_eq!(fs::read(out.join("kept")).unwrap(), b"kept");
}

fn with_a_file() -> Option<Place> {
    let place = Place::over(Store::Volume)?;
    place.mount(&[]);
    fs::write(place.path("mnt/kept"), "kept").unwrap();
    place.umount();
    Some(place)
}

#[test]
fn a_device_that_cannot_be_written_to_is_mounted_read_only() {
    let Some(place) = with_a_file() else {
        return;
    };
    let output = Command::new("losetup")
        .args(["-r", "-f", "--show", &place.source()])
        .output()
        .unwrap();
    let device = well(&output).trim().to_owned();
    let error = holdfast(["mount", &device, &place.mnt()]).fails(1);
    assert!(
        error.contains("Read-only") && error.contains("-o ro"),
        "{error}"
    );
    stays_read_only(&place, &device);
    well(
        &Command::new("losetup")
            .args(["-d", &device])
            .output()
            .unwrap(),
    );
}

#[test]
fn without_recovery_the_image_stays_as_it_is() {
    let Some(place) = with_a_file() else {
        return;
    };
    let before = fs::read(place.source()).unwrap();
    place.mount(&["-o", "ro,norecovery"]);
    assert_eq!(fs::read(place.path("mnt/kept")).unwrap(), b"kept");
    place.umount();
    assert!(fs::read(place.source()).unwrap() == before);
}

#[test]
fn a_mount_that_began_read_only_becomes_writable_and_is_durable_when_it_ends_so() {
    let Some(place) = with_a_file() else {
        return;
    };
    let mnt = place.mnt();
    place.mount(&["-o", "ro"]);
    assert!(fs::write(place.path("mnt/new"), "x").is_err());
    holdfast(["mount", "-o", "remount,rw", &place.source(), &mnt]).ok();
    for number in 0..500 {
        fs::write(place.path(&format!("mnt/{number}")), "x").unwrap();
    }
    holdfast(["mount", "-o", "remount,ro", &place.source(), &mnt]).ok();
    assert!(fs::write(place.path("mnt/late"), "x").is_err());
    // A power cut leaves unflushed writes, which are trusted on the same disk only.
    let copy = place.path("copy.hf");
    fs::copy(place.source(), &copy).unwrap();
    place.umount();
    let copy = copy.to_str().unwrap();
    holdfast(["mount", copy, &mnt]).ok();
    assert_eq!(fs::read_dir(&mnt).unwrap().count(), 501);
    place.umount();
    holdfast(["fsck", copy]).ok();
}

#[test]
fn the_root_of_a_volume_that_exists_keeps_its_owner_and_mode() {
    let Some(place) = with_a_file() else {
        return;
    };
    place.mount(&["-o", "create,mode=700"]);
    let mode = fs::metadata(place.mnt()).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
    place.umount();
}

#[test]
fn names_that_are_not_text_work_everywhere() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    let odd = |name: &[u8]| place.path("x").with_file_name(OsStr::from_bytes(name));
    let (image, mnt, log) = (odd(b"i\xff.hf"), odd(b"m\xff"), odd(b"l\xff"));
    call(&[&"mkfs", &"--size", &"64m", &image]).ok();
    call(&[&"mount", &"--log", &log, &image, &mnt]).ok();
    let (one, two) = (OsStr::from_bytes(b"d\xfe"), OsStr::from_bytes(b"e\xfe"));
    fs::create_dir(mnt.join(one)).unwrap();
    fs::write(mnt.join(one).join("file"), "x").unwrap();
    let (from, to) = (mnt.join(one), mnt.join(two));
    call(&[&"cp", &"-r", &from, &to]).ok();
    assert_eq!(fs::read(to.join("file")).unwrap(), b"x");
    call(&[&"rm", &"-r", &to]).ok();
    assert!(!to.exists());
    call(&[&"info", &"--json", &mnt]).ok();
    call(&[&"mount", &"-o", &"remount,ro", &image, &mnt]).ok();
    call(&[&"umount", &mnt]).ok();
    let mut inside = image.clone().into_os_string();
    inside.push(":/");
    inside.push(one);
    let out = odd(b"o\xff");
    call(&[&"cp", &"-r", &inside, &out]).ok();
    assert_eq!(fs::read(out.join("file")).unwrap(), b"x");
    call(&[&"fsck", &image]).ok();
}

/// A tree of so many directories, one in the other, and a file in the lowest.
fn deep(top: &Path, depth: usize) {
    let lowest = (0..depth).fold(top.to_owned(), |path, _| path.join("d"));
    fs::create_dir_all(&lowest).unwrap();
    fs::write(lowest.join("file"), "x").unwrap();
}

#[test]
fn trees_deeper_than_the_limit_of_descriptors_are_copied_whole() {
    let place = Place::new();
    let (tree, image, out) = (place.path("tree"), place.path("i.hf"), place.path("out"));
    deep(&tree, 300);
    let script =
        r#"ulimit -n 64; "$1" mkfs -q --size 64m --from "$2" "$3" && "$1" cp -r "$3:/" "$4""#;
    let output = sh(script, &[&tree, &image, &out]);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    well(&output);
    let lowest = (0..300).fold(out, |path, _| path.join("d"));
    assert_eq!(fs::read(lowest.join("file")).unwrap(), b"x");
}
