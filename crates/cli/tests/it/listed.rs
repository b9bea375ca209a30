//! `holdfast list`, and `holdfast info` without an argument.

use crate::fixture::{HOLDFAST, Place, Run, Store, holdfast, is_gone, wait_until};
use crate::private::{HELPERS, well, with_fusermount};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::process::Command;

/// The objects of these mount points.
fn listed(out: &str, dirs: &[&str]) -> Vec<Value> {
    let all: Vec<Value> = serde_json::from_str(out).expect("an array");
    let of = |dir: &&str| all.iter().find(|row| row["mount_point"] == **dir).cloned();
    dirs.iter().map(|dir| of(dir).unwrap_or_default()).collect()
}

#[test]
fn each_mount_is_listed_with_its_source_and_space() {
    let Some(place) = Place::over(Store::Volume) else {
        return;
    };
    place.mount(&[]);
    let other = place.path("other").into_os_string().into_string().unwrap();
    holdfast(["mount", "-o", "ro,size=1m", "mem:", &other]).ok();
    let rows = listed(&holdfast(["list", "--json"]).ok(), &[&place.mnt(), &other]);
    let (volume, memory) = (&rows[0], &rows[1]);
    assert_eq!(volume["state"], "read_write", "{volume}");
    assert_eq!(volume["pid"], place.daemon());
    assert!(
        volume["size_bytes"].as_u64().unwrap() > 32 << 20,
        "{volume}"
    );
    assert!(volume["free_bytes"].as_u64() <= volume["size_bytes"].as_u64());
    assert!(
        volume["type"].as_str().unwrap().ends_with(".holdfast"),
        "{volume}"
    );
    assert_eq!(
        (&memory["state"], &memory["source"]),
        (&"read_only".into(), &"mem:".into())
    );
    assert_eq!(memory["size_bytes"], 1 << 20);
    for arguments in [&["list"][..], &["info"]] {
        let table = holdfast(arguments).ok();
        let line = table.lines().find(|line| line.starts_with(&other)).unwrap();
        let cells: Vec<&str> = line.split_ascii_whitespace().collect();
        assert_eq!(
            cells[1..6],
            ["mem:", "fuse.holdfast", "ro", "1.0", "MiB"],
            "{line}"
        );
        assert!(table.starts_with("MOUNT POINT"), "{table}");
    }
    crate::fixture::umount(&other).ok();
    place.umount();
    let rows = listed(&holdfast(["info", "--json"]).ok(), &[&place.mnt(), &other]);
    assert_eq!(rows, [Value::Null, Value::Null]);
}

#[test]
fn a_daemon_that_hangs_or_is_gone_does_not_delay_the_list() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    place.mount(&["--transport", "dev"]);
    let (mnt, daemon) = (place.mnt(), Pid::from_raw(place.daemon()).unwrap());
    kill_process(daemon, Signal::STOP).unwrap();
    let list = Command::new("timeout")
        .args(["--signal=KILL", "20", HOLDFAST, "list", "--json"])
        .output();
    kill_process(daemon, Signal::CONT).unwrap();
    let rows = listed(&Run::from(list.unwrap()).ok(), &[&mnt]);
    assert_eq!(rows[0]["state"], "silent", "{rows:?}");
    assert_eq!(rows[0]["source"], "mem:");
    kill_process(daemon, Signal::KILL).unwrap();
    wait_until("the daemon is gone", || {
        is_gone(daemon.as_raw_nonzero().get())
    });
    wait_until("the mount is listed as dead", || {
        listed(&holdfast(["list", "--json"]).ok(), &[&mnt])[0]["state"] == "dead"
    });
    let table = holdfast(["list"]).ok();
    assert!(
        table
            .lines()
            .any(|line| line.starts_with(&mnt) && line.contains(" dead ")),
        "{table}"
    );
    place.umount();
}

#[test]
fn a_mount_of_another_user_is_listed_as_private() {
    let Some(place) = with_fusermount() else {
        return;
    };
    let script = r#"
        holdfast mount -o noallow_other mem: "$T/mnt"
        user holdfast mount mem: "$T/user/mnt"
        user holdfast list --json
        holdfast umount "$T/mnt"
        user holdfast umount "$T/user/mnt"
    "#;
    let out = well(&place, HELPERS, script);
    let theirs = place.path("user/mnt");
    let rows = listed(&out, &[&place.mnt(), theirs.to_str().unwrap()]);
    assert_eq!(
        (&rows[0]["state"], &rows[1]["state"]),
        (&"private".into(), &"read_write".into())
    );
}

#[test]
fn counting_inodes_needs_a_mount_or_a_volume() {
    let error = holdfast(["info", "--inodes"]).fails(2);
    assert!(error.contains("DIR|VOLUME"), "{error}");
}
