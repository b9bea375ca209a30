//! `info`, `bulkstat`, `resize` and `trim` of volumes, mounted or not.

use crate::fixture::{Place, holdfast, named};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// A path as an argument.
fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// A volume of 64 MiB with a few files.
fn volume(place: &Place) -> String {
    let (image, tree) = (place.path("data.hf"), place.path("tree"));
    fs::create_dir_all(tree.join("sub")).unwrap();
    for number in 0..300 {
        fs::write(tree.join(format!("sub/{number}")), vec![1; number * 40]).unwrap();
    }
    symlink("sub/1", tree.join("link")).unwrap();
    let size = ["--size", "64m", "--label", "care"];
    holdfast(
        [
            &["mkfs", "-q", text(&image), "--from", text(&tree)],
            &size[..],
        ]
        .concat(),
    )
    .ok();
    text(&image).to_owned()
}

/// Inodes as bulkstat prints them: sizes by number.
fn sizes(target: &str, jobs: &str) -> BTreeMap<u64, u64> {
    let lines = holdfast(["bulkstat", target, "--format", "%i %s", "--jobs", jobs]).ok();
    let pairs = lines.lines().map(|line| {
        let (ino, size) = line.split_once(' ').expect("two fields");
        (ino.parse().unwrap(), size.parse().unwrap())
    });
    let all: Vec<(u64, u64)> = pairs.collect();
    let map: BTreeMap<u64, u64> = all.iter().copied().collect();
    assert_eq!(all.len(), map.len(), "no inode comes twice");
    map
}

#[test]
fn a_volume_that_is_not_mounted_tells_of_itself_and_is_not_changed() {
    let place = Place::new();
    let image = volume(&place);
    let before = fs::read(&image).unwrap();
    let told = holdfast(["info", &image]).ok();
    for line in ["label", "care", "state", "clean", "64.0 MiB", "303"] {
        assert!(told.contains(line), "{line} in {told}");
    }
    let json = holdfast(["info", "--json", "--inodes", &image]).ok();
    let info: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(info["inodes"], 303, "{info}");
    assert_eq!(info["inode_types"]["directories"], 2, "{info}");
    assert_eq!(info["inode_types"]["symlinks"], 1, "{info}");
    assert_eq!(info["clean"], true);
    assert!(info["free_bytes"].as_u64().unwrap() > 50 << 20, "{info}");
    assert!(fs::read(&image).unwrap() == before, "only looked at");
}

#[test]
fn all_inodes_are_listed_once_by_one_thread_or_several() {
    let place = Place::new();
    let image = volume(&place);
    let alone = sizes(&image, "1");
    assert_eq!(alone.len(), 303);
    assert_eq!(sizes(&image, "4"), alone);
    let sum: u64 = (0..300_u64).map(|number| number * 40).sum();
    assert!(alone.values().sum::<u64>() >= sum);
    let json = holdfast(["bulkstat", "--json", &image]).ok();
    let dirs = json.lines().filter(|line| {
        let value: serde_json::Value = serde_json::from_str(line).expect("an object a line");
        value["type"] == "directory"
    });
    assert_eq!(dirs.count(), 2);
    let error = holdfast(["bulkstat", &image, "--format", "%q"]).fails(1);
    assert!(error.contains("%q") && error.contains("%i"), "{error}");
}

#[test]
fn a_mount_lists_the_same_inodes_and_its_image_stands_for_it() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    let image = volume(&place);
    let before = sizes(&image, "2");
    holdfast(["mount", &image, &place.mnt()]).ok();
    assert_eq!(sizes(&place.mnt(), "2"), before);
    assert_eq!(sizes(&image, "1"), before, "by its image");
    fs::write(place.path("mnt/new"), "12345").unwrap();
    let now = sizes(&place.mnt(), "2");
    let ino = fs::metadata(place.path("mnt/new")).unwrap().ino();
    assert_eq!(now.get(&ino), Some(&5));
    assert_eq!(now.len(), before.len() + 1);
    let told = holdfast(["info", &image]).ok();
    assert!(
        told.contains("mount point") && told.contains(&place.mnt()),
        "{told}"
    );
    place.umount();
}

#[test]
fn a_volume_grows() {
    let place = Place::new();
    let image = volume(&place);
    let inodes = sizes(&image, "1");
    let told = holdfast(["resize", &image, "160m"]).ok();
    assert!(told.contains("160.0 MiB"), "{told}");
    assert_eq!(fs::metadata(&image).unwrap().len(), 160 << 20);
    holdfast(["fsck", &image]).ok();
    assert_eq!(sizes(&image, "1"), inodes);
    fs::write(place.path("huge"), vec![1; 120 << 20]).unwrap();
    let goal = format!("{image}:/huge");
    holdfast(["cp", "-q", text(&place.path("huge")), &goal]).ok();
    holdfast(["fsck", &image]).ok();
}

