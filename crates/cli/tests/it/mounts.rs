//! Mounting, `info`, unmounting.

use crate::fixture::{Place, Store, holdfast, is_gone, on_each_store};
use holdfast_testkit::skip::skipped_by_kernel;
use std::{fs, os::unix::fs::MetadataExt, path::Path, thread, time::Duration};

on_each_store! {
    fn a_mount_is_live_when_the_command_returns_and_gone_after_umount(place: &Place) {
        place.mount(&[]);
        let file = place.path("mnt/file");
        fs::write(&file, "content").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "content");
        let info = place.info();
        assert_eq!(info["inodes"], 2);
        assert_eq!(info["names"], 1);
        assert_eq!(info["pages"], 1);
        assert!(info["bytes"].as_u64().unwrap() >= "content".len() as u64);
        assert_eq!(info["source"], place.source());
        assert_eq!(info["mount_point"], place.mnt());
        assert!(info["requests"]["WRITE"].as_u64().unwrap() >= 1, "{info}");
        let daemon = place.daemon();
        place.umount();
        assert!(
            is_gone(daemon),
            "umount returned before the daemon had ended"
        );
        assert!(
            !place.path("mnt").exists(),
            "the folder was made for the mount"
        );
    }
}

on_each_store! {
    fn a_folder_that_was_there_stays(place: &Place) {
        fs::create_dir(place.path("mnt")).unwrap();
        place.mount(&[]);
        place.umount();
        assert!(place.path("mnt").is_dir());
    }
}

on_each_store! {
    fn both_transports_serve_and_say_which_they_are(place: &Place) {
        place.mount(&["--transport", "dev"]);
        assert_eq!(place.info()["transport"], "dev_fuse");
        assert_ne!(place.info()["transport_reason"], "");
        fs::write(place.path("mnt/file"), "x").unwrap();
        place.umount();
        let enabled = fs::read_to_string("/sys/module/fuse/parameters/enable_uring");
        let mnt = place.mnt();
        if enabled.is_ok_and(|value| value.trim() == "Y") {
            place.mount(&["-o", "transport=uring"]);
            assert_eq!(place.info()["transport"], "io_uring");
            fs::write(place.path("mnt/file"), "x").unwrap();
            place.umount();
        } else {
            skipped_by_kernel("enable_uring of the fuse module is not Y");
            let error = holdfast(["mount", &place.source(), &mnt, "--transport", "uring"]).fails(1);
            assert!(error.contains("io_uring is not available"), "{error}");
            assert!(!place.is_mounted() && !Path::new(&mnt).exists());
            place.mount(&["--transport", "auto"]);
            assert_eq!(place.info()["transport"], "dev_fuse");
            place.umount();
        }
    }
}

#[test]
fn a_mount_by_its_type_is_that_of_its_source() {
    let Some(place) = Place::over(Store::Volume) else {
        return;
    };
    place.mount(&["-t", "volume"]);
    assert_eq!(place.info()["source"], place.source());
    place.umount();
    let mnt = place.mnt();
    holdfast(["mount", "-t", "mem", "none", &mnt]).ok();
    assert_eq!(place.info()["source"], "mem:");
    place.umount();
    // As in the release before.
    let moved = holdfast(["mount", "-t", "dev", "mem:", &mnt]);
    assert_eq!(moved.code, Some(0), "{}", moved.error);
    assert!(moved.error.contains("--transport dev"), "{}", moved.error);
    assert_eq!(place.info()["transport"], "dev_fuse");
    place.umount();
}

#[test]
fn info_is_readable_by_people_and_from_anywhere_below() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    place.mount(&["-o", "size=1g,nr_inodes=1k,noatime"]);
    fs::create_dir(place.path("mnt/sub")).unwrap();
    let below = place.path("mnt/sub");
    let text = holdfast(["info", below.to_str().unwrap()]).ok();
    for part in [
        "source       mem:",
        "2 of 1,024",
        " of 1.0 GiB",
        "rw,noatime,size=1g",
        "MKDIR",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    place.umount();
}

