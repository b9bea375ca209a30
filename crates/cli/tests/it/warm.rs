//! `holdfast warm`: its counts, on a directory of the host.

use crate::fixture::{HOLDFAST, Place, Store, holdfast};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// A tree of 21 directories, the top included, 400 files of 100 bytes, and a link that leads back.
fn tree(top: &Path) {
    for dir in 0..20 {
        let dir = top.join(format!("{dir}"));
        fs::create_dir_all(&dir).unwrap();
        for file in 0..20 {
            fs::write(dir.join(format!("{file}")), [7; 100]).unwrap();
        }
    }
    symlink("..", top.join("0/back")).unwrap();
}

fn report(arguments: &[&str], dir: &Path) -> serde_json::Value {
    let dir = dir.to_str().unwrap();
    let line = holdfast([&["warm", "--json"], arguments, &[dir]].concat()).ok();
    assert_eq!(line.lines().count(), 1);
    serde_json::from_str(&line).unwrap()
}

#[test]
fn every_name_is_asked_for_once_and_no_link_is_followed() {
    let place = Place::new();
    let top = place.path("tree");
    tree(&top);
    for arguments in [
        &[][..],
        &["--threads", "1"],
        &["--sort", "none", "--threads", "64"],
    ] {
        let report = report(arguments, &top);
        assert_eq!(report["directories"], 21, "{report}");
        assert_eq!(
            (&report["names"], &report["stats"]),
            (&421.into(), &421.into())
        );
        assert_eq!(
            (&report["bytes"], &report["stopped"]),
            (&0.into(), &false.into())
        );
        assert!(report["errors"].as_object().unwrap().is_empty());
    }
    let top_only = report(&["--depth", "0"], &top);
    assert_eq!(
        (&top_only["directories"], &top_only["stats"]),
        (&1.into(), &20.into())
    );
    let with_data = report(&["--data", "--check"], &top);
    assert_eq!(with_data["bytes"], 400 * 100);
    assert_eq!(with_data["check"]["names"], 421);
    assert_eq!(report(&["--data=10"], &top)["bytes"], 400 * 10);
    let told = holdfast(["warm", top.to_str().unwrap()]).ok();
    assert!(told.contains("421 names in 21 directories"), "{told}");
    assert_eq!(holdfast(["warm", "-q", top.to_str().unwrap()]).ok(), "");
}

#[test]
fn a_signal_stops_it_with_a_report() {
    let place = Place::new();
    let top = place.path("tree");
    tree(&top);
    let child = Command::new(HOLDFAST)
        .args(["warm", "--json", "--rate", "20"])
        .arg(&top)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    thread::sleep(Duration::from_millis(500));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), output.status.signal()),
        (Some(130), None)
    );
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["stopped"], true);
    assert!(report["stats"].as_u64().unwrap() < 100, "{report}");
}

#[test]
fn what_is_mounted_below_is_entered_only_if_that_is_asked_for() {
    let Some(place) = Place::over(Store::Memory) else {
        return;
    };
    place.mount(&[]);
    tree(&place.path("mnt"));
    let top = place.path("mnt").parent().unwrap().to_owned();
    let below = report(&[], &top)["directories"].as_u64().unwrap();
    let across = report(&["--cross"], &top)["directories"].as_u64().unwrap();
    assert_eq!(across - below, 21);
    place.umount();
}