#[test]
fn a_full_mount_grows_under_its_users() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    let image = volume(&place);
    holdfast(["mount", &image, &place.mnt()]).ok();
    let huge = vec![7; 80 << 20];
    assert!(
        fs::write(place.path("mnt/huge"), &huge).is_err(),
        "no room yet"
    );
    let told = holdfast(["resize", &place.mnt(), "128m"]).ok();
    assert!(told.contains("128.0 MiB"), "{told}");
    fs::write(place.path("mnt/huge"), &huge).unwrap();
    let error = holdfast(["resize", &image, "1m"]).fails(1);
    assert!(error.contains("cannot shrink"), "{error}");
    assert!(place.info()["space_bytes"].as_u64().unwrap() > 100 << 20);
    place.umount();
    holdfast(["fsck", &image]).ok();
    let inside = format!("{image}:/huge");
    holdfast(["cp", "-q", &inside, text(&place.path("back"))]).ok();
    assert!(fs::read(place.path("back")).unwrap() == huge);
}

#[test]
fn free_space_goes_back_to_the_host() {
    let place = Place::new();
    let image = volume(&place);
    let used = || fs::metadata(&image).unwrap().blocks() * 512;
    fs::write(place.path("huge"), vec![1; 20 << 20]).unwrap();
    let goal = format!("{image}:/huge");
    holdfast(["cp", "-q", text(&place.path("huge")), &goal]).ok();
    assert!(used() > 20 << 20);
    // The new volume has less in it.
    fs::write(place.path("small"), "").unwrap();
    holdfast(["cp", "-q", text(&place.path("small")), &goal]).ok();
    let told = holdfast(["trim", &image, "--minimum", "64m"]).ok();
    assert!(told.contains("0 B given back"), "{told}");
    assert!(used() > 20 << 20);
    let told = holdfast(["trim", &image]).ok();
    assert!(told.contains("MiB given back"), "{told}");
    assert!(used() < 8 << 20, "{}", used());
    holdfast(["fsck", &image]).ok();
    assert_eq!(sizes(&image, "1").len(), 304);
}

#[test]
fn fstrim_trims_a_mount() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    let image = volume(&place);
    let used = || fs::metadata(&image).unwrap().blocks() * 512;
    holdfast(["mount", &image, &place.mnt()]).ok();
    let file = fs::File::create(place.path("mnt/huge")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &vec![1; 20 << 20], 0).unwrap();
    file.sync_all().unwrap();
    drop(file);
    assert!(used() > 20 << 20);
    fs::remove_file(place.path("mnt/huge")).unwrap();
    // The kernel sends RELEASE asynchronously: until it arrives, a removed file still exists.
    let since = Instant::now();
    loop {
        let told = holdfast(["trim", &place.mnt()]).ok();
        assert!(told.contains("MiB given back"), "{told}");
        if used() < 12 << 20 {
            break;
        }
        assert!(since.elapsed().as_secs() < 20, "{} in use", used());
    }
    if let Ok(output) = Command::new("fstrim").args(["-v", &place.mnt()]).output() {
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && told.contains("trimmed"),
            "{told}{error}"
        );
    }
    let memory = place.path("memory");
    holdfast(["mount", "mem:", text(&memory)]).ok();
    let error = holdfast(["trim", text(&memory)]).fails(1);
    assert!(error.contains("cannot do that"), "{error}");
    crate::fixture::umount(text(&memory)).ok();
    place.umount();
    holdfast(["fsck", &image]).ok();
}

#[test]
fn mkfs_and_fsck_are_served_by_their_names() {
    let place = Place::new();
    let image = place.path("data.hf");
    let image = text(&image);
    let told = named("/sbin/mkfs.holdfast", ["-s", "64m", "-L", "by name", image]).ok();
    assert!(told.contains("64.0 MiB"), "{told}");
    assert!(named("mkfs.holdfast", [image]).fails(1).contains("--force"));
    for call in [&["-a"][..], &["-p"], &["-n"], &["-f", "-a"], &["-y"], &[]] {
        let run = named("fsck.holdfast", [call, &[image]].concat());
        assert_eq!(run.code, Some(0), "{call:?}: {}{}", run.out, run.error);
        assert_eq!(
            run.out.contains("clean: 1 inodes"),
            call.first() != Some(&"-a") && call.first() != Some(&"-p"),
            "{call:?}: {}",
            run.out
        );
    }
    let mut bytes = fs::read(image).unwrap();
    bytes[200] ^= 1;
    fs::write(image, &bytes).unwrap();
    for (call, code) in [("-fn", 4), ("-fa", 1), ("-fn", 0)] {
        let run = named("fsck.holdfast", [call, image]);
        assert_eq!(run.code, Some(code), "{call}: {}{}", run.out, run.error);
    }
    bytes[200] ^= 2;
    fs::write(image, &bytes).unwrap();
    assert_eq!(named("fsck.holdfast", ["-y", image]).code, Some(1));
}
