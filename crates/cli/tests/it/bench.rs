//! `holdfast bench`.

use crate::fixture::{HOLDFAST, Place, call, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::{Command, Stdio};

#[test]
fn a_directory_is_measured_beside_another_and_left_as_it_was() {
    let place = Place::new();
    let (one, other) = (place.path("one"), place.path("other"));
    fs::create_dir(&one).unwrap();
    fs::create_dir(&other).unwrap();
    let out = call(&[
        &"bench",
        &one,
        &"--beside",
        &other,
        &"--files",
        &"250",
        &"--json",
    ])
    .ok();
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    let results = report["results"].as_array().unwrap();
    let names: Vec<_> = results
        .iter()
        .map(|result| result["name"].as_str().unwrap())
        .collect();
    let expected = [
        "create",
        "list",
        "read",
        "write_large",
        "read_large",
        "remove",
    ];
    assert_eq!(names, expected);
    for result in results {
        let rate = |key: &str| result[key].as_f64().unwrap();
        assert!(
            rate("per_second") > 0.0 && rate("beside_per_second") > 0.0,
            "{result}"
        );
        let ratio = rate("per_second") / rate("beside_per_second");
        assert!((rate("ratio") - ratio).abs() < 0.01 * ratio, "{result}");
    }
    let text = call(&[&"bench", &one, &"--files", &"10"]).ok();
    assert_eq!(text.lines().count(), 6, "{text}");
    for dir in [&one, &other] {
        assert_eq!(fs::read_dir(dir).unwrap().count(), 0);
    }
}

#[test]
fn a_benchmark_that_is_stopped_leaves_nothing_behind() {
    let place = Place::new();
    let one = place.path("one");
    fs::create_dir(&one).unwrap();
    let mut child = Command::new(HOLDFAST)
        .args(["bench", "--files", "1000000"])
        .arg(&one)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("files are made", || fs::read_dir(&one).unwrap().count() > 0);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(1));
    assert_eq!(fs::read_dir(&one).unwrap().count(), 0);
}
