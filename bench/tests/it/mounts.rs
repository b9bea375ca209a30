//! Benchmarks that mount: they use the `holdfast` command beside this program, and leave nothing.

use super::{PROGRAM, told};
use holdfast_testkit::skip::{mount_obstacle, skipped};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// A folder where mounts can be made with the command that stands beside this program.
fn place() -> Option<TempDir> {
    let command = Path::new(PROGRAM).with_file_name("holdfast");
    let unbuilt = (!command.is_file()).then_some("the holdfast command is not built");
    if let Some(obstacle) = mount_obstacle().or(unbuilt) {
        skipped(obstacle);
        return None;
    }
    Some(tempfile::tempdir().expect("temporary directory"))
}

#[test]
fn trees_are_measured_in_mounts_that_the_run_makes() {
    let Some(place) = place() else {
        return;
    };
    let text = |name: &str| place.path().join(name).to_str().expect("UTF-8").to_owned();
    let (image, scratch) = (text("h.hf"), text(""));
    let line = "--files 40 --rounds 1 --phases untar,find,ls,cold-find,cold-tar,cold-rm";
    let line = format!("trees {line} --target hf:{image} --target mem: --scratch {scratch}");
    let (records, _) = told(&line);
    let of = |target: &str| records.iter().filter(|one| one["target"] == target).count();
    // What is in memory only cannot be cold.
    assert_eq!((of(&format!("hf:{image}")), of("mem:")), (6, 3));
    for record in &records {
        let requests = record["requests"].as_u64().expect("a mount of ours counts");
        assert!(requests > 0, "{record}");
        assert!(record["transport"].is_string(), "{record}");
    }
    assert!(!place.path().join("h.hf").exists(), "the image is removed");
    let mounts = fs::read("/proc/self/mountinfo").expect("told");
    let mounts = String::from_utf8_lossy(&mounts);
    assert!(!mounts.contains(&image), "{mounts}");
}

#[test]
fn requests_are_counted_one_by_one() {
    if place().is_none() {
        return;
    }
    let line = "request --target mem: --rounds 1 --seconds 0.01 --neighbours 0,1";
    let (records, table) = told(line);
    assert!(table.contains("getxattr-pinned-busy1"), "{table}");
    // Five calls, pinned and not, alone and not; and the two threads.
    assert_eq!(records.len(), 5 * 2 * 2 + 1);
    let (threads, calls) = records.split_first().expect("some");
    assert_eq!(threads["phase"], "ping-pong");
    for record in calls {
        let number = |field: &str| record[field].as_f64().expect("a number");
        let each = number("requests") / number("items");
        assert!(each >= 1.0, "the kernel answered by itself: {record}");
    }
}

#[test]
fn a_slow_host_is_listed_through_a_mount_of_it_and_nothing_stays() {
    let Some(place) = place() else {
        return;
    };
    let target = format!("mount:{}", place.path().join("x").display());
    let line = "--rounds 1 --files 2000 --delay 1 --phases listing,listing-plain";
    let (records, _) = told(&format!("listing --target {target} {line}"));
    let waits = |record: &serde_json::Value| record["waits"].as_u64().expect("a number");
    let [listing, plain] = &records[..] else {
        panic!("{records:?}");
    };
    assert_eq!(
        (&listing["items"], &plain["items"]),
        (&2000.into(), &2000.into())
    );
    assert!(waits(listing) >= 2000, "{listing}");
    // A program that only lists pays for its first reply, and for no more.
    assert!(waits(plain) < 1000, "{plain}");
    let mounts = fs::read("/proc/self/mountinfo").expect("told");
    let mounts = String::from_utf8_lossy(&mounts);
    assert!(
        !mounts.contains(target.trim_start_matches("mount:")),
        "{mounts}"
    );
}