on_each_store! {
    fn inodes_are_counted_by_state_and_type_when_that_is_asked_for(place: &Place) {
        place.mount(&[]);
        fs::create_dir_all(place.path("mnt/a/b")).unwrap();
        std::os::unix::fs::symlink("a", place.path("mnt/link")).unwrap();
        fs::write(place.path("mnt/file"), "x").unwrap();
        let orphan = fs::File::create(place.path("mnt/orphan")).unwrap();
        fs::remove_file(place.path("mnt/orphan")).unwrap();
        let mnt = place.mnt();
        let text = holdfast(["info", "--inodes", "--json", &mnt]).ok();
        let info: serde_json::Value = serde_json::from_str(&text).unwrap();
        let types = &info["inode_types"];
        let counts = ["regular", "directories", "symlinks", "special"].map(|name| types[name].as_u64());
        assert_eq!(counts, [2, 3, 1, 0].map(Some), "{text}");
        let states = &info["inode_states"];
        let counts = ["used", "unused", "orphans", "dying"].map(|name| states[name].as_u64().unwrap());
        assert_eq!((counts.iter().sum::<u64>(), counts[2]), (6, 1), "{text}");
        let table = holdfast(["info", "--inodes", &mnt]).ok();
        let line = "by type      2 regular, 3 directories, 1 symlinks, 0 special";
        assert!(
            table.contains(line) && table.contains("1 orphans"),
            "{table}"
        );
        // Counts that visit every inode are not in a plain report.
        assert_eq!(place.info()["inode_types"], serde_json::Value::Null);
        drop(orphan);
        place.umount();
    }
}

#[test]
fn options_hold() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    place.mount(&[
        "-o",
        "size=64k,nr_inodes=3",
        "-o",
        "mode=1777,uid=7,fsname=cache,noexec",
    ]);
    let meta = fs::metadata(place.path("mnt")).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::mode(&meta) & 0o7777, 0o1777);
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&meta), 7);
    let table = fs::read("/proc/self/mounts").unwrap();
    let table = String::from_utf8_lossy(&table);
    let line = table
        .lines()
        .find(|line| line.contains(&place.mnt()))
        .unwrap();
    assert!(
        line.starts_with("cache ") && line.contains(" fuse.holdfast "),
        "{line}"
    );
    assert!(line.contains("noexec"), "{line}");
    let full = fs::write(place.path("mnt/large"), vec![1; 1 << 20]).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    fs::write(place.path("mnt/second"), "").unwrap();
    let many = fs::write(place.path("mnt/third"), "").unwrap_err();
    assert_eq!(many.kind(), std::io::ErrorKind::StorageFull);
    place.umount();
}

on_each_store! {
    fn without_attributes_listings_ask_for_none_and_the_daemon_is_asked_another_way(place: &Place) {
        place.mount(&["-o", "noxattr"]);
        let mnt = place.mnt();
        let of = |n: usize| place.path(&format!("mnt/file {n}"));
        for n in 0..50 {
            fs::write(of(n), "content").unwrap();
        }
        for name in ["user.name", "trusted.name", "system.posix_acl_access"] {
            let flags = rustix::fs::XattrFlags::empty();
            let refused = rustix::fs::setxattr(of(1), name, b"value", flags);
            assert_eq!(refused, Err(rustix::io::Errno::NOTSUP));
            let refused = rustix::fs::getxattr(of(1), name, &mut [0; 9][..]);
            // The kernel knows without a request that a file without attributes has no ACL.
            let none = match name.starts_with("system.") {
                true => rustix::io::Errno::NODATA,
                false => rustix::io::Errno::NOTSUP,
            };
            assert_eq!(refused, Err(none), "{name}");
        }
        let listed = std::process::Command::new("ls").args(["-lR", &mnt]).output().unwrap();
        assert!(listed.status.success());
        let info = place.info();
        let asked = info["requests"]["GETXATTR"].as_u64().unwrap_or(0);
        assert!(asked < 10 && info["options"].to_string().contains("noxattr"), "{info}");
        let text = holdfast(["info", "--inodes", &mnt]).ok();
        assert!(text.contains("by type      50 regular, 1 directories"), "{text}");
        // Requests for more than a report as well.
        holdfast(["mount", "-o", "remount,nodev", &place.source(), &mnt]).ok();
        place.umount();
    }
}

#[test]
fn inodes_of_a_volume_come_ahead_of_their_lookups_unless_that_is_switched_off() {
    let Some(place) = Place::over(Store::Volume) else {
        return;
    };
    let of = |n: usize| place.path(&format!("mnt/file {n:04}"));
    place.mount(&[]);
    for n in 0..400 {
        fs::write(of(n), "content").unwrap();
    }
    place.umount();
    for (option, came) in [("statahead=on", true), ("statahead=off", false)] {
        place.mount(&["-o", option]);
        for n in 0..400 {
            assert_eq!(fs::metadata(of(n)).unwrap().len(), 7);
        }
        let info = place.info();
        let count = |what: &str| info[format!("statahead_{what}")].as_u64().unwrap();
        assert_eq!(count("issued") > 300, came, "{info}");
        assert!(count("used") + count("wasted") <= count("issued"), "{info}");
        assert!(info["options"].to_string().contains(option), "{info}");
        let text = holdfast(["info", &place.mnt()]).ok();
        assert!(text.contains("stat-ahead"), "{text}");
        place.umount();
    }
}

