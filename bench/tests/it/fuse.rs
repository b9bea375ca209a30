//! Mounts.

use super::{PROGRAM, comes_true, number, records};
use holdfast_testkit::skip::{mount_obstacle, skipped};
use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

/// Can this process mount? Says why not otherwise.
pub(super) fn can_mount() -> bool {
    let obstacle = mount_obstacle();
    obstacle.inspect(|obstacle| skipped(obstacle)).is_none()
}

#[test]
fn ours_and_the_null_file_system_get_the_same_requests() {
    if !can_mount() {
        return;
    }
    let records =
        records("fuse --transport dev --rounds 1 --seconds 0.02 --batch 500 --threads 1,2");
    assert_eq!(records.len(), 2 * 2 * 5);
    let (ours, null) = records.split_at(10);
    for (ours, null) in ours.iter().zip(null) {
        assert_eq!(
            (&ours["target"], &null["target"]),
            (&"mem".into(), &"null".into())
        );
        assert_eq!(
            (&ours["phase"], &ours["threads"]),
            (&null["phase"], &null["threads"])
        );
        assert_eq!(ours["transport"], "/dev/fuse");
        let each = |record| (number(record, "requests") / number(record, "items")).round();
        assert_eq!(each(ours), each(null), "{ours} {null}");
        let expected = match ours["phase"].as_str().expect("text") {
            // LOOKUP and what was asked for.
            "stat" | "unlink" => 2.0,
            // LOOKUP, CREATE, FLUSH, RELEASE.
            "create" => 4.0,
            _ => 1.0,
        };
        assert_eq!(each(ours), expected, "{ours}");
    }
}

#[test]
fn a_killed_run_leaves_no_mount() {
    if !can_mount() {
        return;
    }
    let folder = tempfile::tempdir().expect("temporary directory");
    let mut child = Command::new(PROGRAM)
        .args("fuse --transport dev --target null --seconds 100".split(' '))
        .env("TMPDIR", folder.path())
        .spawn()
        .expect("started");
    let below = folder.path().to_str().expect("UTF-8");
    let mounted = || {
        fs::read_to_string("/proc/self/mounts")
            .expect("mounts")
            .contains(below)
    };
    assert!(comes_true(mounted), "nothing was mounted");
    sleep(Duration::from_millis(100));
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert!(comes_true(|| !mounted()), "the mount is still there");
}
