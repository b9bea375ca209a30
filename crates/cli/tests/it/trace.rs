//! `holdfast trace reclaim`: memory that is freed, watched through a real mount.

use crate::fixture::{HOLDFAST, Place, Store, holdfast, wait_until};
use std::fs::{self, File};
use std::process::{Child, Command, Stdio};

/// A command that prints into a file, ended with the test.
struct Watching {
    child: Child,
}

impl Watching {
    fn start(place: &Place, more: &[&str], name: &str) -> Self {
        let child = Command::new(HOLDFAST)
            .args(["trace", "reclaim", &place.mnt()])
            .args(more)
            .stdin(Stdio::null())
            .stdout(File::create(place.path(name)).expect("a file"))
            .spawn()
            .expect("the command starts");
        Self { child }
    }

    /// Waits for its end; gives the exit code.
    fn end(&mut self) -> Option<i32> {
        let mut status = None;
        wait_until("the command ends", || {
            status = self.child.try_wait().expect("a child");
            status.is_some()
        });
        status.and_then(|status| status.code())
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // Fails if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sums the last numbers of passes that have ended, as scripts for the kernel's records do.
fn freed(place: &Place, name: &str) -> u64 {
    let script = "/shrink_slab_end/ {sum += $23} END {print sum + 0}";
    let output = Command::new("awk")
        .arg(script)
        .arg(place.path(name))
        .output()
        .expect("awk runs");
    let sum = String::from_utf8(output.stdout).expect("text");
    sum.trim().parse().expect("a number")
}

#[test]
fn reclaim_is_watched_as_it_happens_until_the_mount_ends() {
    let Some(place) = Place::over(Store::Volume) else {
        return;
    };
    // Less than an empty daemon takes, so that as little as possible is cached.
    place.mount(&["-o", "memory=16m"]);
    let mut text = Watching::start(&place, &[], "text");
    let mut json = Watching::start(&place, &["--json"], "json");
    let mut round = 0;
    wait_until("pages that went are shown", || {
        round += 1;
        let file = place.path(&format!("mnt/{}", round % 20));
        fs::write(file, vec![round as u8; 1 << 20]).expect("room");
        let parsed = fs::read_to_string(place.path("json")).expect("text");
        freed(&place, "text") > 100 && parsed.contains("mm_shrink_slab_end")
    });
    let all = fs::read_to_string(place.path("text")).unwrap();
    assert!(all.contains("mm_shrink_slab_start: content 0x"), "{all}");
    let info = place.info();
    let content = &info["memory"]["by_shrinker"]["content"];
    assert!(content["freed"].as_u64().unwrap() > 100, "{info}");
    assert!(content["scanned"].as_u64() >= content["freed"].as_u64());
    let table = holdfast(["info", &place.mnt()]).ok();
    assert!(
        table.contains("reclaim  ") && table.contains("content "),
        "{table}"
    );
    place.umount();
    assert_eq!((text.end(), json.end()), (Some(0), Some(0)));
    let parsed = fs::read_to_string(place.path("json")).unwrap();
    let records: Vec<serde_json::Value> = parsed
        .lines()
        .map(|line| serde_json::from_str(line).expect("an object"))
        .collect();
    let sequence = |record: &serde_json::Value| record["sequence"].as_u64().expect("a number");
    assert!(records.is_sorted_by(|one, next| sequence(one) < sequence(next)));
    let end = records
        .iter()
        .find(|record| record["event"] == "mm_shrink_slab_end");
    assert!(
        end.is_some_and(|end| end["total_scan"].is_u64()),
        "{parsed}"
    );
    place.check();
}

#[test]
fn where_nothing_is_freed_there_is_nothing_to_watch() {
    let Some(place) = Place::over(Store::Memory) else {
        return;
    };
    place.mount(&[]);
    let error = holdfast(["trace", "reclaim", &place.mnt()]).fails(1);
    assert!(error.contains("has everything in memory alone"), "{error}");
    place.umount();
}