on_each_store! {
    fn a_full_folder_is_hidden_by_a_mount_that_may_hide_it(place: &Place) {
        fs::create_dir(place.mnt()).unwrap();
        fs::write(place.path("mnt/file"), "hidden").unwrap();
        place.mount(&["-o", "nonempty"]);
        assert!(!place.path("mnt/file").exists());
        place.umount();
        assert_eq!(
            fs::read_to_string(place.path("mnt/file")).unwrap(),
            "hidden"
        );
    }
}

on_each_store! {
    fn a_busy_mount_stays_and_its_holder_is_named(place: &Place) {
        place.mount(&[]);
        let mnt = place.mnt();
        let file = place.path("mnt/held");
        let held = fs::File::create(&file).unwrap();
        let error = holdfast(["umount", &mnt]).fails(1);
        let own = format!("(pid {})", std::process::id());
        assert!(
            error.contains(&own) && error.contains(file.to_str().unwrap()),
            "{error}"
        );
        assert!(error.contains("--lazy"), "{error}");
        assert!(place.is_mounted());
        let daemon = place.daemon();
        holdfast(["umount", "--lazy", &mnt]).ok();
        assert!(!place.is_mounted());
        std::io::Write::write_all(&mut &held, b"still served").unwrap();
        assert!(!is_gone(daemon));
        drop(held);
        crate::fixture::wait_until("the daemon ends with its last user", || is_gone(daemon));
    }
}

on_each_store! {
    fn strictatime_has_each_first_read_seen(place: &Place) {
        for transport in ["dev", "uring"] {
            let options = format!("strictatime,transport={transport}");
            place.mount(&["-o", &options]);
            let at = |name: &str| place.path("mnt").join(name);
            fs::create_dir_all(at("dir/below")).unwrap();
            fs::write(at("file"), "content").unwrap();
            let _ = fs::remove_file(at("link"));
            std::os::unix::fs::symlink("file", at("link")).unwrap();
            let moves = |name: &str, act: &dyn Fn()| {
                let time = || {
                    let meta = fs::symlink_metadata(at(name)).unwrap();
                    (meta.atime(), meta.atime_nsec())
                };
                // More than a tick of the clock.
                thread::sleep(Duration::from_millis(11));
                let before = time();
                act();
                time() != before
            };
            for time in 0..3 {
                assert!(moves("file", &|| drop(fs::read(at("file")).unwrap())), "{time}");
                assert!(moves("link", &|| drop(fs::read_link(at("link")).unwrap())), "{time}");
                let list = || assert_eq!(fs::read_dir(at("dir")).unwrap().count(), 1);
                assert!(moves("dir", &list), "{time}");
            }
            place.umount();
        }
    }
}

/// Small files that are only read are cached in the kernel alone; large ones are read ahead.
#[test]
fn small_files_that_are_only_read_are_kept_by_the_kernel_alone() {
    let Some(place) = Place::over(Store::Volume) else {
        return;
    };
    place.mount(&[]);
    for number in 0..20 {
        fs::write(place.path(&format!("mnt/{number}")), [7; 50_000]).unwrap();
    }
    fs::write(place.path("mnt/large"), [7; 1_000_000]).unwrap();
    place.umount();
    place.mount(&[]);
    let read = |name: &str| fs::read(place.path(&format!("mnt/{name}"))).unwrap();
    for number in 0..20 {
        assert!(read(&number.to_string()) == [7; 50_000]);
    }
    let info = place.info();
    assert!(info["requests"]["READ"].as_u64().unwrap() >= 20, "{info}");
    assert_eq!(info["pages"], 0, "{info}");
    // Written data is cached in the daemon, and read from there.
    fs::write(place.path("mnt/3"), "changed").unwrap();
    assert_eq!(read("3"), b"changed");
    assert!(read("large") == [7; 1_000_000]);
    assert!(place.info()["pages"].as_u64().unwrap() > 1);
    place.umount();
    place.check();
}
