//! An idle session does nothing. In a process of its own, which counts what all its threads do.

use super::toy::on_each_transport;
use holdfast_testkit::alone::alone;
use std::{fs, path::Path, thread, time::Duration};

/// How often the session's threads have gone to sleep or been put aside, by thread.
fn switches() -> Vec<(String, u64)> {
    let mut all = Vec::new();
    for task in fs::read_dir("/proc/self/task").unwrap() {
        let task = task.unwrap().path();
        let read = |file: &str| fs::read_to_string(task.join(file)).unwrap();
        let name = read("comm");
        if name.starts_with("holdfast-") {
            let status = read("status");
            let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
            let numbers = counts.map(|line| line.split_whitespace().last().unwrap());
            let sum = numbers.map(|number| number.parse::<u64>().unwrap()).sum();
            all.push((format!("{} {}", task.display(), name.trim_end()), sum));
        }
    }
    all.sort();
    all
}

fn use_it(dir: &Path) {
    fs::write(dir.join("file"), b"content").unwrap();
    for other in 0..2000 {
        fs::metadata(dir.join(format!("none{other}"))).unwrap_err();
    }
}

#[test]
fn an_idle_session_wakes_up_for_nothing() {
    if !alone("transports::idle::an_idle_session_wakes_up_for_nothing") {
        return;
    }
    on_each_transport(|_, session, dir| {
        use_it(dir);
        // The watch falls asleep, and what the close left to be told is told.
        thread::sleep(Duration::from_secs(1));
        // Other programs ask each mount now and then, as sync(1) does.
        let is_quiet = || {
            let before = switches();
            assert!(before.len() > 2, "{before:?}");
            thread::sleep(Duration::from_secs(10));
            switches() == before
        };
        assert!((0..6).any(|_| is_quiet()), "{:?}", switches());
        assert!(!session.is_over());
    });
}
